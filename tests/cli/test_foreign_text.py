"""Foreign text on a terminal: every command shows names and reasons as text, without control
sequences."""

from __future__ import annotations

import ast
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import optuna
import pytest
from rich.console import Console

import archive.cli
from archive import spaces
from archive.architecture import codec
from archive.cli.search import live
from archive.cli.study import log as study_log
from archive.queue import workers
from archive.store.records import Result, Study
from archive.trainer.storage import file_names
from tests.support.commands import serving, shell
from tests.support.stores import cells, suggest

HOSTILE = "a[/b][red]:bug:\x1b[2J\x1b]0;owned\x07\x9b1m\u202eb\nerror: c"
"""Markup that ends nothing, a style, an emoji code, orders to the terminal, a reversal, and a line
of its own."""
DRAWN = "a[/b][red]:bug:\\x1b[2J\\x1b]0;owned\\x07\\x9b1m\\u202eb\\nerror: c"
"""The same on one line."""

FILE = HOSTILE.replace("/", "[green]")
"""A name for a file."""

CLI = Path(archive.cli.__file__).parent


@pytest.fixture
def user(archive, store_settings, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with shell(store_settings, tmp_path) as opened:
        yield opened


@pytest.fixture
def table(tmp_path):
    """A task that a table of forty cells answers, in a folder with a hostile name."""
    folder = tmp_path / FILE
    folder.mkdir()
    found = spaces.get("nasbench201").members()[::220][:40]
    lines = [f"{codec.to_nasbench201(cell)},{len(cell.layers)},{len(cell.edges)}" for cell in found]
    (folder / "cells.csv").write_text("\n".join(["arch_str,layers,edges", *lines]))
    return f"table:{folder}/cells.csv#layers"


@pytest.fixture
def hostile(archive):
    """A study of a hostile name on a hostile task: one evaluation, one failure, one trial at
    work."""
    archive.studies.create(Study(HOSTILE, HOSTILE, HOSTILE, "nasbench201", HOSTILE, budget=10))
    agent = archive.proposals.register_agent(HOSTILE, {}, "1")
    archive.proposals.create(HOSTILE, agent, suggest(cells(3)))
    first, second, _ = (archive.proposals.claim(HOSTILE, study=HOSTILE) for _ in range(3))
    archive.proposals.complete(first.id, first.token, Result(0.5, {HOSTILE: 0.5}, device=HOSTILE))
    archive.proposals.fail(second.id, second.token, HOSTILE)
    workers.arrive(archive.connection, HOSTILE, host=HOSTILE, pid=1, slots=1, study=HOSTILE)
    return first


def assert_drawn(done, *, named: bool = True) -> None:
    """Nothing of what was shown is an order, and the name is whole where it is shown."""
    shown = done.stdout + done.stderr
    assert "Traceback" not in shown
    assert not (set(shown) - {"\n"}) & {
        chr(code) for code in (*range(32), *range(127, 160), 0x202E)
    }, shown
    # A cell of a table breaks lines, within its column.
    flat = "".join(shown.replace("\\n", "").split())
    assert not named or "a[/b][red]:bug:\\x1b[2J\\x1b]0;owned\\x07\\x9b1m\\u202eb" in flat, shown


COMMANDS = {
    "study list": [],
    "study show": [HOSTILE],
    "study log": [HOSTILE],
    "study best": [HOSTILE],
    "proposal show": [f"{HOSTILE}#0"],
    "trainer status": [],
    "query": [f"MATCH (s:Study) RETURN s.name AS `{HOSTILE}`".replace("\n", " ")],
    "db gc": ["--weights", HOSTILE, "--grace", "0"],
    "dump": [FILE],
    "doctor": [],
}
"""What shows or reads the archive as a whole, with arguments."""


@pytest.mark.parametrize("name", COMMANDS)
def test_every_view_of_an_archive_is_drawn(user, hostile, name):
    done = user.types(*name.split(), *COMMANDS[name])
    assert_drawn(done, named=name not in ("dump", "doctor", "db gc"))


@pytest.mark.parametrize(
    "name",
    [
        "study list",
        "study show",
        "study log",
        "study best",
        "proposal show",
        "trainer status",
        "query",
    ],
)
def test_json_holds_the_text_and_no_order(user, hostile, name):
    done = user.types(*name.split(), *COMMANDS[name], "--json")
    assert_drawn(done, named=False)
    # As JSON writes it: what reads the document gets the name itself.
    assert r"a[/b][red]:bug:\u001b[2J\u001b]0;owned\u0007\u009b1m\u202eb\nerror: c" in done.stdout


def test_commands_about_networks_are_drawn(user, hostile, archive):
    key = hostile.proposal.architecture_key
    assert_drawn(user.types("arch", "show", key))
    other = next(cell.key for cell in cells(3) if cell.key != key)
    assert_drawn(user.types("arch", "nearest", key, "--study", HOSTILE), named=False)
    assert_drawn(user.types("arch", "distance", key, other), named=False)
    for name in ("frontier", "cost", "duplicates"):
        given = [f"--param=task={HOSTILE}"] if name == "frontier" else []
        assert_drawn(user.types("query", "run", name, *given), named=False)


def test_a_deletion_is_drawn_from_the_question_to_the_answer(user, hostile, archive, monkeypatch):
    archive.studies.create(Study(f"{HOSTILE}2", HOSTILE, HOSTILE, "nasbench201", HOSTILE))
    archive.studies.warm_start(f"{HOSTILE}2", [HOSTILE])
    monkeypatch.setattr(sys, "stdin", io.StringIO("n\n"))
    asked = user.types("study", "delete", HOSTILE, code=None)
    assert_drawn(asked)
    assert asked.stderr.count(DRAWN) == 3
    assert_drawn(user.types("study", "delete", HOSTILE, "--yes"))


def test_commands_that_list_what_is_installed_are_drawn(user):
    assert_drawn(user.types("agents", "nasbot"), named=False)
    assert_drawn(user.types("agents"), named=False)
    for name in ("tasks", "protocols", "spaces", "kernels", "query list", "query --list"):
        assert_drawn(user.types(*name.split()), named=False)


def test_a_dump_of_hostile_names_is_loaded(user, hostile, archive):
    user.types("dump", "mine.gz")
    for options in (["--check"], [], ["--rename", f"{HOSTILE}=other"]):
        assert_drawn(user.types("load", "mine.gz", *options), named=False)


def test_a_search_and_its_sources_are_drawn(archive, user, table):
    search = ("search", "--trainers", "0")
    cold = (
        "--agent",
        "gp-path",
        "--budget",
        "12",
        "--seed",
        "1",
        "--task",
        table,
        "--study",
        HOSTILE,
    )
    other = table.replace("#layers", "#edges")
    with serving(archive):
        assert_drawn(user.types(*search, *cold))
        warm = user.types(
            *search,
            "--agent",
            "portfolio",
            "--budget",
            "2",
            "--task",
            other,
            "--warm-start",
            HOSTILE,
        )

    assert_drawn(warm)
    assert "of the study a[/b][red]:bug:" in warm.stderr


def test_imports_are_drawn(user, table, tmp_path):
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    storage = f"sqlite:///{tmp_path}/their.db"
    theirs = optuna.create_study(storage=storage, study_name=HOSTILE)
    trial = theirs.ask()
    trial.set_user_attr("architecture", codec.to_nasbench201(cells(1)[0]))
    theirs.tell(trial, 0.5)
    assert_drawn(user.types("import", "table", table), named=False)
    assert_drawn(
        user.types(
            "import", "optuna", f"{storage}#{HOSTILE}", "--task", "t", "--space", "nasbench201"
        )
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ("study", "show", HOSTILE),
        ("arch", "show", HOSTILE),
        ("load", HOSTILE),
        ("agents", HOSTILE),
        (HOSTILE,),
        ("search", "--task", HOSTILE),
        ("query", f"RETURN '{HOSTILE}"),
    ],
    ids=lambda arguments: arguments[0][:6],
)
def test_error_lines_are_drawn(user, arguments):
    assert_drawn(user.types(*arguments, code=None), named=False)


def test_the_status_of_a_server_is_drawn(user, tmp_path):
    with pytest.MonkeyPatch.context() as patched:
        patched.delitem(user.environment, "ARCHIVE_DB", raising=False)
        done = user.types("--home", str(tmp_path / FILE), "db", "status")

    assert_drawn(done, named=False)
    assert DRAWN.replace("/", "[green]") in done.stdout


def test_the_live_view_is_drawn(archive, hostile, monkeypatch):
    screen = io.StringIO()
    terminal = Console(file=screen, force_terminal=True, width=400)
    monkeypatch.setattr(live, "console", lambda _: terminal)
    snapshot = archive.studies.snapshot(HOSTILE)
    with live.LiveView(snapshot.study, HOSTILE, HOSTILE, 10, 0) as view:
        view.update(snapshot)

    shown = screen.getvalue()
    # Name, agent, task, protocol, server, a column's name, a reason, the best value's name.
    assert shown.count(DRAWN) >= 8
    # What rich itself asks of a terminal is another order.
    assert not any(order in shown for order in ("\x1b[2J", "\x1b]0;", "\x07", "\x9b", "\u202e"))


def test_the_lines_of_a_search_are_drawn(archive, hostile, monkeypatch, capsys):
    snapshot = archive.studies.snapshot(HOSTILE)
    view = live.LiveView(snapshot.study, HOSTILE, HOSTILE, 10, 0)
    view._begun = True
    view.update(snapshot)
    shown = capsys.readouterr().err
    assert [line for line in shown.splitlines() if f"failed: {DRAWN}" in line]
    assert len(shown.splitlines()) == 3


def test_a_trials_own_log_is_drawn(tmp_path, capsys):

    path = file_names.trial_log_path(tmp_path, "s#00000")
    path.parent.mkdir(parents=True)
    path.write_text(f"1%\r2%\n{HOSTILE}")
    for as_json in (False, True):
        study_log.LogWriter(tmp_path, "s#00000", as_json).write([])

    text, _, document = capsys.readouterr().out.partition("{")
    assert text.splitlines() == ["1%", "2%", *DRAWN.split("\\n")]
    assert "\x9b" not in document and "\x1b" not in document


def test_a_growing_log_is_written_by_whole_lines(tmp_path, capsys):
    path = file_names.trial_log_path(tmp_path, "s#00000")
    path.parent.mkdir(parents=True)
    whole = "1%\r2% für\nloss 0.5\nno end".encode()
    writer = study_log.LogWriter(tmp_path, "s#00000", True)
    written = 0
    for end in (whole.index("ü".encode()) + 1, len(whole) - 10, len(whole)):
        path.write_bytes(whole[:end])
        writer.write([], ended=False)
        lines = [json.loads(line)["line"] for line in capsys.readouterr().out.splitlines()]
        expected = ["1%", "2% für", "loss 0.5"][written : written + len(lines)]
        assert lines == expected
        written += len(lines)

    assert written == 3
    writer.write([])
    assert json.loads(capsys.readouterr().out)["line"] == "no end"


def test_a_byte_that_is_no_text_is_no_name(user):
    for words in (
        ("study", "show", "s\udcff"),
        ("query", "RETURN '\udcff'"),
        ("arch", "show", "\udcff"),
    ):
        assert "a name on the command line is not UTF-8 text" in user.types(*words, code=2).stderr


def test_csv_is_exact_in_a_file_and_drawn_on_a_terminal(user, hostile):
    asked = ("query", "MATCH (s:Study) RETURN s.name AS name", "--csv")
    assert HOSTILE in user.types(*asked).stdout
    assert_drawn(user.types(*asked, terminal=True))


def test_no_color_is_obeyed_by_errors(user):
    user.environment |= {"TERM": "xterm", "COLUMNS": "200"}
    user.environment.pop("NO_COLOR", None)
    assert user.types("study", "show", "nowhere", code=2, terminal=True).stderr.startswith(
        "\x1b[31merror:"
    )
    user.environment["NO_COLOR"] = "1"
    assert user.types("study", "show", "nowhere", code=2, terminal=True).stderr.startswith("error:")


PRINTERS = {
    "print",
    "rule",
    "secho",
    "echo_via_pager",
    "style",
    "from_markup",
    "render_str",
    "print_exception",
}
ASKERS = {"echo", "confirm", "prompt"}


def test_no_module_but_one_prints():
    """What prints stands in one package, so that no text of the archive can reach markup or the
    terminal unseen."""
    found = []
    for path in sorted(CLI.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree) if path.parent.name != "render" else ():
            found += [f"{path.name}:{getattr(node, 'lineno', 0)} {why}" for why in _prints(node)]

    assert found == []


def _prints(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Attribute(attr=name) if name in PRINTERS:
            yield name
        case ast.Call(func=ast.Name(id="print")):
            yield "print"
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id="click"), attr=name), args=[first, *_]
        ) if name in ASKERS:
            drawn = isinstance(first, ast.Call) and getattr(first.func, "id", None) == "printable"
            if not (drawn or isinstance(first, ast.Constant)):
                yield f"click.{name} of a text that is not printable(…)"
        case ast.ImportFrom(module="rich" | "rich.markup" | "rich.prompt" | "rich.pretty"):
            yield f"import of {node.module}"
        case ast.Call(
            func=ast.Name(id="Text"), args=[ast.JoinedStr() | ast.Name() | ast.Attribute(), *_]
        ):
            yield "Text of a text that is not drawn by text(…)"
        case ast.keyword(arg="markup" | "emoji", value=ast.Constant(value=True)):
            yield "markup"


def test_the_check_finds_what_it_is_for():
    source = (
        "out().print(f'[bold]{name}[/]')\nclick.echo(name)\nclick.confirm(f'{name}?')\nsay "
        "= console.print"
    )
    assert len([why for node in ast.walk(ast.parse(source)) for why in _prints(node)]) == 4

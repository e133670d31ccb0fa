"""The JSON of every command is of the shape that is documented, and every shape is documented in
full."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict

import click
import optuna
import pytest

from archive.architecture import codec
from archive.benchmarks.measurement import Figure
from archive.cli.json_reference import DOCUMENTS, fields, is_object, reference
from archive.cli.main import archive as root
from archive.cli.study.command import StudyList
from archive.cli.study.items import study_item
from archive.store.records import Result, Weights
from archive.trainer.daemon import logs
from tests.support.commands import serving, shell, table
from tests.support.json_documents import check, faults
from tests.support.stores import cells, propose, study


@pytest.fixture
def user(archive, store_settings, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with shell(store_settings, tmp_path) as opened:
        yield opened


@pytest.fixture
def filled(archive):
    """A study with a proposal in each state, and a source of a warm start."""
    propose(archive, cells(2), "source", budget=1)
    first = archive.proposals.claim("w", study="source")
    archive.proposals.complete(first.id, first.token, Result(0.25))
    archive.studies.create(study(config={"agent": "random", "protocol": {"epochs": 3}}))
    archive.studies.warm_start("study", ["source"])
    proposals = propose(archive, cells(6))
    held = [archive.proposals.claim("w", study="study", lease_seconds=600.0) for _ in range(4)]
    metrics = {"valid_accuracy": 0.5, "test_accuracy": float("nan")}
    saved = Weights("file:///weights", "0" * 64, 1)
    archive.proposals.complete(
        held[0].id, held[0].token, Result(0.5, metrics, {"loss": [1.0]}, 3, 2.0, weights=saved)
    )
    archive.proposals.fail(held[1].id, held[1].token, "crash", log="the end")
    archive.proposals.complete(held[2].id, held[2].token, Result(0.25, epochs=1), pruned=True)
    archive.proposals.report(held[3].id, held[3].token, {"loss": [1.0]})
    archive.proposals.cancel(proposals[4].id)
    return proposals


def test_every_command_with_json_is_documented():
    documented = {command.partition(" -")[0].removesuffix(" NAME") for command in DOCUMENTS}
    assert documented == {
        path for path, command in commands(root) if "as_json" in {p.name for p in command.params}
    }


def commands(group: click.Group, path: str = "") -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, f"{path}{name} ")

        yield f"{path}{name}", command


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"budget": None}, "$.studies[0].budget is None, not int"),
        ({"budget": True}, "$.studies[0].budget is True, not int"),
        ({"state": 1}, "$.studies[0].state is not documented"),
        (
            {"direction": "up"},
            "$.studies[0].direction is 'up', not one of ('maximise', 'minimise')",
        ),
        ({"counts": {}}, "$.studies[0].counts.failed is missing"),
    ],
)
def test_what_differs_from_a_shape_is_found(change, fault):
    item = {**asdict(study_item(study(), {}, None)), **change}
    assert fault in faults({"schema_version": 1, "studies": [item]}, StudyList)
    assert faults({"schema_version": 1, "studies": [study_item(study(), {}, 0.5)]}, StudyList) == []


def test_every_key_says_what_it_is():
    shapes = {shape for several in DOCUMENTS.values() for shape in several}
    for shape in shapes:
        for name, (hint, text) in fields(shape).items():
            assert text, f"{shape.__name__}.{name}"
            assert (
                not is_object(hint)
                or hint in vars(__import__(hint.__module__, fromlist="x")).values()
            )

    text = reference()
    assert all(f"### `archive {command}`" in text for command in DOCUMENTS)
    assert "| `counts` | [StateCounts](#statecounts) | Proposals in each state. |" in text


READING = {
    "study list": [],
    "study show": ["study"],
    "study best": ["study", "--top", "3"],
    "study log": ["study"],
    "study log --follow": ["source"],
    "proposal show": ["study#0"],
    "trainer status": [],
    "query run": ["MATCH (p:Proposal) RETURN p.number AS number, p.state AS state"],
    "query list": [],
    "query show": ["cost"],
    "tasks": [],
    "protocols": ["digits"],
    "spaces": [],
    "kernels": [],
    "agents": [],
    "agents NAME": ["nasbot"],
    "db status": [],
    "db gc": ["--dry-run"],
    "doctor": [],
    "tried": [],
    "leaderboard": ["--task", "digits"],
    "agent-instructions": ["--study", "study"],
}
"""Commands that change nothing, with arguments."""


@pytest.mark.parametrize("command", READING)
def test_what_reads_the_archive(user, filled, archive, command):
    words = [word for word in command.split() if word != "NAME"]
    check(command, user.types(*words, *READING[command], "--json").stdout)


def test_a_server_has_one_shape_whatever_it_is(archive, user, store_settings, tmp_path):
    (status,) = check("db status", user.types("db", "status", "--json").stdout)
    assert (status["embedded"], status["running"]) == (store_settings.embedded, True)
    assert status["server"].partition("://")[0] in ("bolt", "neo4j")
    with pytest.MonkeyPatch.context() as patched:
        patched.delitem(user.environment, "ARCHIVE_DB", raising=False)
        at = ("--home", str(tmp_path / "none"))
        (status,) = check("db status", user.types(*at, "db", "status", "--json").stdout)
        assert (status["running"], status["state"], status["server"]) == (False, "none", None)
        assert (
            check("db stop", user.types(*at, "db", "stop", "--json").stdout)[0]["stopped"] is False
        )
        if store_settings.embedded:
            assert (
                check("db start", user.types("db", "start", "--json").stdout)[0]["running"] is True
            )


def test_studies_have_the_same_keys_in_the_list_and_alone(user, filled):
    (listed,) = check("study list", user.types("study", "list", "--json").stdout)
    (shown,) = check("study show", user.types("study", "show", "study", "--json").stdout)
    (row,) = [each for each in listed["studies"] if each["study"] == "study"]
    assert {key: shown[key] for key in row} == row
    assert row["counts"] == {"waiting": 1, "running": 1, "complete": 1, "pruned": 1, "failed": 2}
    assert row["best"] == 0.5
    assert {each["state"] for each in shown["proposals"]} == set(row["counts"])
    assert [each["cancelled"] for each in shown["proposals"]] == [False] * 4 + [True, False]


def test_networks(user, filled, archive, tmp_path):
    first, second = (proposal.architecture_key for proposal in filled[:2])
    (shown,) = check("arch show", user.types("arch", "show", first, "--json").stdout)
    # The graph is a part of the document, and what `arch` reads from a file.
    (tmp_path / "own.json").write_text(json.dumps(shown["architecture"]))
    assert codec.from_dict(shown["architecture"]).key == first
    compared = user.types(
        "arch", "distance", "own.json", first, "--kind", "otmann", "--json"
    ).stdout
    (distances,) = check("arch distance", compared)
    assert {row["distance"] for row in distances["distances"]} == {0.0}
    check("arch nearest", user.types("arch", "nearest", first, "--json").stdout)
    assert second != first


def test_the_log_of_a_trial_is_a_stream_of_its_own_lines(user, filled, archive, store_settings):
    from archive.trainer.storage import file_names

    path = file_names.trial_log_path(store_settings.home, filled[0].id)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("epoch 1\n")
    try:
        told = user.types("study", "log", "study", "--proposal", "0", "--follow", "--json").stdout
    finally:
        path.unlink()

    assert [each["event"] for each in check("study log --follow", told)] == [
        "proposed",
        "claimed",
        "complete",
        "log",
    ]


def test_what_changes_the_archive(user, filled, archive, tmp_path):
    (done,) = check(
        "proposal cancel", user.types("proposal", "cancel", "study#5", "study#4", "--json").stdout
    )
    assert [each["changed"] for each in done["proposals"]] == [True, False]
    check("proposal retry", user.types("proposal", "retry", "study#5", "--json").stdout)
    check("dump", user.types("dump", "mine.gz", "--json").stdout)
    check("load", user.types("load", "mine.gz", "--json").stdout)
    check("load", user.types("load", "mine.gz", "--check", "--json").stdout)
    check("study delete", user.types("study", "delete", "study", "--yes", "--json").stdout)


def test_exports(user, filled, tmp_path):
    check("study export", user.types("study", "export", "study", "-o", "rows.csv", "--json").stdout)
    for form in ("json", "jsonl"):
        check(
            f"study export --format {form}",
            user.types("study", "export", "study", "--format", form).stdout,
        )


def test_a_search_and_its_trainer(archive, user, tmp_path, monkeypatch):
    task = table(tmp_path)
    options = (
        "--task",
        task,
        "--agent",
        "random",
        "--study",
        "mine",
        "--budget",
        "2",
        "--trainers",
        "0",
    )
    with serving(archive):
        (found,) = check("search", user.types("search", *options, "--json").stdout)

    assert found["best"]["value"] is not None
    # The log of this process is not the trainer's.
    monkeypatch.setattr(logs, "configure", lambda *_, **__: None)
    check("trainer start", user.types("trainer", "--study", "mine", "--once", "--json").stdout)
    check("import table", user.types("import", "table", task, "--json").stdout)


def test_a_study_of_optuna(archive, user, tmp_path):
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    storage = f"sqlite:///{tmp_path}/their.db"
    theirs = optuna.create_study(storage=storage, study_name="theirs")
    trial = theirs.ask()
    trial.set_user_attr("architecture", codec.to_nasbench201(cells(1)[0]))
    theirs.tell(trial, 0.5)
    done = user.types(
        "import", "optuna", f"{storage}#theirs", "--task", "t", "--space", "nasbench201", "--json"
    )
    check("import optuna", done.stdout)


def test_a_comparison_of_agents(user, tmp_path):
    task = table(tmp_path)
    size = ("--seeds", "2", "--budget", "4", "--starts", "2", "--processes", "1")
    done = user.types("bench", "search", "--agent", "random", "--task", task, *size, "--json")
    (compared,) = check("bench search", done.stdout)
    assert compared["standings"]


def test_the_speed_of_a_machine(user, monkeypatch):
    monkeypatch.setattr(
        "archive.benchmarks.machine.measure", lambda *_: [Figure("query", float("nan"), "ms")]
    )
    (measured,) = check("bench machine", user.types("bench", "machine", "--json").stdout)
    assert measured["figures"] == [{"name": "query", "value": None, "unit": "ms"}]


def test_an_error_is_a_line_on_stderr_and_nothing_on_stdout(archive, user):
    done = user.types("study", "show", "nobody", "--json", code=2)
    assert done.stdout == ""
    assert done.stderr.startswith("error: unknown study 'nobody'")

"""The entry point: fast help, errors as one red line, no heavy imports."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest

from archive import cache
from archive.cli import entry, reference
from archive.cli.main import COMMANDS, main

pytestmark = pytest.mark.lasts(0.4)


def run(*arguments, home=None, **variables):
    environment = {**os.environ, **variables}
    environment.pop("ARCHIVE_DB", None)
    if home is not None:
        environment["ARCHIVE_HOME"] = str(home)

    command = [sys.executable, "-m", "archive.cli.main", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)


def test_help_lists_every_command():
    done = run("--help")
    assert done.returncode == 0
    assert all(name in done.stdout for name in COMMANDS)


def test_help_and_import_load_no_heavy_package():
    code = (
        "import sys, archive, archive.cli.main\n"
        "try: archive.cli.main.main(['--help'])\n"
        "except SystemExit: pass\n"
        "print([m for m in ('torch', 'scipy', 'numba', 'neo4j', 'sklearn', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


HEAVY = ("numba", "numpy", "pandas", "pyarrow", "scipy", "sklearn", "torch")


# Of no use to a command that lists or shows a study.
UNUSED = ("archive.agents", "archive.architecture.graph", "archive.queue", "http.client", "tomllib")


NEEDED = [
    ("study list", {"neo4j"}, (*UNUSED, "archive.cli.study.best", "psutil"), 70),
    ("study show x", {"neo4j"}, UNUSED, 75),
    (
        "arch show " + "0" * 32,
        {"neo4j"},
        ("archive.agents", "archive.queue", "http.client"),
        75,
    ),
    (
        "query RETURN_1",
        {"neo4j"},
        (*UNUSED, "archive.queries", "archive.store.records", "psutil"),
        55,
    ),
    (
        "agents",
        set(),
        ("neo4j", "asyncio", "archive.agents.bayesopt", "archive.agents.base"),
        45,
    ),
    ("tasks", {"numpy"}, ("neo4j", "archive.agents"), 115),
]


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    """The commands of `NEEDED`, by their words: each waits seconds for a server that is not there."""
    processes = {}
    for words, _, others, _ in NEEDED:
        at = "" if "neo4j" in others else "'--db', 'bolt://127.0.0.1:1', "
        code = (
            "import sys, archive.cli.main\n"
            f"try: archive.cli.main.main([{at}*{[word.replace('_', ' ') for word in words.split()]}])\n"
            "except SystemExit: pass\n"
            f"print({{name for name in {(*HEAVY, 'neo4j', *others)} if name in sys.modules}} or set())\n"
            "print(sum(name.partition('.')[0] == 'archive' for name in sys.modules))"
        )
        home = str(tmp_path_factory.mktemp("home"))
        processes[words] = subprocess.Popen(
            [sys.executable, "-c", code],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "ARCHIVE_PATIENCE": "0", "ARCHIVE_HOME": home},
        )

    yield processes
    for process in processes.values():
        process.kill()
        process.communicate()


@pytest.mark.parametrize(("words", "loaded", "others", "most"), NEEDED)
def test_a_command_loads_what_it_needs(started, words, loaded, others, most):
    out, errors = started[words].communicate(timeout=60)
    *_, names, modules = out.splitlines()
    assert eval(names) == loaded, errors
    assert int(modules) <= most


def test_listing_studies_reads_no_evaluation():
    code = (
        "import sys, archive.store.studies.studies as studies\n"
        "studies.Studies(None, None)\n"
        "print([name for name in ('evaluations', 'snapshots', 'architectures')"
        " if f'archive.store.{name}' in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stderr


def test_a_search_without_a_surrogate_loads_no_scipy():
    code = (
        "import sys, archive.searches.running, archive.searches.call\n"
        "import archive.agents.loop, archive.agents.recommendation\n"
        "from archive import agents, spaces\n"
        "agents.get('random', spaces.get('nasbench201'))\n"
        f"print({{name for name in {(*HEAVY, 'archive.kernels')} if name in sys.modules}})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert eval(done.stdout) == {"numpy"}, done.stderr


@click.command()
def probe():
    click.echo(cache.path("numbers", "one").parent)


def test_the_cache_is_in_the_home_of_the_command(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(COMMANDS, "probe", (__name__, "probe", ""))
    before = os.environ["ARCHIVE_HOME"]
    with pytest.raises(SystemExit):
        main(["--home", str(tmp_path / "chosen"), "probe"])

    with pytest.raises(SystemExit):
        main(["probe"])

    assert capsys.readouterr().out.split() == [
        *(str(tmp_path / "chosen" / "cache" / "numbers"), str(Path(before) / "cache" / "numbers"))
    ]
    assert os.environ["ARCHIVE_HOME"] == before


@pytest.mark.parametrize(
    ("arguments", "fragments"),
    [
        (["serch"], ["unknown command 'serch': did you mean search"]),
        (["study", "shwo"], ["unknown command 'shwo': did you mean show?"]),
        (["proposal", "cancle"], ["unknown command 'cancle': did you mean cancel?"]),
        (["import", "tabel"], ["unknown command 'tabel': did you mean table?"]),
        (["bench", "nothing"], ["unknown command 'nothing': known: machine, search"]),
        (["launch", "lsit"], ["unknown command 'lsit': did you mean list?"]),
        (["study", "show", "--al"], ["unknown option '--al': did you mean --all?"]),
        (["search", "--agent", "nasbt"], ["unknown agent 'nasbt'", "nasbot"]),
        (
            ["search", "--agent", "tw:prest=paper"],
            ["unknown setting of agent tw 'prest'", "preset"],
        ),
        (
            ["search", "--agent", "tw:preset"],
            ["a setting of an agent is written NAME=VALUE", "'preset'"],
        ),
        (["search", "--task", "digit"], ["unknown task 'digit'", "digits"]),
        (["search", "--space", "cn"], ["unknown space 'cn'", "cnn"]),
        (["search", "--protocol", "digits/9"], ["digits/9", "digits/1"]),
        (["search", "--task", "diabetes", "--space", "cnn"], ["diabetes", "cnn", "mlp"]),
        (["search", "--budgt", "3"], ["unknown option '--budgt': did you mean --budget?"]),
        (["search", "--warm-start", ","], ["--warm-start", "','"]),
        (["query", "RETURN 1", "-p", "novalue"], ["NAME=VALUE", "novalue"]),
        (["query"], ["CYPHER"]),
        (["--db", "http://example.org", "query", "RETURN 1"], ["http://example.org", "neo4j://"]),
    ],
)
def test_a_users_mistake_is_one_line_and_exit_code_2(arguments, fragments, home, capsys):
    done = here(capsys, "--home", str(home.home), *arguments)
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert done.stderr.startswith("error: ")
    assert all(fragment in done.stderr for fragment in fragments), done.stderr
    assert not done.stdout


def here(capsys, *arguments):
    """Run a command in this process, which spares the start of another one."""
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))

    return subprocess.CompletedProcess(arguments, ended.value.code, *capsys.readouterr())


def test_an_unreachable_server_is_one_line_and_exit_code_1(tmp_path):
    done = run(
        "--db", "bolt://127.0.0.1:9", "query", "RETURN 1", home=tmp_path, ARCHIVE_PATIENCE="0"
    )
    assert done.returncode == 1
    assert "127.0.0.1:9" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr


def test_an_address_with_a_password_is_refused_without_showing_it(tmp_path, capsys):
    done = here(capsys, "--db", "neo4j://neo4j:hunter2@localhost", "query", "RETURN 1")
    assert done.returncode == 2
    assert "hunter2" not in done.stderr + done.stdout
    assert "ARCHIVE_PASSWORD" in done.stderr


def test_a_folder_that_cannot_be_made_is_named(tmp_path, capsys):
    (tmp_path / "file").write_text("not a folder")
    done = here(capsys, "--home", str(tmp_path / "file" / "below"), "query", "RETURN 1")
    assert done.returncode in (1, 2)
    assert str(tmp_path / "file") in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr


@pytest.mark.parametrize("command", [["db", "status"], ["study", "list"], ["trainer", "--once"]])
def test_the_home_of_an_unknown_user_is_one_line(tmp_path, monkeypatch, capsys, command):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ARCHIVE_HOME", "~nobody-of-this-name/x")
    done = here(capsys, *command)
    complaint = "error: no home folder of ~nobody-of-this-name is known on this machine, got '~nobody-of-this-name/x'"
    assert (done.returncode, done.stderr.strip()) == (2, complaint)
    assert not list(tmp_path.iterdir())


def test_version_and_json_status_of_an_archive_that_never_was(tmp_path):
    assert run("--version").stdout.startswith("archive, version ")
    status = json.loads(run("db", "status", "--json", home=tmp_path).stdout)
    assert status["running"] is False
    assert not list(tmp_path.iterdir())


def test_a_reader_that_ends_early_is_no_error(monkeypatch):
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as stdout:
        # This command loads less than others that print much.
        command = [sys.executable, "-m", "archive.cli.main", "agents"]
        done = subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=60)

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_full_disk_is_one_line(options):
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "archive.cli.main", "agents", *options]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)

    assert (done.returncode, done.stderr) == (
        1,
        "error: nothing more can be written: No space left on device\n",
    )


def test_lists_of_commands_are_whole_on_a_terminal():
    contexts = [ctx for ctx in reference.contexts(78) if isinstance(ctx.command, click.Group)]
    assert len(contexts) > 8
    for ctx in contexts:
        assert "..." not in ctx.get_help().partition("Commands:")[2], ctx.command_path


def test_ctrl_c_is_exit_code_130(monkeypatch, capsys):
    import archive.cli.query as query

    def interrupted(ctx):
        raise KeyboardInterrupt

    monkeypatch.setattr(query, "open_archive", interrupted)
    with pytest.raises(SystemExit) as ended:
        main(["query", "RETURN 1"])

    assert ended.value.code == 130
    assert "Traceback" not in capsys.readouterr().err


SLOW_MODULE = """
import time
print("loading", flush=True)
try:
    time.sleep(60)
except BaseException:
    raise RuntimeError("what the import system makes of it")
"""


# Says when the first module of the command loads.
BEGUN = """
import sys
class Finder:
    def find_spec(name, *others):
        if name == "archive.cli.main":
            print("begun", flush=True)
sys.meta_path.insert(0, Finder)
"""


# Within the modules of the package, each delay meets another one.
@pytest.mark.parametrize(
    "seconds",
    [
        None,
        pytest.param(0.0, marks=pytest.mark.whole),
        0.02,
        pytest.param(0.05, marks=pytest.mark.whole),
    ],
)
def test_ctrl_c_while_modules_load_is_one_line(tmp_path, seconds):
    variables = {**os.environ, "ARCHIVE_PATIENCE": "60"}
    # A test run in the background of a shell ignores the signal, and so would its children.
    begin = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    begin += "import archive.cli.entry as entry\n"
    if seconds is None:
        (tmp_path / "click.py").write_text(SLOW_MODULE)
        begin += f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
    else:
        begin += BEGUN

    command = [
        sys.executable,
        "-c",
        f"{begin}entry.main()",
        "--db",
        "bolt://127.0.0.1:1",
        "study",
        "list",
    ]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=variables
    ) as process:
        process.stdout.readline()
        time.sleep(seconds or 0.0)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)

    assert (process.returncode, errors.strip()) == (130, entry.INTERRUPTED)


def test_ctrl_c_stays_ignored_in_the_background_and_reaches_a_loaded_command(monkeypatch):
    handlers = []
    monkeypatch.setattr(
        "archive.cli.main.main", lambda: handlers.append(signal.getsignal(signal.SIGINT))
    )
    before = signal.getsignal(signal.SIGINT)
    try:
        for first in (signal.SIG_IGN, signal.default_int_handler):
            signal.signal(signal.SIGINT, first)
            entry.main()
            entry.begin_command()
            handlers.append(signal.getsignal(signal.SIGINT))
    finally:
        signal.signal(signal.SIGINT, before)

    ignored, still_ignored, ends, raises = handlers
    assert (ignored, still_ignored, raises) == (
        signal.SIG_IGN,
        signal.SIG_IGN,
        signal.default_int_handler,
    )
    assert ends not in (ignored, raises)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("stumbles", [False, True])
def test_a_signal_within_a_command_is_its_exit_code(monkeypatch, capsys, number, code, stumbles):
    import archive.cli.query as query
    from archive.searches.interruption import Interruption

    def interrupted(ctx):
        with Interruption(lambda: print("stopping", file=sys.stderr)) as interruption:
            os.kill(os.getpid(), number)
            try:
                interruption.check()
            except KeyboardInterrupt:
                if stumbles:
                    raise ValueError("what a driver makes of it")  # noqa: B904

                raise

    monkeypatch.setattr(query, "open_archive", interrupted)
    with pytest.raises(SystemExit) as ended:
        main(["query", "RETURN 1"])

    assert ended.value.code == code
    assert capsys.readouterr().err.split()[:2] == ["stopping", "interrupted:"]


@pytest.mark.parametrize(
    "words",
    [
        "archive foo ",
        "archive foo --b",
        # `tests/cli/test_completion.py` asks in its own process.
        pytest.param("archive stu", marks=pytest.mark.whole),
    ],
)
def test_a_shell_that_asks_how_a_line_goes_on_gets_no_error(words):
    count = str(len(words.split(" ")) - 1)
    done = run(_ARCHIVE_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=count)
    assert (done.returncode, done.stderr) == (0, "")
    offered = done.stdout.split()
    assert [word for word in offered if not word.startswith("plain,")] == []
    assert ("plain,study" in offered) == (words != "archive foo --b")

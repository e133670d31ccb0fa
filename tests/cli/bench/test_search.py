"""`archive bench search`, as a user types it: tables, a second run that continues, a kill,
refusals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from importlib.util import find_spec

import psutil
import pytest

from archive import settings, spaces
from archive.agents.replay import recheck
from archive.api import connect
from archive.architecture import codec
from archive.cli import main
from archive.searches.comparison import suite
from archive.searches.comparison.plan import contestant
from archive.server import embedded
from archive.settings import environment
from tests.support import java_only, wait_until

COMMAND = [sys.executable, "-m", "archive.cli.main", "bench", "search"]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A table of sixty cells, of which the last is the best."""
    path = tmp_path_factory.mktemp("table") / "cells.csv"
    cells = spaces.get("nasbench201").members()[::140][:60]
    lines = [f"{codec.to_nasbench201(cell)},{at}" for at, cell in enumerate(cells)]
    path.write_text("\n".join(["arch_str,score", *lines]))
    return path


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Settings of a home of this module's own."""
    return settings.load(
        home=tmp_path_factory.mktemp("comparisons") / "home", patience=30.0, environment=java_only()
    )


@pytest.fixture(scope="module")
def bench(place):
    """Settings of the archive of the comparisons in that home."""
    own = settings.load(home=place.home / "bench", environment=java_only())
    yield own
    if own.home.is_dir():
        embedded.stop(own)


def options(table, *more):
    fixed = ["--task", f"table:{table}#score", "--seeds", "2", "--starts", "4", "--json"]
    return [*fixed, "--agent", "random", "--agent", "evolution:n_initial=3", *more]


@pytest.fixture
def types(place, capsys, monkeypatch):
    """Runs the command in this process, which spares the start of another one; its searches have
    their own."""
    monkeypatch.setenv("ARCHIVE_HOME", str(place.home))

    def command(*arguments, code=0):
        with pytest.raises(SystemExit) as ended:
            main.main(["bench", "search", *arguments])

        shown = capsys.readouterr()
        assert ended.value.code == code, shown.err
        return (json.loads(shown.out) if code == 0 else None), shown.err

    return command


@pytest.mark.whole
@pytest.mark.lasts(8)
def test_the_suite_has_one_row_for_each_agent_and_task(table, types):
    only = [
        "--agent",
        "random",
        "--agent",
        "bfs",
        "--seeds",
        "2",
        "--budget",
        "11",
        "--processes",
        "1",
    ]
    tasks = [f"table:{table}#score", f"table:{table}#score~3"]
    shown, _ = types(
        "--suite",
        "--quick",
        *only,
        "--run",
        "suite",
        *(f"--task={task}" for task in tasks),
        "--json",
    )
    rows = shown["rows"]
    assert [(row["agent"], row["role"]) for row in rows[:2]] == [
        ("random", "baseline"),
        ("bfs", ""),
    ]
    assert [row["task"] for row in rows] == ["cells-score"] * 2 + ["cells-score~3"] * 2
    assert shown["starts"] == 0 and all(list(row["regret"]) == ["10", "11"] for row in rows)
    assert [row["errors"]["11"] == 0.0 for row in rows] == [True, False] * 2
    # Values are whole numbers, and regret is that of the noise-free value.
    assert all((2 * row["regret"]["10"]["mean"]).is_integer() for row in rows)


def test_roles_have_the_names_of_contestants():
    assert [contestant(name).name for name in suite.ROLES] == list(suite.ROLES)
    assert {*suite.QUICK.agents} < {*suite.FULL.agents} == {*suite.ROLES}


def test_what_a_suite_needs(types):
    for arguments, reason in (
        (["--quick"], "write --suite --quick"),
        ([], "with --agent, or compare"),
    ):
        assert reason in types(*arguments, code=2)[1]


@pytest.mark.whole
@pytest.mark.lasts(15)
def test_a_comparison_that_is_interrupted_or_killed_goes_on(place, bench, table, types):
    arguments = options(table, "--budget", "30", "--seeds", "1", "--run", "killed")
    given = {**os.environ, **environment(place), "OMP_NUM_THREADS": "1"}
    for number, code in ((signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)):
        command = [*COMMAND, *arguments, "--processes", "2"]
        process = subprocess.Popen(command, env=given, stderr=subprocess.DEVNULL)
        try:
            wait_until(lambda: embedded.find(bench), 60, "the server")
            with connect(bench) as archive:
                before = evaluations(archive)
                wait_until(lambda: evaluations(archive) > before + 4, 60, "some evaluations")  # noqa: B023

            # The database, which the command may have started, stays.
            status = embedded.status(bench)
            children = psutil.Process(process.pid).children(recursive=True)
            workers = [
                child for child in children if child.pid not in (status.pid, status.java_pid)
            ]
            process.send_signal(number)
            assert process.wait(60) == code
            assert workers
            psutil.wait_procs(workers, timeout=30)
            assert not [
                one for one in workers if one.is_running() and one.status() != psutil.STATUS_ZOMBIE
            ]
        finally:
            process.kill()

    last, _ = types(*arguments, "--processes", "1")
    assert [(row["seeds"], row["repeats"]) for row in last["standings"]] == [(1, 0), (1, 0)]
    with connect(bench) as archive:
        names = [name for name in archive.studies.names() if name.startswith("bench/killed/")]
        assert len(names) == 2
        for name in names:
            found = recheck(archive, name)
            assert (len(found.same), found.differing) == (30, ())


@pytest.mark.whole
@pytest.mark.lasts(8)
def test_a_comparison_is_read_again_and_goes_on(bench, table, tmp_path, types):
    plot = tmp_path / "curves.svg"
    more = ["--plot", str(plot)] if find_spec("matplotlib") else []
    one = ("--processes", "1")
    first, told = types(*options(table, "--budget", "8", *one, *more))
    assert "4 searches of 8 evaluations" in told and "4 not finished" in told
    assert plot.is_file() or not more
    random, evolution = first["standings"]
    assert [random["agent"], evolution["agent"]] == ["random", "evolution:n_initial=3"]
    assert (random["seeds"], random["repeats"], evolution["repeats"]) == (2, 0, 0)
    assert (random["unit"], list(random["regret"])) == ("in score", ["8"])
    # What is finished is only read, and more is searched for only where there is more to do.
    again, told = types(*options(table, "--budget", "8"))
    assert again == first and "0 not finished" in told
    longer, _ = types(*options(table, "--budget", "10", "--batch", "1", *one))
    for short, long in zip(first["standings"], longer["standings"], strict=True):
        assert long["regret"]["10"]["mean"] <= short["regret"]["8"]["mean"]

    with connect(bench) as archive:
        names = [
            name
            for name in archive.studies.names()
            if "/killed/" not in name and "/suite/" not in name
        ]
        assert [len(archive.proposals.list(name)) for name in names] == [10] * 4
        # An agent of the same name that is another one by now.
        archive.query("MATCH (p:Proposal {number: 5}) SET p.agent = 'random-0'", write=True)

    _, told = types(*options(table, "--budget", "8"), code=2)
    assert "name another run with --run" in told


def evaluations(archive):
    return archive.query("MATCH (e:Evaluation) RETURN count(e)").rows[0][0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--agent", "rnadom"], "unknown agent 'rnadom': did you mean"),
        (["--agent", "rand:n_inital=3"], "n_inital"),
        (["--agent", "rand:n_initial"], "NAME=VALUE"),
        (["--agent", "random", "--task", "no-task"], "unknown task 'no-task'"),
        (["--agent", "random", "--task", "digits"], "a tabular task, got 'digits'"),
        (["--agent", "random", "--budget", "3"], "at least the 4 random starts, got 3"),
        (
            ["--agent", "random", "--budget", "9", "--batch", "10"],
            "at least one batch of 10, got 9",
        ),
        (["--agent", "random", "--budget", "61"], "at most the 60 networks"),
        (["--agent", "random", "--starts", "few"], "a number of networks, or own, got 'few'"),
        (["--agent", "random", "--plot", "curves"], "must end in .svg"),
    ],
)
def test_what_cannot_be_is_one_line(home, table, capsys, monkeypatch, arguments, message):
    monkeypatch.setenv("ARCHIVE_HOME", str(home.home))
    task = [] if "--task" in arguments else ["--task", f"table:{table}#score"]
    starts = [] if "--starts" in arguments else ["--starts", "4"]
    with pytest.raises(SystemExit) as ended:
        main.main(["bench", "search", *task, *starts, "--budget", "8", *arguments])

    lines = capsys.readouterr().err.strip().splitlines()
    assert (ended.value.code, len(lines)) == (2, 1)
    assert message in lines[0]
    assert not home.home.exists()

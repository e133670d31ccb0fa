"""Whole searches, as a user types them: real agents, real training, real processes."""

import contextlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from unittest import mock

import psutil
import pytest

from archive.cli.main import main
from archive.settings import environment
from tests.support import wait_until
from tests.support.commands import table


class User:
    """Types `archive …` with the settings of one server."""

    def __init__(self, settings):
        self.environment = {**os.environ, **environment(settings), "OMP_NUM_THREADS": "1"}

    def command(self, *arguments):
        return [sys.executable, "-m", "archive.cli.main", *arguments]

    def types(self, *arguments, code=0):
        # What only looks, or refuses to begin, need not wait for another interpreter to start.
        work = self._here if arguments[0] in ("arch", "query", "study") or code else self._apart
        done = work(arguments)
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr, done.stderr
        return done

    def _apart(self, arguments):
        return subprocess.run(
            self.command(*arguments), capture_output=True, text=True, env=self.environment, timeout=240
        )

    def _here(self, arguments):
        streams = io.StringIO(), io.StringIO()
        with mock.patch.dict(os.environ, self.environment), pytest.raises(SystemExit) as end:
            with contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1]):
                main(list(arguments))
        return subprocess.CompletedProcess(arguments, end.value.code, *(stream.getvalue() for stream in streams))

    def json(self, *arguments):
        return json.loads(self.types(*arguments, "--json").stdout)

    def search(self, *arguments):
        return self.json("search", "--task", "diabetes", *arguments)


@pytest.fixture
def user(archive, store_settings):
    return User(store_settings)


@pytest.mark.lasts(22)
@pytest.mark.every_server
def test_a_search_a_resumption_and_a_warm_start(user):
    first = user.search("--agent", "nasbot", "--study", "first", "--budget", "3")
    assert (first["evaluations"], first["failed"], first["objective"]) == (3, 0, "valid_mse")
    best = first["best"]
    assert best["checkpoint"].startswith("file://")
    assert os.path.getsize(best["checkpoint"].removeprefix("file://")) > 0

    rows = user.json("query", "MATCH (e:Evaluation)-[:OF]->(a:Architecture) RETURN e.value AS value, a.key AS key")
    values = {row["key"]: row["value"] for row in rows["rows"]}
    assert len(values) == 3
    assert best["value"] == min(values.values()) == values[best["architecture"]]

    # The same command again does nothing; a larger total goes on; what is there stays.
    again = user.types("search", "--task", "diabetes", "--agent", "nasbot", "--study", "first")
    assert "--budget is the total" in again.stderr
    longer = user.search("--agent", "nasbot", "--study", "first", "--budget", "4")
    assert longer["evaluations"] == 4

    # Observations of the source count for the agent and beside the budget: its pool is not trained a second time.
    warm = user.search("--agent", "nasbot", "--study", "second", "--budget", "1", "--warm-start", "first")
    assert (warm["evaluations"], warm["warm_started_from"]) == (1, ["first"])
    link = "MATCH (:Study {name: 'second'})-[:WARM_STARTED_FROM]->(s:Study) RETURN s.name AS name"
    assert [row["name"] for row in user.json("query", link)["rows"]] == ["first"]
    keys = user.json("query", "MATCH (e:Evaluation)-[:OF]->(a:Architecture) RETURN DISTINCT a.key AS key")["rows"]
    assert len(keys) == 5
    unknown = user.types("search", "--task", "diabetes", "--study", "third", "--warm-start", "frist", code=2)
    assert "did you mean first" in unknown.stderr
    assert [study["study"] for study in user.json("study", "list")["studies"]] == ["first", "second"]

    _check_what_is_stored(user)
    _check_what_is_shown(user, best["architecture"])


def _check_what_is_stored(user):
    """Every layer, edge, epoch and pair of one study is in the graph."""
    ours = (
        "MATCH (:Study {name: 'first'})-[:PROPOSED]->(:Proposal)-[:RESULTED_IN]->(e:Evaluation) "
        "MATCH (e)-[:OF]->(a:Architecture) "
    )
    graphs = user.json(
        "query",
        ours + "MATCH (a)-[:HAS_LAYER]->(l:Layer) OPTIONAL MATCH (l)-[:FEEDS]->(m:Layer) "
        "RETURN a.key AS key, a.layers AS layers, a.edges AS edges, count(DISTINCT l) AS found, count(m) AS fed",
    )["rows"]
    assert len(graphs) == 4
    assert all((row["layers"], row["edges"]) == (row["found"], row["fed"]) for row in graphs)
    curves = user.json("query", ours + "RETURN e.epochs AS epochs, e.curve_epoch AS curve, e.curve_valid_mse AS mse")
    assert all(row["curve"] == list(range(1, row["epochs"] + 1)) for row in curves["rows"])
    assert all(len(row["mse"]) == row["epochs"] > 0 for row in curves["rows"])
    pairs = user.json(
        "query",
        "MATCH (a:Architecture)-[d:DISTANCE]->(b:Architecture) "
        "RETURN a.key AS a, b.key AS b, size(d.otmann) AS k, size(d.otmann_normalised) AS m",
    )["rows"]
    # The second study's agent compared its network with the four that it started from.
    assert len({(row["a"], row["b"]) for row in pairs}) == len(pairs) == 10
    assert all(row["a"] < row["b"] and (row["k"], row["m"]) == (4, 4) for row in pairs)


def _check_what_is_shown(user, key):
    shown = user.json("arch", "show", key[:10])
    assert shown["key"] == key
    assert shown["evaluations"]
    assert key[:8] in user.types("study", "show", "first").stdout
    assert user.json("study", "show", "first")["incumbent"].startswith("first#")
    near = user.types("arch", "show", "zzzz", code=2)
    assert near.stderr.startswith("error: unknown architecture 'zzzz'")


@pytest.mark.lasts(22)
def test_interrupted_it_hands_back_and_goes_on(user, store_settings):
    arguments = ("search", "--task", "diabetes", "--agent", "random", "--study", "interrupted", "--budget", "4")
    running = subprocess.Popen(
        user.command(*arguments), env=user.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    seen = []
    for line in running.stderr:
        seen.append(line)
        if " complete: " in line:
            break
    trainers = [child for child in psutil.Process(running.pid).children() if "trainer" in child.cmdline()]
    assert trainers, seen
    shown = [word for process in (psutil.Process(running.pid), *trainers) for word in process.cmdline()]
    assert store_settings.password is None or store_settings.password not in " ".join(shown)
    running.send_signal(signal.SIGINT)
    _, rest = running.communicate(timeout=60)
    assert running.returncode == 130, rest
    assert "Traceback" not in "".join(seen) + rest
    assert wait_until(lambda: not any(process.is_running() for process in trainers))
    held = user.json("query", "MATCH (p:Proposal) WHERE p.state = 'RUNNING' OR p.attempts > 0 RETURN p.id")
    assert held["rows"] == []
    assert user.json(*arguments)["evaluations"] == 4


@pytest.mark.lasts(10)
def test_trainers_may_be_elsewhere(user, tmp_path):
    arguments = ("search", "--task", table(tmp_path), "--agent", "random", "--study", "apart", "--budget", "2")
    search = subprocess.Popen(
        user.command(*arguments, "--trainers", "0", "--batch", "2", "--json"),
        env=user.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 120
    while not (user.json("query", "MATCH (p:Proposal {state: 'WAITING'}) RETURN p.id")["rows"]):
        assert time.monotonic() < deadline
    tally = user.json("trainer", "--study", "apart", "--slots", "2", "--idle", "3")
    found, problems = search.communicate(timeout=120)
    assert search.returncode == 0, problems
    assert tally["complete"] == json.loads(found)["evaluations"] == 2
    unknown = user.types("trainer", "--study", "aprat", code=2)
    assert re.search("unknown study 'aprat': did you mean apart", unknown.stderr)

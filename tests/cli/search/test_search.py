"""Whole searches, as a user types them: real agents and real training."""

import json
import os
import signal
import subprocess
import sys

import psutil
import pytest

from tests.support import wait_until
from tests.support.commands import serving, shell


@pytest.fixture
def user(archive, store_settings, tmp_path):
    with shell(store_settings, tmp_path) as opened:
        yield opened


def document(user, *arguments):
    return json.loads(user.types(*arguments, "--json").stdout)


def rows(user, query):
    return document(user, "query", query)["rows"]


@pytest.mark.lasts(8)
def test_a_search_a_resumption_and_a_warm_start(archive, user):
    with serving(archive):
        best = _check_searches(user)

    _check_what_is_stored(user)
    _check_what_is_shown(user, best["architecture"])


@pytest.mark.whole
@pytest.mark.lasts(6)
def test_cells_are_trained_without_a_table(archive, user):
    with serving(archive):
        for space in ("darts", "nasbench101", "nasbench201"):
            options = (
                "--task",
                "digits",
                "--space",
                space,
                "--agent",
                "random",
                "--budget",
                "1",
                "--trainers",
                "0",
            )
            found = document(user, "search", *options)
            assert (found["evaluations"], found["failed"], found["space"]) == (1, 0, space)
            assert found["protocol"] == "digits/cells-small"
            assert found["best"]["value"] > 0.05

    costs = rows(
        user, "MATCH (e:Evaluation) RETURN e.metric_params AS params, e.metric_flops AS flops"
    )
    assert len(costs) == 3 and all(
        1e3 < row["params"] < 1e6 and 1e4 < row["flops"] < 1e7 for row in costs
    )


def _check_searches(user):
    def search(study, budget, *more):
        options = ("--task", "diabetes", "--agent", "nasbot", "--study", study, "--trainers", "0")
        return document(user, "search", *options, "--budget", budget, *more)

    first = search("first", "2")
    assert (first["evaluations"], first["failed"], first["objective"]) == (2, 0, "valid_mse")
    best = first["best"]
    assert best["weights"].startswith("file://")
    assert os.path.getsize(best["weights"].removeprefix("file://")) > 0
    found = rows(
        user, "MATCH (e:Evaluation)-[:OF]->(a:Architecture) RETURN e.value AS value, a.key AS key"
    )
    values = {row["key"]: row["value"] for row in found}
    assert len(values) == 2
    assert best["value"] == min(values.values()) == values[best["architecture"]]

    # The same command again does nothing; a larger total goes on; what is there stays.
    again = user.types("search", "--task", "diabetes", "--agent", "nasbot", "--study", "first")
    assert "--budget is the total" in again.stderr
    assert search("first", "3")["evaluations"] == 3

    # Observations of the source count for the agent and beside the budget: its pool is not trained
    # a second time.
    warm = search("second", "1", "--warm-start", "first")
    assert (warm["evaluations"], warm["warm_started_from"]) == (1, ["first"])
    link = "MATCH (:Study {name: 'second'})-[:WARM_STARTED_FROM]->(s:Study) RETURN s.name AS name"
    assert [row["name"] for row in rows(user, link)] == ["first"]
    assert (
        len(rows(user, "MATCH (e:Evaluation)-[:OF]->(a:Architecture) RETURN DISTINCT a.key AS key"))
        == 4
    )
    unknown = user.types(
        "search", "--task", "diabetes", "--study", "third", "--warm-start", "frist", code=2
    )
    assert "did you mean first" in unknown.stderr
    nameless = user.types("search", "--task", "diabetes", "--study", "", code=2)
    (line,) = nameless.stderr.strip().splitlines()
    assert line.startswith("error: a new study needs a name") and "''" in line
    assert [study["study"] for study in document(user, "study", "list")["studies"]] == [
        "first",
        "second",
    ]
    return best


def _check_what_is_stored(user):
    """Every layer, edge, epoch and pair of one study is in the graph."""
    ours = (
        "MATCH (:Study {name: 'first'})-[:PROPOSED]->(:Proposal)-[:RESULTED_IN]->(e:Evaluation) "
        "MATCH (e)-[:OF]->(a:Architecture) "
    )
    graphs = rows(
        user,
        ours + "MATCH (a)-[:HAS_LAYER]->(l:Layer) OPTIONAL MATCH (l)-[:FEEDS]->(m:Layer) "
        "RETURN a.key AS key, a.layers AS layers, a.edges AS edges, count(DISTINCT l) AS found, count(m) AS fed",
    )
    assert len(graphs) == 3
    assert all((row["layers"], row["edges"]) == (row["found"], row["fed"]) for row in graphs)
    curves = rows(
        user, ours + "RETURN e.epochs AS epochs, e.curve_epoch AS curve, e.curve_valid_mse AS mse"
    )
    assert all(row["curve"] == list(range(1, row["epochs"] + 1)) for row in curves)
    assert all(len(row["mse"]) == row["epochs"] > 0 for row in curves)
    pairs = rows(
        user,
        "MATCH (a:Architecture)-[d:DISTANCE]->(b:Architecture) "
        "RETURN a.key AS a, b.key AS b, size(d.otmann) AS k, size(d.otmann_normalised) AS m",
    )
    # The second study's agent compared its network with the three that it started from.
    assert len({(row["a"], row["b"]) for row in pairs}) == len(pairs) == 6
    assert all(row["a"] < row["b"] and (row["k"], row["m"]) == (4, 4) for row in pairs)


def _check_what_is_shown(user, key):
    shown = document(user, "arch", "show", key[:10])
    assert shown["key"] == key
    assert shown["evaluations"]
    assert key[:8] in user.types("study", "show", "first").stdout
    assert document(user, "study", "show", "first")["incumbent"].startswith("first#")
    near = user.types("arch", "show", "zzzz", code=2)
    assert near.stderr.startswith("error: unknown architecture 'zzzz'")
    unknown = user.types("trainer", "--study", "frist", code=2)
    assert "unknown study 'frist': did you mean first" in unknown.stderr


@pytest.mark.lasts(15)
def test_interrupted_it_hands_back_and_goes_on(archive, user, store_settings, tmp_path):
    """The search, its trainer and its trial are separate processes, as they are for a user.

    A folder named `archive` in the current one is not taken for the package.
    """
    (tmp_path / "current" / "archive").mkdir(parents=True)
    arguments = (
        "search",
        "--task",
        "diabetes",
        "--agent",
        "rand",
        "--study",
        "interrupted",
        "--budget",
        "2",
    )
    command = [sys.executable, "-P", "-m", "archive.cli.main", *arguments]
    running = subprocess.Popen(
        command,
        env=user.environment,
        cwd=tmp_path / "current",
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    user.started.append(running)
    seen = []
    for line in running.stderr:
        seen.append(line)
        if " complete: " in line:
            break

    trainers = [
        child for child in psutil.Process(running.pid).children() if "trainer" in child.cmdline()
    ]
    assert trainers, seen
    shown = [
        word for process in (psutil.Process(running.pid), *trainers) for word in process.cmdline()
    ]
    assert store_settings.password is None or store_settings.password not in " ".join(shown)
    running.send_signal(signal.SIGINT)
    _, rest = running.communicate(timeout=60)
    assert running.returncode == 130, rest
    assert "Traceback" not in "".join(seen) + rest
    assert wait_until(lambda: not any(process.is_running() for process in trainers))
    assert (
        rows(user, "MATCH (p:Proposal) WHERE p.state = 'RUNNING' OR p.attempts > 0 RETURN p.id")
        == []
    )
    with serving(archive):
        assert document(user, *arguments, "--trainers", "0")["evaluations"] == 2

"""`python -m tests.benchmarks objectives`, as a user types it: fronts, bounds, refusals."""

from __future__ import annotations

import json

import pytest

from archive import spaces
from archive.architecture import codec
from tests.benchmarks import programs

CELLS = 24
GAPS = 18


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A table whose best cell has the greatest latency: all cells are on the front but those of odd
    number."""
    path = tmp_path_factory.mktemp("table") / "cells.csv"
    cells = spaces.get("nasbench201").members()[::300][:CELLS]
    lines = [
        f"{codec.to_nasbench201(cell)},{at},{at + 1 + 100 * (at % 2)}"
        for at, cell in enumerate(cells)
    ]
    path.write_text("\n".join(["arch_str,score,latency_ms", *lines]))
    return f"table:{path}#score"


@pytest.fixture(scope="module")
def gaps(tmp_path_factory):
    """A table of three decisions, with missing and infinite latencies, and without two of the
    scores."""
    path = tmp_path_factory.mktemp("table") / "gaps.csv"
    lines = ["set:width,set:depth,set:act,score,latency_ms,params"]
    for at in range(GAPS):
        latency = "" if at % 5 == 1 else "inf" if at == 8 else 20 - at
        score = "" if at in (3, 12) else at * 7 % GAPS
        lines.append(f"w{at % 3},d{at // 3 % 3},a{at // 9},{score},{latency},{1 + at * 5 % GAPS}")

    path.write_text("\n".join(lines))
    return f"table:{path}#score"


@pytest.fixture(scope="module")
def flat(tmp_path_factory):
    """A table whose networks have one latency."""
    path = tmp_path_factory.mktemp("table") / "flat.csv"
    path.write_text("set:width,score,latency_ms\na,1,4\nb,2,4\nc,3,\n")
    return f"table:{path}#score"


@pytest.fixture
def types(table, capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("ARCHIVE_HOME", str(tmp_path))

    def command(*arguments, code=0, agents=("random", "nsga2"), task=table):
        chosen = [f"--agent={name}" for name in agents]
        with pytest.raises(SystemExit) as ended:
            programs.main(["objectives", "--task", task, *chosen, *arguments])

        shown = capsys.readouterr()
        assert ended.value.code == code, shown.err
        return shown.out if code == 0 else shown.err

    return command


@pytest.mark.whole
def test_a_search_of_the_whole_table_has_its_hypervolume(types):
    shown = json.loads(
        types("--cost", "latency_ms", "--seeds", "2", "--budget", str(CELLS), "--json")
    )
    assert (shown["networks"], shown["front"]) == (CELLS, CELLS // 2 + 1)
    assert [row["agent"] for row in shown["rows"]] == ["random", "nsga2"]
    for row in shown["rows"]:
        assert list(row["shares"]) == ["20", str(CELLS)]
        assert row["shares"][str(CELLS)] == pytest.approx([1.0, 1.0])
        assert all(0.0 < share < 1.0 for share in row["shares"]["20"])


def test_a_network_without_a_value_or_a_cost_adds_no_hypervolume(types, gaps):
    whole = [
        "--cost",
        "latency_ms",
        "--cost",
        "params",
        "--seeds",
        "3",
        "--budget",
        str(GAPS),
        "--json",
    ]
    shown = json.loads(types(*whole, task=gaps))
    assert shown["networks"] == GAPS - 7
    for row in shown["rows"]:
        assert row["shares"][str(GAPS)] == pytest.approx([1.0] * 3)


def test_a_known_bound_restricts_the_space_and_a_measured_one_the_results(types):
    half = ["--constraint", "latency_ms@0.5", "--seeds", "1", "--budget", str(CELLS), "--json"]
    known = json.loads(types(*half, agents=["random"]))
    assert known["constraints"] == [f"latency_ms<={CELLS - 1}"]
    [row] = known["rows"]
    assert known["feasible"] == CELLS // 2 and row["infeasible"] == 0
    assert row["median"] == row["queries"][0] <= CELLS // 2
    [row] = json.loads(types(*half, "--measured", "latency_ms", agents=["random"]))["rows"]
    assert row["queries"][0] is not None and row["infeasible"] > 0


def test_a_share_is_one_of_the_networks_with_the_cost_and_the_best_one_has_a_value(types, gaps):
    bounds = ["--constraint", "latency_ms@1.0", "--seeds", "3", "--budget", str(GAPS), "--json"]
    shown = json.loads(types(*bounds, task=gaps))
    assert shown["constraints"] == ["latency_ms<=20"]
    assert (shown["feasible"], shown["networks"]) == (GAPS - 5, GAPS)
    for row in shown["rows"]:
        assert all(1 <= queries <= GAPS - 7 for queries in row["queries"])


def test_networks_without_a_value_are_not_the_best(types, gaps):
    refused = types(
        "--constraint", "latency_ms<=8", "--constraint", "latency_ms>7", code=2, task=gaps
    )
    assert "no network of gaps-score that meets the constraints has a value" in refused


def test_a_search_that_finds_nothing_counts_as_its_budget(types):
    shown = types(
        "--constraint", "latency_ms<=200", "--seeds", "1", "--budget", "1", agents=["random"]
    )
    assert "1+" in shown


@pytest.mark.parametrize(
    ("arguments", "agents", "message"),
    [
        ([], ["random"], "--cost, or the bounds with --constraint"),
        (
            ["--cost", "latency_ms", "--constraint", "latency_ms<3"],
            ["random"],
            "--cost, or the bounds",
        ),
        (["--cost", "latency_ms", "--measured", "latency_ms"], ["random"], "it needs --constraint"),
        (["--cost", "latency"], ["random"], "latency_ms"),
        (["--cost", "latency_ms", "--cost", "latency_ms"], ["random"], "need different names"),
        (
            ["--constraint", "latency_ms<3", "--constraint", "latency_ms<=9"],
            ["random"],
            "one bound of each kind",
        ),
        (["--constraint", "flops<3"], ["random"], "flops"),
        (["--constraint", "latency_ms@2"], ["random"], "in (0, 1], got '2'"),
        (["--constraint", "latency_ms<0"], ["random"], "no network"),
        (["--cost", "latency_ms"], ["nasbot"], "nasbot searches for one objective"),
    ],
)
def test_mistakes_are_named(arguments, agents, message, types):
    assert message in types(*arguments, "--budget", "2", code=2, agents=agents)


def test_a_table_without_a_hypervolume_is_refused(types, flat):
    refused = types("--cost", "latency_ms", "--budget", "2", code=2, task=flat)
    assert "differ in each of score, latency_ms" in refused and "2 have a value of each" in refused

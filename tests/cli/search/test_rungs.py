"""`archive search --rungs` on each server: its options, and its output."""

from __future__ import annotations

import json

import pytest

from tests.support.commands import serving, shell, table


@pytest.fixture
def user(archive, store_settings, tmp_path):
    with shell(store_settings, tmp_path) as opened:
        yield opened


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ("--rungs", "2;6"),
            "--rungs takes numbers of epochs (2,6,18) or how many rungs (3), got '2;6'",
        ),
        (("--rungs", "6,2"), "increasing numbers of epochs, got 6, 2, 60"),
        (("--rungs", "2,100"), "beyond the protocol's 60 epochs, got 100"),
        (("--rungs", "9"), "9 rungs, reduced by 3 each, need 6561 epochs, got 60"),
        (
            ("--rungs", "2,6", "--protocol", "diabetes/1+morph"),
            "those of diabetes/1+morph inherit weights, got 2,6",
        ),
        (("--reduction", "4"), "--reduction needs --rungs, got --reduction 4 alone"),
    ],
)
def test_what_are_no_rungs_is_one_line(user, options, said):
    done = user.types("search", "--task", "diabetes", *options, code=2)
    assert said in done.stderr and len(done.stderr.splitlines()) == 1


def test_a_table_has_nothing_to_pause(user, tmp_path):
    done = user.types(
        "search", "--task", table(tmp_path), "--agent", "rand", "--rungs", "2,6", code=2
    )
    assert "a table answers the task" in done.stderr and "got 2,6" in done.stderr


def test_a_search_with_rungs_and_what_is_shown_of_it(archive, user):
    task = ("--task", "diabetes", "--space", "mlp")
    options = ("search", *task, "--agent", "rand", "--study", "raced", "--trainers", "0")
    rungs = ("--budget", "4", "--rungs", "2,6", "--reduction", "2")
    with serving(archive):
        found = json.loads(user.types(*options, *rungs, "--json").stdout)

    assert found["evaluations"] == 4 and found["failed"] == 0
    assert 1 <= 4 - found["pruned"] <= 2
    shown = json.loads(user.types("study", "show", "raced", "--json").stdout)
    assert shown["rungs"] == {"epochs": [2, 6, 60], "reduction": 2}
    assert {view["rung"] for view in shown["proposals"]} >= {1, 3}
    assert shown["incumbent"] == found["best"]["proposal"]
    (best,) = [
        view
        for view in shown["proposals"]
        if view["number"] == int(shown["incumbent"].split("#")[1])
    ]
    assert (best["state"], best["rung"]) == ("complete", 3)
    text = user.types("study", "show", "raced").stdout
    assert "2, 6, 60 epochs, one of 2 continues" in text and "1/3" in text
    log = user.types("study", "log", "raced", "--follow").stdout
    assert (
        "2 epochs, at rung 1" in log
        and "continues to rung 2" in log
        and "continues to rung 3" in log
    )
    # Other rungs are another study; without the option, it goes on with those that it has.
    told = user.types(*options, "--rungs", "3", code=2)
    assert "exists with rungs at 2, 6, 60 epochs, one of 2 continues, got" in told.stderr
    assert json.loads(user.types(*options, "--json").stdout)["evaluations"] == 4


@pytest.mark.whole
def test_a_measured_constraint_is_recorded_at_every_rung_and_decides(archive, user):
    task = (
        "--task",
        "diabetes",
        "--space",
        "mlp",
        "--agent",
        "rand",
        "--study",
        "raced",
        "--trainers",
        "0",
    )
    rungs = (
        "--budget",
        "4",
        "--rungs",
        "2,6",
        "--reduction",
        "2",
        "--constraint",
        "latency_ms<=1e-6",
    )
    with serving(archive):
        # No network is as fast: the fastest ones of each rung continue, and none is the best.
        user.types("search", *task, *rungs, code=3)

    rows = archive.query(
        "MATCH (p:Proposal)-[:RESULTED_IN]->(e) RETURN p.rung_values, p.rung_constrained, "
        "e.metric_latency_ms"
    ).rows
    assert [len(values) for values, *_ in rows] == [len(constrained) for _, constrained, _ in rows]
    assert all(constrained[-1] == latency for _, constrained, latency in rows)
    fastest = min(rows, key=lambda row: row[1][0])
    assert len(fastest[0]) > 1

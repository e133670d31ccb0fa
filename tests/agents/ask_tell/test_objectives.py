"""Ask and tell with several objectives: values by name or in order, the Pareto set, replays,
mistakes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from archive import agents
from archive.agents.replay import recheck
from archive.errors import StudyConflictError, UnknownNameError, UsageError
from archive.store.records import State
from tests.support.stores import cells

NAMES = ["accuracy", "latency_ms", "wins:maximise"]


@pytest.fixture
def study(archive):
    return agents.study(archive, "mine", "nasbench201", objective=NAMES, seed=1)


def test_values_are_told_in_order_by_name_or_beside_the_first(archive, study):
    a, b, c = study.ask("random", 3)
    assert study.tell(a, (0.5, 3.0, 1))
    assert study.tell(b, {"wins": 2, "accuracy": 0.4, "latency_ms": 9.0}, metrics={"loss": 0.1})
    assert study.tell(c, 0.3, metrics={"latency_ms": 1.0, "wins": 0})
    # The first result told is kept, in all objectives.
    assert not study.tell(c, (0.9, 1.0, 0))
    assert not study.tell(c, (0.3, 1.0, 7))
    assert study.tell(c, (0.3, 1.0, 0))
    assert [each.metrics for each in study.evaluations()] == [
        {"accuracy": 0.5, "latency_ms": 3.0, "wins": 1.0},
        {"accuracy": 0.4, "latency_ms": 9.0, "wins": 2.0, "loss": 0.1},
        {"accuracy": 0.3, "latency_ms": 1.0, "wins": 0.0},
    ]
    assert study.best().value == 0.5
    assert study.pareto_set().values == ((0.5, 3.0, 1.0), (0.4, 9.0, 2.0), (0.3, 1.0, 0.0))
    # Opened again, with and without the objectives.
    assert agents.study(archive, "mine").record.objectives == study.record.objectives
    assert [each.direction for each in study.record.objectives] == [
        "maximise",
        "minimise",
        "maximise",
    ]
    for others in (NAMES[:2], "accuracy", "accuracy:maximise"):
        with pytest.raises(StudyConflictError, match="exists with the objectives"):
            agents.study(archive, "mine", objective=others)


def test_arrays_stand_for_their_values(archive, study):
    a, b = study.ask("random", 2)
    assert study.tell(a, np.array([0.5, 3.0, 1.0]))
    assert study.tell(b, {"accuracy": np.float32(0.25), "latency_ms": np.array(9), "wins": 2})
    assert study.pareto_set().values == ((0.5, 3.0, 1.0), (0.25, 9.0, 2.0))
    with pytest.raises(
        UsageError, match="those of accuracy, latency_ms, wins, in this order, got 2"
    ):
        study.tell(b, np.zeros(2))

    one = agents.study(archive, "one", "nasbench201")
    assert [
        one.tell(asked, told)
        for asked, told in zip(one.ask("random", 2), ([0.5], np.array([0.25])), strict=True)
    ] == [True, True]
    assert [each.value for each in one.evaluations()] == [0.5, 0.25]


def test_values_that_are_missing_or_no_number(archive, study):
    (asked,) = study.ask("random")
    for told, message in (
        (0.5, "a value of each objective, accuracy, latency_ms, wins; there is none of latency_ms"),
        ({"accuracy": 1, "latency": 2}, "must be of accuracy, latency_ms, wins, got 'latency'"),
        ((1.0, 2.0), "those of accuracy, latency_ms, wins, in this order, got 2"),
        ((1.0, "fast", 3.0), "latency_ms must be a number, got 'fast'"),
    ):
        with pytest.raises(UsageError, match=message):
            study.tell(asked, told)

    with pytest.raises(UsageError, match="wins must be a finite number, got inf"):
        study.tell(asked.id, (1.0, 2.0, math.inf))

    assert not study.tell(asked, (1.0, math.nan, 3.0))
    assert [each.reason for each in archive.proposals.list("mine")] == [
        "the value of latency_ms is nan"
    ]


def test_a_whole_search_learns_all_objectives_and_can_be_replayed(archive, study):
    with pytest.raises(UsageError, match="the agent nasbot searches for one objective"):
        study.ask("nasbot")

    study.enqueue(cells(3)[2], motivation="by hand")
    study.run(
        lambda each: (len(each.layers), len(each.edges), sum(map(ord, each.key))),
        budget=12,
        agent="nsga2",
    )
    assert study.archive.studies.counts("mine")[State.COMPLETE] == 12
    assert study.pareto_set().history[-1][1] > 0.0
    report = recheck(archive, "mine")
    assert (len(report.same), report.differing) == (11, ())


def test_objectives_that_cannot_be(archive):
    for names, error, message in (
        (
            ["accuracy", "wins"],
            UnknownNameError,
            "unknown objective 'wins': write wins:minimise or wins:maximise",
        ),
        (["accuracy", "loss:down"], UsageError, "NAME:minimise or NAME:maximise, got 'loss:down'"),
        (["accuracy", "accuracy"], UsageError, "need different names"),
        ([], UsageError, "needs an objective"),
    ):
        with pytest.raises(error, match=message):
            agents.study(archive, "new", "nasbench201", objective=names)

    with pytest.raises(UsageError, match="direction of one of several objectives is part of it"):
        agents.study(archive, "new", "nasbench201", objective=NAMES, direction="minimise")

    assert archive.studies.names() == []


def test_the_only_objective_has_its_direction(archive):
    for name, settings, expected in (
        ("a", {"objective": "cost:minimise"}, ("cost", "minimise")),
        ("b", {"objective": "valid_loss"}, ("valid_loss", "minimise")),
        ("c", {"objective": "loss", "direction": "maximise"}, ("loss", "maximise")),
        ("d", {"objective": "wins"}, ("wins", "maximise")),
        ("e", {"direction": "minimise"}, ("value", "minimise")),
    ):
        for _ in range(2):
            record = agents.study(archive, name, "nasbench201", **settings).record
            assert (record.objective, record.direction) == expected

    # A study keeps its direction where none is given.
    assert agents.study(archive, "c", objective="loss").record.direction == "maximise"
    with pytest.raises(StudyConflictError, match="exists with direction maximise, got minimise"):
        agents.study(archive, "c", objective="loss:minimise")

    for text, message in (
        ("loss:down", "NAME:minimise or NAME:maximise, got 'loss:down'"),
        ("x:minimise", "leave one"),
    ):
        with pytest.raises(UsageError, match=message):
            agents.study(archive, "new", "nasbench201", objective=text, direction="maximise")

    assert "new" not in archive.studies.names()


def test_a_reference_point_has_a_number_for_each_objective(study):
    for reference in (
        [0.0],
        (0.0, 9.0),
        [0.0, math.nan, 1.0],
        ["low", 9.0, 0.0],
        [[0.0, 9.0, 0.0]],
        0.0,
    ):
        with pytest.raises(
            UsageError, match="a finite number for each of accuracy, latency_ms, wins, got"
        ):
            study.pareto_set(reference)

    assert study.pareto_set((0.0, 9.0, 0.0)) is None
    study.tell(study.ask("random")[0], (0.5, 3.0, 1.0))
    assert study.pareto_set((0.0, 9.0, 0.0)).hypervolume == pytest.approx(0.5 * 6.0 * 1.0)

"""Studies with several objectives: stored, learnt from, reused, dumped, and their Pareto set."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from archive import agents
from archive.agents import provenance
from archive.errors import StudyConflictError, UsageError
from archive.exchange.load import load
from archive.objectives.pareto import hypervolume
from archive.queries.pareto import pareto_set
from archive.store.records import Objective, Result, State
from archive.store.studies.creation import objective_names
from tests.conftest import wipe
from tests.support.dumped import dumped
from tests.support.stores import cells, propose, study, suggest

FURTHER = (Objective("loss", "minimise"), Objective("speed"))


def told(archive, rows, name="study", **settings):
    """Propose one cell for each row of accuracy, loss and speed, and complete it with them;

    None is left out.
    """
    propose(archive, cells(len(rows)), name, objective="accuracy", further=FURTHER, **settings)
    for accuracy, loss, speed in rows:
        claim = archive.proposals.claim("trainer", study=name)
        metrics = {"accuracy": accuracy, "loss": loss, "speed": speed}
        result = Result(
            accuracy, {key: value for key, value in metrics.items() if value is not None}
        )
        archive.proposals.complete(claim.id, claim.token, result)


ROWS = [
    (0.5, 3.0, 1.0),
    (0.6, 3.0, 1.0),
    (0.9, 4.0, None),
    (0.4, 1.0, 2.0),
    (0.6, 3.0, 1.0),
    (0.6, math.nan, 5.0),
    (0.3, 5.0, 0.5),
]


def test_the_pareto_set_of_a_study(archive):
    told(archive, ROWS)
    snapshot = archive.studies.snapshot("study")
    found = pareto_set(snapshot)
    # The fifth result equals the second; the third and sixth lack an objective, and dominate
    # nothing.
    assert [view.number for view in found.proposals] == [1, 3]
    assert found.values == ((0.6, 3.0, 1.0), (0.4, 1.0, 2.0))
    assert (found.reference, found.left_out) == ((0.3, 5.0, 0.5), 2)
    scores = np.array([[0.6, -3.0, 1.0], [0.4, -1.0, 2.0]])
    assert found.hypervolume == pytest.approx(hypervolume(scores, np.array([0.3, -5.0, 0.5])))
    assert [number for number, _ in found.history] == [0, 1, 3, 4, 6]
    assert found.history[0][1] == pytest.approx(0.2 * 2.0 * 0.5)
    assert found.history[2][1] == found.history[-1][1] == found.hypervolume
    assert pareto_set(snapshot, (0.55, 3.5, 0.0)).hypervolume == pytest.approx(0.05 * 0.5 * 1.0)
    answer = archive.named("pareto-set", study="study")
    assert answer.columns == ["number", "architecture", "objectives", "values"]
    named = ["accuracy", "loss", "speed"]
    assert [tuple(row) for row in answer.rows] == [
        (view.number, view.architecture_key, named, list(values))
        for view, values in zip(found.proposals, found.values, strict=True)
    ]


def test_the_best_result_is_one_with_a_value_of_each_objective(archive):
    lacking = [(0.9, 4.0, None), (0.8, math.inf, 1.0), (0.7, math.nan, 1.0)]
    for name, rows, best in (
        ("some", [*lacking, *ROWS], 0.6),
        ("none", lacking, 0.9),
        ("few", lacking[2:], 0.7),
    ):
        told(archive, rows, name)
        snapshot = archive.studies.snapshot(name)
        assert snapshot.incumbent.value == best
        assert snapshot.best(1) == [snapshot.incumbent]
        assert agents.study(archive, name).best().value == best

    assert [summary.best for summary in archive.studies.list()] == [0.6, 0.9, 0.7]
    assert archive.studies.list()[0].counts == {State.COMPLETE: 10}
    snapshot = archive.studies.snapshot("some")
    front = [view.number for view in pareto_set(snapshot).proposals]
    assert snapshot.incumbent.number == front[0]
    assert [row[0] for row in archive.named("pareto-set", study="some").rows] == front
    # Those that lack a value come after all others.
    assert [view.value for view in snapshot.best(20)] == [
        0.6,
        0.6,
        0.5,
        0.4,
        0.3,
        0.9,
        0.9,
        0.8,
        0.7,
        0.6,
    ]


def test_the_pareto_set_of_one_objective_is_its_best_result(archive):
    archive.studies.create(study())
    assert pareto_set(archive.studies.snapshot("study")) is None
    agent = archive.proposals.register_agent("random", {}, "1")
    outcomes = [Result(value) for value in (1.0, 3.0, 2.0)]
    archive.proposals.create("study", agent, suggest(cells(3)), outcomes=outcomes)
    found = pareto_set(archive.studies.snapshot("study"))
    assert [view.number for view in found.proposals] == [1]
    assert [volume for _, volume in found.history] == [0.0, 2.0, 2.0]
    assert [row[0] for row in archive.named("pareto-set", study="study").rows] == [1]


@pytest.mark.every_server
def test_an_agent_learns_all_objectives_with_their_signs(archive):
    told(archive, ROWS)
    stored = archive.studies.get("study")
    assert stored.objectives == (Objective("accuracy"), *FURTHER)
    history = provenance.history_of(archive, stored)[0]
    assert history.goals.objectives == stored.objectives
    further = np.array([seen.further for seen in history.observations])
    expected = [(-loss, math.nan if speed is None else speed) for _, loss, speed in ROWS]
    assert np.array_equal(further, np.array(expected), equal_nan=True)
    assert [seen.score for seen in history.observations] == [accuracy for accuracy, _, _ in ROWS]


def test_a_study_with_one_objective_has_no_goals(archive):
    propose(archive, cells(2))
    history = provenance.history_of(archive, archive.studies.get("study"))[0]
    assert history.goals is None
    row = archive.query("MATCH (s:Study) RETURN s.objectives IS NULL, s.directions IS NULL").rows[0]
    assert list(row) == [True, True]


def test_other_objectives_are_a_conflict(archive):
    archive.studies.create(study(further=FURTHER))
    for further in ((), FURTHER[:1], FURTHER[::-1], (Objective("loss"), FURTHER[1])):
        with pytest.raises(
            StudyConflictError, match="objectives accuracy:maximise, loss:minimise, speed"
        ):
            archive.studies.create(study(further=further))


@pytest.mark.parametrize(
    ("further", "message"),
    [
        ((Objective("accuracy"),), "need different names, got 'accuracy', 'accuracy'"),
        ((Objective(""),), "need different names, got 'accuracy', ''"),
        (
            (Objective("loss", "down"),),
            "direction of loss must be maximise or minimise, got 'down'",
        ),
        (tuple(map(Objective, "abcd")), "at most 4 objectives, got 5: accuracy, a, b, c, d"),
    ],
)
def test_invalid_objectives(archive, further, message):
    with pytest.raises(UsageError, match=message):
        archive.studies.create(study(further=further))

    assert archive.studies.names() == []


def test_a_result_without_one_of_the_objectives_answers_no_proposal(archive):
    told(archive, ROWS)
    for further, expected in ((FURTHER, 5), (FURTHER[:1], 6), ((), 7)):
        asked = replace(archive.studies.get("study"), name="other", further=further)
        known = archive.answers.known(asked, suggest(cells(len(ROWS))))
        assert sum(result is not None for result in known) == expected


def test_a_dump_keeps_the_objectives(archive, connection, tmp_path):
    told(archive, ROWS)
    file = tmp_path / "dump.jsonl.gz"
    first = dumped(archive, file)
    before = pareto_set(archive.studies.snapshot("study"))
    wipe(connection)
    load(connection, file)
    assert archive.studies.get("study").further == FURTHER
    assert pareto_set(archive.studies.snapshot("study")).values == before.values
    assert dumped(archive, file) == first


def test_queries_see_the_names_of_several_objectives():
    assert objective_names(study(objective="accuracy", further=FURTHER)) == [
        *("accuracy", "loss", "speed")
    ]
    assert objective_names(study(objective="accuracy")) is None

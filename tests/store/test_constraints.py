"""Studies with constraints: stored, compared, learnt from, dumped; only results that meet them are
the best."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from archive.agents import provenance
from archive.constraints import Constraint
from archive.errors import StudyConflictError, UsageError
from archive.exchange.load import load
from archive.queries.pareto import pareto_set
from archive.store.records import Objective, Result
from tests.conftest import wipe
from tests.support.dumped import dumped
from tests.support.stores import cells, propose, study, suggest

LIMITS = (
    Constraint("params", "<=", 10.0),
    Constraint("latency_ms", "<", 5.0),
    Constraint("accuracy", ">", 0.1),
)
# Accuracy, parameters, latency; None is left out.
ROWS = [
    (0.9, 11.0, 1.0),
    (0.5, 10.0, 4.0),
    (0.8, 10.0, 5.0),
    (0.7, 2.0, None),
    (0.6, 9.0, math.nan),
    (0.4, 1.0, 1.0),
    (0.1, 1.0, 0.5),
]


def told(archive, rows, **settings):
    propose(archive, cells(len(rows)), objective="accuracy", constraints=LIMITS, **settings)
    for accuracy, params, latency in rows:
        claim = archive.proposals.claim("trainer", study="study")
        metrics = {"accuracy": accuracy, "params": params, "latency_ms": latency}
        result = Result(
            accuracy, {name: value for name, value in metrics.items() if value is not None}
        )
        archive.proposals.complete(claim.id, claim.token, result)


@pytest.mark.every_server
def test_the_best_result_is_the_best_one_that_meets_the_constraints(archive):
    told(archive, ROWS, further=(Objective("params", "minimise"),))
    archive.studies.create(study("free", objective="accuracy"))
    assert archive.studies.get("study").constraints == LIMITS
    snapshot = archive.studies.snapshot("study")
    assert [view.number for view in snapshot.best(9)] == [1, 5]
    assert snapshot.incumbent.number == snapshot.nearest.number == 1
    assert {one.study.name: one.best for one in archive.studies.list()} == {
        "study": 0.5,
        "free": None,
    }
    assert [view.number for view in pareto_set(snapshot).proposals] == [1, 5]
    assert [row[0] for row in archive.named("pareto-set", study="study").rows] == [1, 5]
    history = provenance.history_of(archive, snapshot.study)[0]
    assert history.constraints.met(history.observations).tolist() == [
        each in (1, 5) for each in range(7)
    ]
    known = provenance.history_of(
        archive, snapshot.study, {"params": lambda networks: [20.0] * len(networks)}
    )[0]
    assert [len(seen.measured) for seen in known.observations] == [2] * 7
    assert not known.constraints.met(known.observations).any()
    about = "MATCH (s:Study {name: 'study'}) RETURN s.constrained, s.operators, s.bounds"
    names = [each.name for each in LIMITS]
    assert list(archive.query(about).rows[0]) == [names, ["<=", "<", ">"], [10.0, 5.0, 0.1]]


def test_without_a_result_that_meets_them_there_is_a_nearest_one(archive):
    told(archive, [(0.9, 40.0, 1.0), (0.5, 12.0, 1.0), (0.4, 11.0, 9.0), (0.3, 9.0, None)])
    snapshot = archive.studies.snapshot("study")
    assert (snapshot.incumbent, snapshot.best(1), pareto_set(snapshot)) == (None, [], None)
    assert snapshot.nearest.number == 1
    assert archive.studies.list()[0].best is None


def test_other_constraints_are_a_conflict(archive):
    archive.studies.create(study(constraints=LIMITS))
    assert archive.studies.create(study(constraints=LIMITS[::-1])).constraints == LIMITS
    for other in ((), LIMITS[:2], (*LIMITS[:2], replace(LIMITS[2], bound=0.2))):
        with pytest.raises(
            StudyConflictError,
            match=r"exists with the constraints params<=10, latency_ms<5, "
            r"accuracy>0.1",
        ):
            archive.studies.create(study(constraints=other))


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        ((Constraint("", "<=", 1.0),), "a constraint is NAME<=NUMBER"),
        ((Constraint("a", "==", 1.0),), "got 'a==1'"),
        ((Constraint("a", "<", math.nan),), "got 'a<nan'"),
        (
            (Constraint("a", "<", 1.0), Constraint("a", "<=", 2.0)),
            "one bound of each kind on a, got a<1, a<=2",
        ),
    ],
)
def test_invalid_constraints(archive, constraints, message):
    with pytest.raises(UsageError, match=message):
        archive.studies.create(study(constraints=constraints))

    assert archive.studies.names() == []


def test_a_result_without_a_constrained_metric_answers_no_proposal(archive):
    told(archive, ROWS)
    for constraints, expected in ((LIMITS, 5), (LIMITS[:1], 7), ((), 7)):
        asked = replace(archive.studies.get("study"), name="other", constraints=constraints)
        known = archive.answers.known(asked, suggest(cells(len(ROWS))))
        assert sum(result is not None for result in known) == expected


def test_a_dump_keeps_the_constraints(archive, connection, tmp_path):
    told(archive, ROWS)
    file = tmp_path / "dump.jsonl.gz"
    first = dumped(archive, file)
    wipe(connection)
    load(connection, file)
    assert archive.studies.get("study").constraints == LIMITS
    assert dumped(archive, file) == first

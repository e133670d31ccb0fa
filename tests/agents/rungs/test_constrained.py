"""Paused networks under constraints: what agents learn from them, and replays after their trainings
continued."""

from __future__ import annotations

import math

import pytest

from archive.agents import provenance
from archive.agents.replay import StudyReplay
from archive.agents.rungs import as_of
from archive.constraints import parse
from archive.queue.updates import Completion
from archive.rungs import Rungs
from archive.store.records import Evaluation, Result, Study
from tests.support.stores import cells, propose

RUNGS = Rungs((2, 4), 2)
LIMITS = (parse("latency_ms<=5"), parse("accuracy>=0.8"))


@pytest.fixture
def told(archive):
    """Returns a function that ends the next training at its rung with these accuracies, and this
    latency."""
    config = {"rungs": RUNGS.as_config()}
    propose(archive, cells(4), objective="accuracy", constraints=LIMITS, config=config)

    def end(curve, latency):
        held = archive.proposals.claim("w", study="study")
        metrics = {"accuracy": curve[-1], "latency_ms": latency}
        result = Result(max(curve), metrics, {"accuracy": curve}, epochs=len(curve))
        rung = held.proposal.rung
        assert archive.proposals.settle(
            [Completion(held.id, held.token, result, rung == 0, rung)]
        ) == [True]

    return end


def test_a_paused_network_has_its_latency_and_the_projection_of_its_accuracy(archive, told):
    told([0.5, 0.6], 4.0)
    told([0.4, 0.5], 4.5)
    told([0.5, 0.6, 0.7, 0.9], 4.2)
    history, _ = provenance.history_of(archive, archive.studies.get("study"))
    whole, paused = history.observations
    assert whole.measured == (4.2, 0.9)
    # It violates the bound after two epochs, and the whole training is expected to come closer.
    assert paused.measured == (4.5, paused.score) and 0.5 < paused.score <= 0.9
    assert history.constraints.met(history.observations).tolist() == [True, paused.score >= 0.8]


def test_a_history_before_a_promotion_is_restored_after_it(archive, told):
    study = archive.studies.get("study")
    told([0.5, 0.6], 4.0)
    told([0.4, 0.5], 6.0)
    early, basis = provenance.history_of(archive, study)
    told([0.5, 0.6, 0.7, 0.9], 5.5)
    late, later_basis = provenance.history_of(archive, study)
    assert basis["partial"] == {"study": {"2": "0-1"}}
    assert [one.measured[0] for one in early.observations] == [4.0, 6.0]
    assert [one.measured[0] for one in late.observations] == [5.5, 6.0]
    past = StudyReplay(archive, "study")
    # else those that a proposal names as its basis
    past._evaluations = archive.studies.evaluations("study")
    for history, known in ((early, basis), (late, later_basis)):
        restored = past.history(known)
        assert restored.observations == history.observations
        assert (
            restored.constraints.violations(restored.observations).tolist()
            == history.constraints.violations(history.observations).tolist()
        )


def test_only_quantities_on_record_are_restored():
    (cell,) = cells(1)
    curve = {"accuracy": [0.5, 0.6, 0.7, 0.9]}
    about = {
        "study": "s",
        "number": 0,
        "task": "t",
        "protocol": "t/1",
        "architecture": cell,
        "curve": curve,
    }
    metrics = {"latency_ms": 5.5, "loss": 0.1}
    now = Evaluation(
        "s#0",
        value=0.9,
        metrics=metrics,
        epochs=4,
        rung_constrained=(math.nan, 0.6, 5.5, 0.9),
        **about,
    )
    study = Study(
        "s", "t", "t/1", "nasbench201", constraints=LIMITS, config={"rungs": RUNGS.as_config()}
    )
    then = as_of(now, 2, "accuracy", study)
    assert (
        math.isnan(then.metrics["latency_ms"])
        and then.metrics["accuracy"] == 0.6
        and then.metrics["loss"] == 0.1
    )
    for unknown in (as_of(now, 3, "accuracy", study), as_of(now, 2, "accuracy")):
        assert unknown.metrics == metrics

"""The recommended Pareto set: by posterior means of each noisy objective, known costs exactly."""

from __future__ import annotations

import numpy as np
import pytest

from archive.agents import recommendation as of_one
from archive.agents.objectives import front
from archive.agents.objectives.recommendation import of_snapshot
from archive.agents.transfer.source_tasks import observation
from archive.constraints import parse
from archive.queries.pareto import pareto_set
from archive.spaces.nasbench201 import NasBench201
from archive.store.records import Objective, Result
from tests.support.stores import Repeat, Suggestion, cells, study

FURTHER = (Objective("loss", "minimise"), Objective("size", "minimise"))
NETWORKS = cells(8)


def sizes(networks):
    known = {one.functional_key: float(at) for at, one in enumerate(NETWORKS)}
    return np.array([known[one.functional_key] for one in networks])


def told(archive, *, seeds=True, name="study", spread=0.02, **settings):
    """Three evaluations of each of eight networks: a larger one is better in accuracy and loss, and
    one is lucky."""
    rng = np.random.default_rng(0)
    archive.studies.create(study(name, objective="accuracy", further=FURTHER, **settings))
    agent = archive.proposals.register_agent("random", {}, "1")
    repeats = 3 if seeds else 1
    suggestions = [(Repeat if at else Suggestion)(one) for one in NETWORKS for at in range(repeats)]
    outcomes = []
    for at in range(len(suggestions)):
        size = at // repeats
        noise = spread * rng.standard_normal(2) if seeds else np.zeros(2)
        accuracy = 0.1 * size + noise[0] + (0.4 if seeds and at == 6 else 0.0)
        # The accuracy of the fourth network is that of the third: it is dominated.
        accuracy -= 0.1 if size == 3 else 0.0
        metrics = {
            "accuracy": accuracy,
            "loss": 1.0 - 0.1 * min(size, 2) + noise[1],
            "size": float(size),
        }
        outcomes.append(Result(accuracy, metrics, seed=at if seeds else None))

    archive.proposals.create(name, agent, suggestions, outcomes=outcomes)
    return archive.studies.snapshot(name)


def test_networks_are_recommended_by_the_estimates_of_every_objective(archive, monkeypatch):
    snapshot = told(archive)
    found = of_snapshot(archive, snapshot, lambda _: {"size": sizes})
    assert found.noises[2] == 0.0 and 0.0 < found.noises[0] and 0.0 < found.noises[1]
    # Each column is what one objective alone would be estimated as.
    evaluations = archive.studies.evaluations("study")
    alone = [
        of_one.recommend(
            NasBench201(), [observation(one, better * one.metrics[name]) for one in evaluations]
        ).ranked
        for name, better in (("accuracy", 1.0), ("loss", -1.0))
    ]
    table = {}
    for ranked in alone:
        for one in ranked:
            table.setdefault(one.architecture.functional_key, []).append(
                (one.score, one.low, one.high)
            )

    rows = np.array(
        [
            [*(each[0] for each in table[one.functional_key]), -size]
            for size, one in enumerate(NETWORKS)
        ]
    )
    best = [
        at
        for at, row in enumerate(rows)
        if not any((other >= row).all() and (other > row).any() for other in rows)
    ]
    best.sort(key=lambda at: -rows[at, 0])
    assert [one.number // 3 for one in found.proposals] == best
    for at, estimates in zip(best, found.estimates, strict=True):
        expected = [*table[NETWORKS[at].functional_key], (-float(at),) * 3]
        assert np.array([[one.score, one.low, one.high] for one in estimates]) == pytest.approx(
            np.array(expected)
        )

    assert {one.evaluations for one in found.estimates[0]} == {3, 1}
    # The results have not changed.
    monkeypatch.setattr(of_one, "fit_networks", None)
    assert of_snapshot(archive, snapshot, lambda _: {"size": sizes}) == found


def test_without_noise_or_with_one_objective_there_is_no_recommendation(archive):
    assert of_snapshot(archive, told(archive, seeds=False)) is None
    archive.studies.create(study("one"))
    assert of_snapshot(archive, archive.studies.snapshot("one")) is None


def test_networks_that_violate_a_constraint_are_not_recommended(archive):
    snapshot = told(archive, constraints=(parse("size<=4"),))
    found = of_snapshot(archive, snapshot, lambda _: {"size": sizes})
    assert found.proposals and {one.number // 3 for one in found.proposals} <= {0, 1, 2, 3, 4}
    assert {one.number for one in pareto_set(snapshot).proposals} <= set(range(15))


def test_of_many_networks_those_of_the_first_ranks_are_estimated(archive, monkeypatch):
    snapshot = told(archive)
    monkeypatch.setattr(front, "MOST", 2)
    found = of_snapshot(archive, snapshot, lambda _: {"size": sizes})
    assert 1 <= len(found.proposals) <= 2
    assert {one.number for one in found.proposals} <= {
        one.number for one in pareto_set(snapshot).proposals
    }

"""Baselines of transfer: the best of the sources, and a random forest of all tasks."""

from __future__ import annotations

import numpy as np
import pytest

from archive import agents
from archive.agents.base import History, Observation, SourceStudy
from archive.agents.surrogates import outcome_transforms
from archive.agents.surrogates.random_forest import RandomForest
from archive.agents.surrogates.transformed import OutcomeTransformed
from archive.agents.transfer.pooled import PooledSources
from archive.errors import UsageError
from tests.support.histories import observed
from tests.support.listed import score, small_table


@pytest.fixture(scope="module")
def space(tmp_path_factory):
    return small_table(tmp_path_factory.mktemp("table"))


def source(networks, scores, study="s"):
    pairs = enumerate(zip(networks, scores, strict=True))
    seen = tuple(Observation(one, float(value), f"{study}#{at}") for at, (one, value) in pairs)
    return SourceStudy(study, study, f"{study}/1", networks[0].space, seen)


def proposed(agent, history, n):
    return [one.architecture for one in agent.propose(history, n, np.random.default_rng(0))]


def test_the_best_of_the_sources_come_in_turns_and_then_another_agent(space):
    networks = list(space.members())[:12]
    first = source(networks[:6], range(6))
    second = source(networks[6:], range(0, -6, -1), "other")
    # A lucky evaluation of the worst network does not change the order of the means.
    first = source([*networks[:6], networks[0], networks[0]], [*range(6), 20.0, -30.0])
    agent = agents.get("source-best", space, top=4)
    order = [networks[5], networks[6], networks[4], networks[7]]
    assert proposed(agent, History(sources=(first, second)), 4) == order
    known = History(observed(order[:1], [0.0]), sources=(first, second))
    later = proposed(agent, known, 5)
    assert later[:3] == order[1:]
    cold = agents.get("regularized-evolution", space)
    assert proposed(agent, History(), 3) == proposed(cold, History(), 3)


def test_it_does_not_follow_itself(space):
    with pytest.raises(UsageError, match="source-best"):
        agents.get("source-best", space, then="source-best")


def test_a_forest_of_all_tasks_begins_where_the_source_is_good(space):
    networks = list(space.members())
    one_source = source(networks[::2], [100.0 * score(one) for one in networks[::2]])
    forest = agents.get("random-forest", space, trees=10, sources=True)
    ranks = sorted((score(one) for one in networks), reverse=True)
    begun = proposed(forest, History(sources=(one_source,)), 3)
    assert max(ranks.index(score(one)) for one in begun) < len(networks) / 4
    # The incumbent is the task's own, in its own unit.
    pooled = PooledSources(
        space, OutcomeTransformed(RandomForest("path", 10), outcome_transforms.get("standardise"))
    )
    history = History(
        observed(networks[1:12:2], [score(one) for one in networks[1:12:2]]), sources=(one_source,)
    )
    scores = np.array([seen.score for seen in history.usable])
    surrogate = pooled.with_sources(pooled.surrogate, history)
    fitted = surrogate.fit(
        [seen.architecture for seen in history.usable], scores, np.random.default_rng(0)
    )
    assert fitted.posterior(networks[:3]).best == pytest.approx([scores.max()])
    assert pooled.with_sources(pooled.surrogate, History()) is pooled.surrogate

"""NASBOT, beyond the contract of every agent."""

from __future__ import annotations

import numpy as np
import pytest

from archive import agents, spaces
from archive.agents.base import History, Pending
from archive.errors import UnknownNameError, UsageError
from tests.support.histories import grown, observed

pytestmark = [pytest.mark.one_space, pytest.mark.usefixtures("few_candidates")]


def propose(agent, history, n=1, seed=0):
    return agent.propose(history, n, np.random.default_rng(seed))


def test_suggestions_say_why(space):
    history = grown(space, 14)
    (suggestion,) = propose(agents.get("nasbot", space), history)
    scores = [seen.score for seen in history.observations]
    assert suggestion.acquisition > 0.0
    assert suggestion.std > 0.0
    assert min(scores) - 1.0 < suggestion.mean < max(scores) + 1.0


def test_acquisition_is_in_score_units(space):
    history = grown(space, 14)
    scaled = History(
        observed(
            [o.architecture for o in history.observations], [8 * o.score for o in history.usable]
        )
    )
    (one,), (two,) = (
        propose(agents.get("nasbot", space, samples=3), each) for each in (history, scaled)
    )
    assert one.architecture == two.architecture
    assert two.acquisition == pytest.approx(8 * one.acquisition)
    assert (two.mean, two.std) == (pytest.approx(8 * one.mean), pytest.approx(8 * one.std))


def test_pending_proposals_push_the_next_one_away(space):
    history = grown(space, 14)
    agent = agents.get("nasbot", space, samples=3)
    (first,) = propose(agent, history)
    waiting = History(history.observations, (Pending(first.architecture),))
    (second,) = propose(agent, waiting)
    assert second.architecture.functional_key != first.architecture.functional_key


def test_memory_does_not_change_the_answer(space):
    history = grown(space, 14)
    used = agents.get("nasbot", space, samples=3)
    for seed in (1, 2):
        propose(used, history, seed=seed)

    assert propose(used, history) == propose(agents.get("nasbot", space, samples=3), history)


def test_better_than_blind_on_a_smooth_objective():
    """The mean score of its proposals exceeds that of RAND, which reaches the same networks."""
    space = spaces.get("mlp")

    def search(agent):
        history = History()
        for step in range(18):
            (suggestion,) = propose(agent, history, seed=step)
            networks = [*(o.architecture for o in history.observations), suggestion.architecture]
            history = History(observed(networks, [-abs(len(a.layers) - 14.0) for a in networks]))

        return np.mean([seen.score for seen in history.observations[8:]])

    nasbot = search(agents.get("nasbot", space, n_initial=8, samples=3))
    blind = search(agents.get("rand", space, n_initial=8))
    assert nasbot > blind


@pytest.mark.parametrize("acquisition", ["ei", "ucb", "pi"])
def test_acquisitions(acquisition):
    space = spaces.get("mlp")
    agent = agents.get("nasbot", space, acquisition=acquisition, samples=3)
    assert len(propose(agent, grown(space, 12), 2)) == 2


def test_settings_that_cannot_be():
    space = spaces.get("mlp")
    with pytest.raises(
        UsageError,
        match="ts must rank all candidates at once, and agent nasbot ranks them in several",
    ):
        agents.get("nasbot", space, acquisition="ts")

    with pytest.raises(UnknownNameError, match="unknown acquisition 'eu'"):
        agents.get("nasbot", space, acquisition="eu")

    with pytest.raises(UsageError, match="n_initial must be >= 0, got -1"):
        agents.get("nasbot", space, n_initial=-1)

    with pytest.raises(UsageError, match="samples must be >= 1, got 0"):
        agents.get("nasbot", space, samples=0)


def test_no_initial_pool_at_all(space):
    agent = agents.get("nasbot", space, n_initial=0, samples=3)
    assert len(propose(agent, History(), 3)) == 3
    assert len(propose(agent, grown(space, 2), 2)) == 2

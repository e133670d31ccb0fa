"""The first networks of a study of cells: random ones of the seed of the study, in one call or
several."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from archive import agents, spaces
from archive.agents.base import History, Observation, Pending, Suggestion, first_of_pool
from archive.agents.provenance import generator

KINDS = sorted(
    kind for kind in agents.names() if "n_initial" in agents.settings(kind) and kind != "arc"
)
# Settings that make agents cheaper to create.
CHEAP = {
    kind: {"candidates": "mutations"} for kind in KINDS if "candidates" in agents.settings(kind)
}
SPACE = spaces.get("nasbench201")


def keys(suggestions):
    return [suggestion.architecture.functional_key for suggestion in suggestions]


def begin(space, seed, *, n_initial=10, fail=(), finish=()):
    """The first networks of a study, proposed one by one; those at some positions fail or
    finish."""
    history = History()
    suggestions = []
    for at in range(n_initial + len(fail)):
        (suggestion,) = first_of_pool(space, history, n_initial, 1, generator(seed, history))
        suggestions.append(suggestion)
        network = suggestion.architecture
        if at in fail:
            history = replace(history, failed=(*history.failed, network))
        elif at in finish:
            seen = Observation(network, float(at), f"study#{at}")
            history = replace(history, observations=(*history.observations, seen))
        else:
            history = replace(history, pending=(*history.pending, Pending(network)))

    assert first_of_pool(space, history, n_initial, 1, generator(seed, history)) == []
    return keys(suggestions)


@pytest.mark.parametrize("kind", KINDS)
def test_every_seed_begins_elsewhere(kind):
    agent = agents.get(kind, SPACE, **CHEAP.get(kind, {}))
    one, again, other = (
        keys(agent.propose(History(), 10, generator(seed, History()))) for seed in (1, 1, 2)
    )
    assert len(set(one)) == 10
    assert one == again
    assert len(set(one) & set(other)) <= 1


@pytest.mark.parametrize("name", ["nasbench101", "nasbench201"])
def test_a_study_begun_one_by_one_has_distinct_networks_of_its_seed(name):
    space = spaces.get(name)
    one = begin(space, 7)
    assert len(set(one)) == 10
    assert begin(space, 7) == one
    assert len(set(begin(space, 8)) & set(one)) <= 3
    # Finished and failed proposals change the design only by the number of networks that are
    # missing.
    assert begin(space, 7, finish=(0, 4)) == one
    failing = begin(space, 7, fail=(3, 5))
    assert failing[:10] == one
    assert len(set(failing)) == 12


def test_designs_larger_than_a_pool_are_filled():
    suggestions = first_of_pool(SPACE, History(), 25, 25, np.random.default_rng(0))
    assert len(set(keys(suggestions))) == 25
    assert len(set(begin(SPACE, 0, n_initial=25))) == 25


def test_fixed_designs_stay_fixed():
    space = spaces.get("cnn")
    pool = [Suggestion(network) for network in space.initial_pool()]
    for seed in (0, 1):
        assert first_of_pool(space, History(), 10, 10, np.random.default_rng(seed)) == pool
        assert first_of_pool(space, History(), 15, 15, np.random.default_rng(seed)) == pool


def test_the_pool_of_cells_holds_no_network_twice():
    for seed in range(20):
        pool = SPACE.initial_pool(np.random.default_rng(seed))
        assert len({network.functional_key for network in pool}) == len(pool) == 10

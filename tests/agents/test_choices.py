"""Agents on categorical decisions, which have neither units nor windows."""

from __future__ import annotations

import numpy as np
import pytest

from archive import agents, spaces
from archive.agents.base import History
from tests.agents.test_contract import CHEAP, ONLY_ON, VARIANTS
from tests.support import installed_agents
from tests.support.histories import observed

SET = spaces.get("choices", decisions={at: ["0", "1", "2"] for at in "vwxyz"}, form="set")
CHAIN = spaces.get("choices", decisions={at: ["0", "1", "2"] for at in "vwxyz"})
LEARN = ("bananas", "gp", "portfolio", "tw")


def score(space, network):
    return sum(map(int, space.named(network).values()))


def suggested(kind, space, n):
    rng = np.random.default_rng(1)
    some = [space.members()[at] for at in rng.permutation(len(space.members()))[:25]]
    history = History(observed(some, [score(space, one) for one in some]))
    return history, agents.get(kind, space, **CHEAP.get(kind, {})).propose(history, n, rng)


@pytest.mark.usefixtures("few_candidates")
@pytest.mark.parametrize("kind", sorted({*installed_agents()} - VARIANTS - {*ONLY_ON} - {*LEARN}))
def test_every_agent_searches_a_set(kind):
    history, suggestions = suggested(kind, SET, 2)
    keys = {one.architecture.functional_key for one in suggestions}
    assert len(keys) == 2 and not keys & {*history.known}
    assert all(SET.contains(one.architecture) for one in suggestions)


@pytest.mark.parametrize("kind", LEARN)
def test_models_learn_which_options_are_good(kind):
    """Options add up, so that 25 of 243 networks tell the good ones."""
    history, suggestions = suggested(kind, CHAIN, 2)
    best = max(seen.score for seen in history.observations)
    assert max(score(CHAIN, one.architecture) for one in suggestions) > best

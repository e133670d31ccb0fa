"""Agents that draw at random reach the last networks of a space that can be listed."""

from __future__ import annotations

import numpy as np
import pytest

from archive import agents, spaces
from archive.agents.base import History
from tests.support.histories import observed

SPACE = spaces.get("choices", decisions={name: [*"abcd"] for name in "vwxyz"}, form="chain")


@pytest.mark.parametrize("kind", ["random", "regularized-evolution", "local-search"])
def test_the_last_networks_are_found(kind):
    members = SPACE.members()
    rng = np.random.default_rng(0)
    assert len(members) == 1024
    left = {members[at].functional_key for at in rng.choice(len(members), 3, replace=False)}
    seen = [one for one in members if one.functional_key not in left]
    history = History(observed(seen, rng.standard_normal(len(seen))))
    found = agents.get(kind, SPACE).propose(history, 5, rng)
    assert {one.architecture.functional_key for one in found} == left

"""Agents of other packages that break the contract of suggestions: refused with a reason, and
nothing is stored."""

from __future__ import annotations

import re

import numpy as np
import pytest

from archive import agents, spaces
from archive.agents.base import Agent, Suggestion
from archive.agents.searcher import Searcher
from archive.errors import UsageError

SPACE = spaces.get("mlp")
NETWORK = SPACE.initial_pool()[0]
FOREIGN = spaces.get("cnn").initial_pool()[0]


class Fixed(Agent):
    """An agent that always proposes the same."""

    kind = "fixed"

    def __init__(self, space, proposed):
        super().__init__(space)
        self.proposed = proposed

    @property
    def config(self):
        return {}

    def propose(self, history, n, rng):
        return self.proposed


def propose(archive, proposed):
    study = agents.study(archive, "mine", SPACE).record
    id_ = archive.proposals.register_agent("fixed", {}, "1")
    return Searcher(archive).propose(study, Fixed(SPACE, proposed), id_, 2).made


@pytest.mark.parametrize(
    ("proposed", "reason"),
    [
        (None, "agent fixed must propose a list of Suggestion, got NoneType"),
        (
            (Suggestion(NETWORK) for _ in range(2)),
            "must propose a list of Suggestion, got generator",
        ),
        ([NETWORK], "must propose a list of Suggestion, got Architecture in it"),
        ([Suggestion("relu/8")], "agent fixed must suggest an Architecture, got str"),
        ([Suggestion(FOREIGN)], "agent fixed suggests a network outside the space mlp: "),
        (
            [Suggestion(NETWORK, mean=np.ones(2))],
            "the mean of a suggestion of agent fixed must be a number, got array(",
        ),
    ],
)
def test_suggestions_against_the_contract_are_refused(archive, proposed, reason):
    with pytest.raises(UsageError, match=re.escape(reason)):
        propose(archive, proposed)

    assert not archive.proposals.list("mine")


def test_numbers_of_numpy_are_predictions(archive):
    suggestions = (Suggestion(NETWORK, acquisition=np.float32(1.5), std=np.array(2.0)),)
    assert [one.acquisition for one in propose(archive, suggestions)] == [1.5]

"""Fixtures that the agents' tests share: spaces, and cheap searches for candidates."""

from __future__ import annotations

import functools

import pytest

from archive import spaces
from archive.agents.acquisition import candidate_generators
from archive.agents.baselines import random_search, treebo
from archive.agents.bayesopt import nasbot
from tests.support.histories import Chains


@pytest.fixture
def chains():
    return Chains()


@pytest.fixture(params=["mlp", "cnn"])
def space(request):
    return spaces.get(request.param)


@pytest.fixture
def few_candidates(monkeypatch):
    """Let agents rank dozens of candidates for a proposal instead of hundreds: the same code in
    less time."""
    fewer = functools.partial(candidate_generators.MutatedCandidates, candidates=25)
    monkeypatch.setattr(candidate_generators, "MutatedCandidates", fewer)
    for module in (candidate_generators, nasbot, random_search):
        monkeypatch.setattr(module, "evaluations_at", lambda t: 20)

    for name, number in (("_RANDOM", 40), ("_VARIANTS", 5), ("_CHANGES", 20)):
        monkeypatch.setattr(treebo, name, number)

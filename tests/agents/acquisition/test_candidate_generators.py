"""Candidate generators: ranking, local search, exclusion of known networks."""

from __future__ import annotations

import numpy as np
import pytest

from archive.agents.acquisition import candidate_generators
from archive.agents.acquisition.candidate_generators import (
    EvolvedCandidates,
    ListedCandidates,
    MutatedCandidates,
)
from archive.agents.base import History, Pending
from archive.errors import UnknownNameError, UsageError
from tests.support.histories import Chains, observed
from tests.support.listed import Listed


def units(architectures):
    return np.array([float(sum(layer.units or 0 for layer in one.layers)) for one in architectures])


def keys(ranked):
    return [one.candidate.architecture.functional_key for one in ranked]


def seen(space, places, pending=()):
    every = space.every()
    chosen = [every[at] for at in places]
    return History(observed(chosen, units(chosen)), tuple(Pending(every[at]) for at in pending))


@pytest.mark.parametrize("block", [3, 20, 100])
def test_members_are_all_ranked_whatever_the_blocks(monkeypatch, block):
    monkeypatch.setattr(candidate_generators, "BLOCK", block)
    space = Listed()
    history = seen(space, range(4, 20, 3), pending=[5])
    candidates = ListedCandidates(space).candidates(history, units, 6, np.random.default_rng(0))
    free = [one for one in space.every() if one.functional_key not in history.known]
    best = [free[at] for at in np.argsort(-units(free), kind="stable")[:6]]
    assert keys(candidates) == [one.functional_key for one in best]
    assert [one.rank for one in candidates] == units(best).tolist()


def test_members_of_an_exhausted_space():
    space = Listed()
    assert (
        ListedCandidates(space).candidates(
            seen(space, range(20)), units, 5, np.random.default_rng(0)
        )
        == []
    )


@pytest.mark.parametrize("width", [64, 5])
def test_local_search_finds_what_evolution_missed(width):
    space = Chains()
    generator = EvolvedCandidates(Chains(), 1, climbs=1, width=width)
    history = seen(space, [0])
    without = EvolvedCandidates(space, 1, climbs=0).candidates(
        history, units, 30, np.random.default_rng(1)
    )
    candidates = generator.candidates(history, units, 30, np.random.default_rng(1))
    assert len(candidates) > len(without)
    assert candidates[0].rank > without[0].rank
    assert candidates == sorted(candidates, key=lambda one: -one.rank)
    assert len(set(keys(candidates))) == len(candidates)
    assert not set(keys(candidates)) & set(history.known)


def test_local_search_names_the_beginning_of_its_line():
    space = Chains()
    history = seen(space, [0, 1])
    roots = {one.functional_key for one in space.initial_pool()}
    for one in EvolvedCandidates(space, 2).candidates(history, units, 30, np.random.default_rng(0)):
        parent = one.candidate.parent
        assert (parent is None) == (one.candidate.operations == ())
        assert parent is None or parent.functional_key in roots


def test_mutations_start_from_the_best_means():
    space = Chains()
    every = space.every()
    # The first has the single best score, and a worse mean than the second.
    scores = [9.0, 0.0, 5.0, 1.0]
    history = History(observed([every[0], every[0], every[1], every[2]], scores))
    candidates = MutatedCandidates(space, candidates=30, parents=1).candidates(
        history, units, 50, np.random.default_rng(0)
    )
    assert candidates
    assert {one.candidate.parent.key for one in candidates} == {every[1].key}
    assert not set(keys(candidates)) & set(history.known)
    assert candidates == sorted(candidates, key=lambda one: -one.rank)


def test_mutations_of_nothing():
    assert (
        MutatedCandidates(Chains()).candidates(History(), units, 5, np.random.default_rng(0)) == []
    )


def test_names():
    assert isinstance(candidate_generators.get("auto", Listed()), ListedCandidates)
    assert isinstance(candidate_generators.get("auto", Listed(), cheap=False), EvolvedCandidates)
    assert isinstance(candidate_generators.get("auto", Chains()), EvolvedCandidates)
    with pytest.raises(UsageError, match="needs a space that can be listed"):
        candidate_generators.get("members", Chains())

    with pytest.raises(UnknownNameError, match="unknown candidates 'mutation'"):
        candidate_generators.get("mutation", Chains())

    with pytest.raises(UsageError, match="parents must be >= 1, got 0"):
        MutatedCandidates(Chains(), parents=0)

    with pytest.raises(UsageError, match="width must be >= 1, got 0"):
        EvolvedCandidates(Chains(), width=0)

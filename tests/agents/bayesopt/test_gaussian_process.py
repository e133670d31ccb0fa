"""Gaussian processes on any distance, beyond the contract of every agent."""

from __future__ import annotations

import numpy as np
import pytest

from archive import spaces
from archive.agents.bayesopt.gaussian_process import (
    GpAdjacency,
    GpGromovWasserstein,
    GpHamming,
    GpPath,
    GpWasserstein,
    GpWeisfeilerLehman,
    KernelSearch,
)
from archive.agents.constructor_arguments import BatchOptions
from archive.agents.surrogates.gp.nugget import DimensionScaledPrior
from archive.errors import UnknownNameError
from archive.kernels.covariance.base import exponential
from tests.support.listed import known, score, small_table

CHEAP = [GpAdjacency, GpHamming, GpPath, GpWeisfeilerLehman]


def propose(agent, history, n=1, seed=0):
    return agent.propose(history, n, np.random.default_rng(seed))


@pytest.mark.parametrize("kind", CHEAP)
def test_the_best_of_a_table_comes_first(tmp_path, kind):
    space = small_table(tmp_path)
    members = sorted(space.members(), key=score)
    agent = kind(space)
    history = known(members[:-1:2])
    suggestions = [one.architecture for one in propose(agent, history, 8)]
    assert max(map(score, suggestions)) == max(
        score(one) for one in members if one.functional_key not in history.known
    )


@pytest.mark.parametrize("kind", [GpWasserstein, GpGromovWasserstein])
def test_costly_distances_search_by_mutation(kind):
    space = spaces.get("nasbench201")
    agent = kind(space, BatchOptions(n_initial=0))
    assert agent.method.source.name == "evolution"
    rng = np.random.default_rng(0)
    (suggestion,) = propose(agent, known([space.sample(rng) for _ in range(2)]))
    assert space.contains(suggestion.architecture)
    assert suggestion.std > 0.0


@pytest.mark.parametrize("rule", ["top", "believer", "bucb", "thompson", "kdpp", "quality-kdpp"])
def test_every_batch_rule(tmp_path, rule):
    space = small_table(tmp_path)
    history = known(space.members()[:15])
    suggestions = propose(KernelSearch(space, BatchOptions(batch_rule=rule), "hamming"), history, 4)
    keys = {one.architecture.functional_key for one in suggestions}
    assert len(keys) == 4
    assert not keys & set(history.known)


def test_thompson_sampling_ranks_a_short_list(tmp_path):
    agent = KernelSearch(small_table(tmp_path), BatchOptions(acquisition="ts"))
    assert (agent.method.acquisition.name, agent.method.rule.name) == ("ucb", "thompson")
    assert agent.config["acquisition"] == "ts"


def test_presets_and_what_overrides_them(tmp_path):
    space = small_table(tmp_path)
    paper = KernelSearch(space, BatchOptions(preset="paper", transform="rank-normal"))
    default = KernelSearch(space)
    assert (default.method.acquisition.name, paper.method.acquisition.name) == ("ei", "ucb")
    assert paper.method.surrogate.inference.prior is None
    assert paper.method.surrogate.transform.name == "rank-normal"
    with pytest.raises(UnknownNameError, match="unknown preset 'papers'"):
        KernelSearch(space, BatchOptions(preset="papers"))

    with pytest.raises(UnknownNameError, match="unknown kernel 'haming'"):
        KernelSearch(space, kernel="haming")

    with pytest.raises(UnknownNameError, match="unknown setting of the kernel path 'count'"):
        KernelSearch(space, kernel="path", kernel_settings={"count": True})


def test_a_fresh_agent_and_one_with_memory_agree(tmp_path):
    space = small_table(tmp_path)
    agent = KernelSearch(space)
    propose(agent, known(space.members()[:9]))
    history = known(space.members()[:12])
    assert propose(agent, history, 3) == propose(KernelSearch(space), history, 3)


def test_shared_priors_expect_one_likeness():
    stack = np.random.default_rng(0).uniform(1.0, 2.0, (4, 6, 6))
    plain = exponential(4)
    shared = DimensionScaledPrior(exponential(4), 4)
    theta = np.log([1.0, 0.1, 0.2, 0.3, 0.4])
    np.testing.assert_array_equal(shared.value(stack, theta), plain.value(stack, theta))
    assert shared.names == plain.names
    moved = plain.bounds(stack) - shared.bounds(stack)
    np.testing.assert_allclose(moved, np.log([[1, 1], [4, 4], [4, 4], [4, 4], [4, 4]]))

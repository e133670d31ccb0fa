"""Proxies in the portfolio: its initial design, its members, and unchanged proposals without
proxies."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from archive import agents, spaces
from archive.agents.base import History
from archive.agents.proxies.study_scores import LEAST, N_DESIGN
from archive.spaces.base import distinct_sample
from archive.store.proxies import ProxyTable
from tests.support.histories import observed
from tests.support.listed import small_table


@pytest.fixture(scope="module")
def space(tmp_path_factory):
    return small_table(tmp_path_factory.mktemp("cells"), 80)


def value(cell):
    """A quality that the structure does not tell: it is drawn for each network."""
    return np.random.default_rng(int(cell.functional_key[:8], 16)).normal()


def table(space, score=value, count=None):
    networks = tuple(space.members()[:count])
    other = np.random.default_rng(1).normal(size=len(networks))
    return ProxyTable(
        "test",
        ("noise", "score"),
        networks,
        np.stack([other, [score(one) for one in networks]], axis=1),
    )


def proposed(space, history, n=1, **settings):
    return agents.get("portfolio", space, **settings).propose(history, n, np.random.default_rng(0))


def test_the_design_is_of_the_best_mean_rank_and_smaller(space):
    proxies = table(space)
    first = proposed(space, History(proxies=proxies), N_DESIGN)
    ranks = proxies.scores.argsort(axis=0).argsort(axis=0).mean(axis=1)
    chosen = [ranks[proxies.rows[one.architecture.functional_key]] for one in first]
    assert min(chosen) >= np.sort(ranks)[-max(len(ranks) // 4, LEAST)]
    seen = observed([one.architecture for one in first], [value(one.architecture) for one in first])
    (after,) = proposed(space, History(seen, proxies=proxies))
    assert after.mean is not None
    (without,) = proposed(space, History(seen))
    assert without.mean is None


def test_a_design_of_other_networks_than_cells_follows_no_rank():
    """A proxy may rank them upside down: the design is spread over all scores, not over the best
    20."""
    mlp = spaces.get("mlp")
    networks = tuple(distinct_sample(mlp, 60, np.random.default_rng(0)))
    proxies = ProxyTable("test", ("synflow",), networks, np.arange(60, dtype=np.float64)[:, None])
    first = proposed(mlp, History(proxies=proxies), N_DESIGN)
    rows = [proxies.rows[one.architecture.functional_key] for one in first]
    assert len(rows) == N_DESIGN and min(rows) < 40


def test_a_proxy_that_ranks_the_networks_outweighs_their_structure(space):
    members = space.members()
    history = History(observed(members[:30], [value(one) for one in members[:30]]))
    told, alone = (
        np.mean([abs(one.mean - value(one.architecture)) for one in proposed(space, each, 8)])
        for each in (replace(history, proxies=table(space)), history)
    )
    assert told < alone / 2


def test_too_few_networks_constant_scores_or_the_setting_change_nothing(space):
    members = space.members()
    history = History(observed(members[:12], [value(one) for one in members[:12]]))
    (expected,) = proposed(space, history)
    few = table(space, count=LEAST - 1)
    constant = table(space)
    constant = replace(constant, scores=np.zeros_like(constant.scores))
    for proxies, settings in ((few, {}), (constant, {}), (table(space), {"proxies": False})):
        (same,) = proposed(space, replace(history, proxies=proxies), **settings)
        assert same == expected


def test_networks_of_another_space_are_not_designed(space):
    everywhere = spaces.get("nasbench201").members()[::100]
    scores = np.arange(len(everywhere), dtype=np.float64)[:, None]
    proxies = ProxyTable("test", ("score",), tuple(everywhere), scores)
    assert all(
        space.contains(one.architecture) for one in proposed(space, History(proxies=proxies), 3)
    )

"""The tree-Wasserstein agents, beyond the contract of every agent."""

from __future__ import annotations

import json

import numpy as np
import pytest

from archive import agents, spaces
from archive.agents.base import History, Pending
from archive.agents.bayesopt.tree_wasserstein import (
    TreeWassersteinKdpp,
    TreeWassersteinSearch,
    distances,
)
from archive.agents.constructor_arguments import BayesOptOptions
from archive.architecture import codec
from archive.errors import UnknownNameError, UsageError
from tests.support.histories import observed
from tests.support.listed import known, score, small_table

BOTH = [TreeWassersteinSearch, TreeWassersteinKdpp]


def propose(agent, history, n=1, seed=0):
    return agent.propose(history, n, np.random.default_rng(seed))


@pytest.mark.parametrize("kind", BOTH)
def test_the_best_of_a_table_is_found_early(tmp_path, kind):
    space = small_table(tmp_path)
    members = sorted(space.members(), key=score)
    history = known(members[:20:2])
    best = score(members[-1])
    agent = agents.get(kind.kind, space, n_initial=0)
    queries = 0
    while max(map(score, (seen.architecture for seen in history.observations))) < best:
        chosen = [one.architecture for one in propose(agent, history, 3, queries)]
        history = known([*(seen.architecture for seen in history.observations), *chosen])
        queries += 3

    # Drawn at random, the best of the 43 others takes 22 queries on average.
    assert queries <= 12


@pytest.mark.parametrize("kind", BOTH)
def test_the_paper_draws_a_pool(kind):
    space = spaces.get("nasbench201")
    rng = np.random.default_rng(0)
    history = known([space.sample(rng) for _ in range(12)])
    suggestions = propose(agents.get(kind.kind, space, preset="paper"), history, 3)
    assert len({one.architecture.functional_key for one in suggestions} - set(history.known)) == 3
    assert all(one.parent is not None and one.operations for one in suggestions)


@pytest.mark.parametrize("kind", BOTH)
def test_pending_networks_are_believed(tmp_path, kind):
    space = small_table(tmp_path)
    history = known(space.members()[:12])
    agent = kind(space)
    first = propose(agent, history, 1)[0]
    waiting = History(history.observations, (Pending(first.architecture),))
    (second,) = propose(agent, waiting)
    assert second.architecture.functional_key != first.architecture.functional_key


def test_dead_edges_change_nothing(tmp_path):
    space = spaces.get("nasbench201")
    plain = "|nor_conv_3x3~0|+|none~0|none~1|+|skip_connect~0|none~1|none~2|"
    clean = codec.from_nasbench201(plain.replace("nor_conv_3x3", "none"))
    dead = codec.from_nasbench201(plain)
    assert dead.key != clean.key
    others = [space.sample(np.random.default_rng(at)) for at in range(6)]
    scores = [0.5, 0.1, 0.4, 0.2, 0.6, 0.3, 0.7]
    agent = TreeWassersteinSearch(small_table(tmp_path))
    one, two = (
        propose(agent, History(observed([*others, cell], scores)), 1) for cell in (clean, dead)
    )
    assert one == two


def test_components():
    cells = spaces.get("nasbench101")
    networks = spaces.get("cnn")
    names = [name for kind in distances(cells, "default", None) for name in kind.components]
    assert "path" in names
    assert "tree_wasserstein:1gram" in names
    (only,) = distances(cells, "paper", 1)
    assert only.components == tuple(
        f"tree_wasserstein:{part}" for part in ("1gram", "indegree", "outdegree")
    )
    (only,) = distances(networks, "default", None)
    assert "tree_wasserstein:2gram" in only.components


@pytest.mark.parametrize("kind", BOTH)
def test_settings(tmp_path, kind):
    space = small_table(tmp_path)
    agent = kind(space, n=(1, 3))
    assert json.loads(json.dumps(agent.config))["n"] == [1, 3]
    with pytest.raises(UsageError, match="n must be one or more different lengths"):
        kind(space, n=0)

    with pytest.raises(UnknownNameError, match="unknown preset 'best'"):
        agents.get(kind.kind, space, preset="best")

    with pytest.raises(UsageError, match="needs a space that can be listed"):
        agents.get(kind.kind, spaces.get("cnn"), candidates="members")


def test_quality_and_its_weight(tmp_path):
    space = small_table(tmp_path)
    default = TreeWassersteinKdpp(space)
    paper = TreeWassersteinKdpp(space, BayesOptOptions(preset="paper"))
    assert paper.method.rule.quality is None
    assert default.method.rule.quality.name == "ei"
    assert TreeWassersteinKdpp(space, weight=0.0, shortlist=7).method.shortlist == 7
    assert agents.get("tw-kdpp", space, acquisition="ts").method.rule.name == "thompson"
    with pytest.raises(UsageError, match="weight must be >= 0 and finite, got -1"):
        TreeWassersteinKdpp(space, weight=-1.0)


def test_without_quality_batches_are_more_diverse_and_worse(tmp_path):
    space = small_table(tmp_path)
    history = known(space.members()[:15])
    kinds = [TreeWassersteinKdpp(space, weight=weight, shortlist=40) for weight in (0.0, 5.0)]
    means = [
        np.mean([one.mean for seed in range(5) for one in propose(agent, history, 3, seed)])
        for agent in kinds
    ]
    assert means[0] < means[1]

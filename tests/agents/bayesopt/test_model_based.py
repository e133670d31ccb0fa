"""The common part of agents with a surrogate: from the history to a batch, and cached distances."""

from __future__ import annotations

import numpy as np
import pytest

from archive import kernels
from archive.agents.acquisition import batch, functions
from archive.agents.acquisition.candidate_generators import ListedCandidates
from archive.agents.acquisition.listing import Listing
from archive.agents.base import History, Pending
from archive.agents.bayesopt.model_based import Method, ModelBased
from archive.agents.surrogates import distance_cache
from archive.agents.surrogates.base import Fitted, Posterior, Surrogate
from archive.agents.surrogates.distance_cache import CachedDistances
from archive.architecture import codec
from archive.errors import UsageError
from archive.kernels.distances.tree_wasserstein.distance import TreeWasserstein
from tests.support.histories import observed
from tests.support.listed import Listed, small_table


class Units(Surrogate):
    """A surrogate that predicts the number of units, with certainty for observed and fantasised
    networks."""

    def fit(self, architectures, scores, rng, variances=None):
        return Seen(tuple(one.key for one in architectures))


class Seen(Fitted):
    def __init__(self, keys):
        self.keys = keys

    def posterior(self, architectures, *, joint=False):
        means = np.array(
            [[float(sum(layer.units or 0 for layer in one.layers)) for one in architectures]]
        )
        variances = np.array([[float(one.key not in self.keys) for one in architectures]])
        return Posterior(means, variances, np.zeros(1))

    def hallucinate(self, architectures):
        return Seen((*self.keys, *(one.key for one in architectures)))


class Model(ModelBased):
    kind = "model"

    def __init__(self, space, n_initial=3, shortlist=5):
        ucb = functions.get("ucb")
        super().__init__(
            space,
            n_initial,
            Method(
                Units(), ucb, ListedCandidates(space), batch.get("top", acquisition=ucb), shortlist
            ),
        )


def propose(agent, history, n=1):
    return agent.propose(history, n, np.random.default_rng(0))


def test_pool_then_model_in_one_batch():
    space = Listed()
    history = History(observed(space.every()[:1], [1.0]), (Pending(space.every()[1]),))
    first, second, third = propose(Model(space), history, 3)
    assert first.architecture == space.initial_pool()[2]
    assert first.mean is None
    # Two layers of 16 units each, of four kinds: the best that is not known.
    assert (second.mean, second.std, second.acquisition) == (32.0, 1.0, 34.0)
    assert third.architecture.key != second.architecture.key


def test_batches_larger_than_the_short_list():
    suggestions = propose(
        Model(Listed(), shortlist=2), History(observed(Listed().every()[:3], [1.0, 2.0, 3.0])), 7
    )
    assert len({one.architecture.key for one in suggestions}) == 7


def test_a_batch_is_chosen_from_more_candidates_than_it_has_places(monkeypatch):
    agent = Model(Listed(), shortlist=2)
    asked = []
    select = batch.BatchSelection.select
    monkeypatch.setattr(
        batch.BatchSelection,
        "select",
        lambda self, fitted, candidates, count, rng: (
            asked.append((len(candidates), count)) or select(self, fitted, candidates, count, rng)
        ),
    )
    history = History(observed(Listed().every()[:3], [1.0, 2.0, 3.0]))
    for count in (1, 4):
        propose(agent, history, count)

    assert asked == [(3, 1), (12, 4)]


def test_without_results_networks_are_random():
    space = Listed()
    history = History(pending=tuple(Pending(one) for one in space.every()[:5]))
    (suggestion,) = propose(Model(space), history)
    assert suggestion.mean is None
    assert suggestion.architecture.functional_key not in history.known


def test_settings_are_checked():
    with pytest.raises(UsageError, match="n_initial must be >= 0, got -1"):
        Model(Listed(), n_initial=-1)

    with pytest.raises(UsageError, match="shortlist must be >= 1, got 0"):
        Model(Listed(), shortlist=0)


@pytest.mark.parametrize(
    "text",
    [
        "|nor_conv_3x3~0|+|none~0|nor_conv_1x1~1|+|skip_connect~0|none~1|none~2|",
        "|nor_conv_3x3~0|+|none~0|none~1|+|none~0|none~1|none~2|",
    ],
)
def test_dead_layers_are_dropped(text):
    cell = codec.from_nasbench201(text)
    alive = cell.functional
    assert cell.key != cell.functional_key
    assert alive.key == alive.functional_key == cell.functional_key
    assert alive.functional is alive


def kinds():
    every = [
        TreeWasserstein(1, sizes=True),
        kernels.get("path", counts=True),
        kernels.get("weisfeiler-lehman"),
    ]
    return [kind for kind in every if kind.cheap_rows]


@pytest.mark.parametrize("most_bytes", [2**20, 1])
def test_rows_of_members_are_the_distances(tmp_path, monkeypatch, most_bytes):
    monkeypatch.setattr(distance_cache, "FEW", 10)
    space = small_table(tmp_path)
    members = space.members()
    outside = codec.from_nasbench201(
        "|nor_conv_3x3~0|+|nor_conv_3x3~0|none~1|+|none~0|nor_conv_3x3~1|none~2|"
    )
    assert not space.contains(outside)
    cached = CachedDistances(kinds(), Listing(members), most_bytes)
    rows = [members[3], outside, members[17]]
    plain = np.concatenate([kind.distances(rows, members).stack for kind in kinds()])
    for columns in (slice(None), slice(5, 40), slice(0, 50, 2)):
        for _ in range(2):
            block = cached.distances(rows, members[columns]).stack
            np.testing.assert_allclose(block, plain[:, :, columns], rtol=1e-6, atol=1e-7)

    assert cached.distances([], members).stack.shape == (plain.shape[0], 0, len(members))


def test_the_memory_of_rows_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(distance_cache, "FEW", 10)
    members = small_table(tmp_path).members()
    cached = CachedDistances(
        [kernels.get("hamming")], Listing(members), most_bytes=4 * len(members) * 4
    )
    for at in range(8):
        cached.distances([members[at]], members)

    assert len(cached._rows) == 4
    np.testing.assert_array_equal(
        cached.distances(members[:9], members).stack,
        kernels.get("hamming").distances(members[:9], members).stack,
    )


class Spread(Fitted):
    """Five networks are good with certainty; all others are worse in the mean, and uncertain."""

    def __init__(self, sure):
        self.sure = sure

    def posterior(self, architectures, *, joint=False):
        sure = np.array([[one.key in self.sure for one in architectures]])
        return Posterior(np.where(sure, 1.5, 0.0), np.where(sure, 1e-6, 1.0), np.zeros(1))

    def hallucinate(self, architectures):
        return Spread(self.sure - {one.key for one in architectures})


class Spreading(Surrogate):
    def __init__(self, sure):
        self.sure = sure

    def fit(self, architectures, scores, rng, variances=None):
        return Spread(self.sure)


@pytest.mark.parametrize("rule", ["top", "believer"])
def test_each_network_of_a_random_acquisition_is_the_best_of_a_draw_over_all(tmp_path, rule):
    space = small_table(tmp_path)
    members = space.members()
    agent = ModelBased(
        space,
        0,
        Method(
            Spreading({one.key for one in members[:5]}),
            its := functions.get("its"),
            ListedCandidates(space),
            batch.get(rule, acquisition=its),
            shortlist=8,
        ),
    )
    # The greatest of fifty standard normal variables is below 1.5 in 3 % of all draws.
    history = observed(members[-1:], [0.0])
    for seed in range(20):
        chosen = agent.propose(History(history), 2, np.random.default_rng(seed))
        assert len({one.architecture.key for one in chosen}) == 2
        assert all(one.acquisition >= 1.4 for one in chosen)
        assert sum(one.architecture in members[:5] for one in chosen) <= 1

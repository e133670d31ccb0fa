"""The agent `morphism`:

Algorithm 1, its moves, and its surrogate against the textbook's formulas.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from archive import spaces
from archive.agents.acquisition.morphism_tree import MorphismTree, Moves, accepts, moves_of
from archive.agents.base import History
from archive.agents.bayesopt.morphism import Morphism
from archive.agents.surrogates.gp.bourgain import BourgainGP
from archive.agents.surrogates.gp.distance import FixedNoise
from archive.agents.surrogates.gp.likelihood import FixedHyperparameters
from archive.errors import UnknownNameError, UsageError
from archive.kernels.distances.bourgain import Bourgain
from archive.kernels.distances.edit import EditDistance
from archive.kernels.gram import Gram
from tests.support.histories import grown, observed

GROWING = {"deepen", "widen", "skip_add", "skip_concat"}


class Recorded(Moves):
    """Moves that record the expanded networks."""

    def __init__(self, moves):
        self.moves = moves
        self.expanded = []

    def of(self, architecture, n, taken, rng):
        self.expanded.append(architecture)
        return self.moves.of(architecture, n, taken, rng)


def tree(space, **settings):
    moves = Recorded(moves_of("auto", space))
    return MorphismTree(space, moves, **settings), moves


def units(architectures):
    """An acquisition that is the number of units, without a model."""
    return np.array([float(sum(layer.units or 0 for layer in one.layers)) for one in architectures])


@pytest.fixture(scope="module")
def mlp():
    return spaces.get("mlp", max_layers=10, max_units=256, min_units=8)


def test_the_tree_climbs_and_says_where_from(mlp):
    history = grown(mlp, 6)
    source, _ = tree(mlp)
    candidates = source.candidates(history, units, 10_000, np.random.default_rng(0))
    ranks = [one.rank for one in candidates]
    assert ranks == sorted(ranks, reverse=True)
    assert ranks[0] > units([seen.architecture for seen in history.observations]).max()
    evaluated = {seen.architecture.key for seen in history.observations}
    keys = [one.candidate.architecture.functional_key for one in candidates]
    assert len(set(keys)) == len(keys)
    assert not set(keys) & set(history.known)
    for one in candidates:
        assert one.candidate.parent.key in evaluated
        assert set(one.candidate.operations) <= GROWING
        mlp.validate(one.candidate.architecture)

    assert max(len(one.candidate.operations) for one in candidates) > 1


def test_the_temperature_ends_the_search(mlp):
    source, moves = tree(mlp, children=1)
    source.candidates(grown(mlp, 40), lambda many: np.zeros(len(many)), 5, np.random.default_rng(0))
    # From 1 by 0.9 to 1e-4.
    assert len(moves.expanded) == math.ceil(math.log(1e-4) / math.log(0.9)) == 88


def test_the_best_is_expanded_first(mlp):
    history = grown(mlp, 8)
    source, moves = tree(mlp, decay=0.5, lowest=0.6)
    source.candidates(history, units, 5, np.random.default_rng(0))
    best = max(
        (seen.architecture for seen in history.observations), key=lambda one: units([one])[0]
    )
    assert [one.key for one in moves.expanded] == [best.key]


def test_in_the_cold_only_the_better_are_followed(mlp):
    # Every child is worse than its parent: at a low temperature none is pushed, only evaluated
    # networks are expanded.
    history = grown(mlp, 5)
    evaluated = {seen.architecture.key for seen in history.observations}

    def shrinking(many):
        return -units(many) - np.array([len(one.edges) for one in many])

    cold, moves = tree(mlp, decay=1e-6, lowest=1e-12)
    cold.candidates(history, shrinking, 5, np.random.default_rng(0))
    assert {one.key for one in moves.expanded} <= evaluated
    warm, moves = tree(mlp, decay=0.999, lowest=0.95)
    warm.candidates(history, shrinking, 5, np.random.default_rng(0))
    assert {one.key for one in moves.expanded} - evaluated


def test_acceptance_is_boltzmanns():
    rng = np.random.default_rng(0)
    assert all(accepts(1.0, 1.0, 1e-9, rng) for _ in range(20))
    share = np.mean([accepts(0.0, 0.5, 0.5, rng) for _ in range(4000)])
    assert share == pytest.approx(math.exp(-1), abs=0.03)
    assert not accepts(-np.inf, 0.0, 1.0, rng)


def test_the_surrogate_is_the_papers(mlp):
    networks = [seen.architecture for seen in grown(mlp, 14).observations]
    known = networks[:9]
    others = networks[9:]
    scores = np.random.default_rng(0).normal(size=9)
    gram = Gram(EditDistance())
    theta = np.log([1.0, 1.0, 1e-4])
    noise = FixedNoise(1e-4)
    model = BourgainGP(gram, None, FixedHyperparameters(theta), noise, "standardise").fit(
        known, scores, np.random.default_rng(0)
    )
    posterior = model.posterior(others)

    embedding = Bourgain.fit(gram.distances(known).stack[0])
    asked = embedding.embed(gram.distances(others, known).stack[0])
    y = (scores - scores.mean()) / scores.std()
    inverse = np.linalg.inv(embedding.kernel() + 1e-4 * np.eye(9))
    cross = embedding.kernel(None, asked)
    np.testing.assert_allclose(
        posterior.mean, scores.mean() + scores.std() * cross.T @ inverse @ y, rtol=1e-6
    )
    variance = scores.var() * (1.0 - np.einsum("nm,nk,km->m", cross, inverse, cross))
    np.testing.assert_allclose(posterior.variance, variance, rtol=1e-6, atol=1e-9)
    assert model.repaired == 0.0


def test_repeats_do_not_disturb_the_embedding(mlp):
    networks = [seen.architecture for seen in grown(mlp, 6).observations]
    agent = Morphism(mlp, n_initial=0, preset="paper", children=2, decay=0.5)
    history = History(observed([*networks, networks[0]], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.2]))
    assert len(agent.propose(history, 1, np.random.default_rng(0))) == 1


@pytest.mark.parametrize("name", ["nasbench201", "nasbench101"])
@pytest.mark.parametrize("preset", ["default", "paper"])
def test_cells_move_to_their_neighbours(name, preset):
    space = spaces.get(name)
    agent = Morphism(space, n_initial=3, preset=preset, children=4, decay=0.5)
    history = grown(space, 6)
    suggestions = agent.propose(history, 2, np.random.default_rng(0))
    evaluated = {seen.architecture.key for seen in history.observations}
    keys = {one.architecture.functional_key for one in suggestions}
    assert len(keys) == 2
    assert not keys & set(history.known)
    for one in suggestions:
        space.validate(one.architecture)
        assert one.parent.key in evaluated
        assert one.operations
        assert one.acquisition > one.mean


def test_neighbours_can_shrink_networks(mlp):
    history = grown(mlp, 6)
    agent = Morphism(mlp, n_initial=0, moves="neighbours", children=4, decay=0.7)
    (suggestion,) = agent.propose(history, 1, np.random.default_rng(1))
    mlp.validate(suggestion.architecture)
    names = {
        name
        for one in range(3)
        for name in agent.propose(history, 1, np.random.default_rng(one))[0].operations
    }
    assert not names <= GROWING


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        (
            {"preset": "papre"},
            UnknownNameError,
            "unknown preset of morphism 'papre': did you mean paper",
        ),
        ({"kernel": "rbf"}, UnknownNameError, "unknown kernel of morphism 'rbf'"),
        (
            {"moves": "jumps"},
            UsageError,
            "moves must be auto, morphisms or neighbours, got 'jumps'",
        ),
        ({"acquisition": "ts"}, UsageError, "ts must rank all candidates at once"),
        ({"children": 0}, UsageError, "children must be >= 1, got 0"),
        ({"decay": 1.0}, UsageError, r"decay must be in \(0, 1\), got 1.0"),
        ({"lowest": 0.0}, UsageError, r"lowest must be in \(0, 1\), got 0.0"),
        ({"n_initial": -1}, UsageError, "n_initial must be >= 0, got -1"),
    ],
)
def test_settings_are_checked(mlp, settings, error, message):
    with pytest.raises(error, match=message):
        Morphism(mlp, **settings)


def test_cells_have_no_morphisms():
    with pytest.raises(UsageError, match="spaces cnn and mlp, got nasbench201"):
        Morphism(spaces.get("nasbench201"), moves="morphisms")

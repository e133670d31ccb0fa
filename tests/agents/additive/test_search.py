"""The agent on tables: sums are found at once, and what they miss is learnt."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from archive import agents, spaces
from archive.agents.additive.effects import learn
from archive.agents.additive.members import BestSums
from archive.agents.additive.surrogate import AdditiveResidual
from archive.agents.additive.vectors import VectorSpace
from archive.agents.base import History, Observation, Pending, Suggestion
from archive.agents.observations import SourceStudy
from archive.architecture.decoders import costs
from archive.constraints import parse
from archive.errors import UsageError
from archive.space import Space, choice
from archive.spaces.constrained import constrain
from tests.support.networks.decoders import small_space

BLOCKS = 6
OPTIONS = 4


@pytest.fixture(scope="module")
def table():
    """A space of six blocks with four options each, their effects and their costs."""
    space = spaces.of(Space(**{f"block{i}": choice(list("abcd")) for i in range(BLOCKS)}))
    rng = np.random.default_rng(3)
    effects = -np.abs(rng.normal(size=(BLOCKS, OPTIONS)))
    effects[:, 0] = 0.0
    prices = rng.integers(1, 20, (BLOCKS, OPTIONS)).astype(float)
    prices[:, 0] = 25.0
    return space, effects, prices


def choices_of(space, network):
    return np.array(["abcd".index(value) for value in space.named(network).values()])


def sums(space, networks, numbers):
    return np.array(
        [numbers[np.arange(BLOCKS), choices_of(space, one)].sum() for one in networks], float
    )


def network_of(space, choices):
    return space.of_names({f"block{i}": "abcd"[c] for i, c in enumerate(choices)})


def singles(space):
    """The parent, and every network with one replacement."""
    networks = [network_of(space, [0] * BLOCKS)]
    for block, option in itertools.product(range(BLOCKS), range(1, OPTIONS)):
        networks.append(network_of(space, [option * (i == block) for i in range(BLOCKS)]))

    return networks


def observed(networks, scores):
    pairs = enumerate(zip(networks, scores, strict=True))
    return tuple(Observation(one, float(score), f"s#{i:05d}") for i, (one, score) in pairs)


@pytest.mark.parametrize("bound", [40, 60, 100])
def test_the_best_sums_are_the_best_of_all_members(table, bound):
    space, effects, prices = table
    limited = constrain(
        space, [parse(f"price<={bound}")], {"price": lambda networks: sums(space, networks, prices)}
    )
    vectors = VectorSpace(limited, "block-additive")
    networks = singles(space)
    encoded = vectors.encode(networks)
    learnt = learn(encoded, sums(space, networks, effects), encoded[0].tolist())
    solver = BestSums(vectors, learnt)
    assert solver.fixed == ()
    every = np.array(list(itertools.product(range(OPTIONS), repeat=BLOCKS)))
    allowed = every[prices[np.arange(BLOCKS), every].sum(axis=1) <= bound]
    best = np.sort(effects[np.arange(BLOCKS), allowed].sum(axis=1))[::-1][:5]
    members = solver.best(5)
    np.testing.assert_allclose([member.score for member in members], best, atol=1e-3)
    assert (sums(space, [one.architecture for one in members], prices) <= bound).all()
    taken = {members[0].architecture.functional_key}
    assert solver.best(1, taken)[0].architecture == members[1].architecture


def test_an_additive_table_is_solved_after_its_replacements(table):
    space, effects, prices = table
    limited = constrain(
        space, [parse("price<=60")], {"price": lambda networks: sums(space, networks, prices)}
    )
    every = np.array(list(itertools.product(range(OPTIONS), repeat=BLOCKS)))
    allowed = prices[np.arange(BLOCKS), every].sum(axis=1) <= 60
    optimum = effects[np.arange(BLOCKS), every[allowed]].sum(axis=1).max()
    networks = singles(space)
    history = History(observed(networks, sums(space, networks, effects)))
    agent = agents.get("block-additive", limited, n_initial=0, replacements=0)
    batch = agent.propose(history, 2, np.random.default_rng(0))
    scores = sums(space, [one.architecture for one in batch], effects)
    assert scores.max() == pytest.approx(optimum)
    assert batch[0].parent == networks[0]
    assert batch[0].operations


def test_the_process_learns_what_the_sum_misses(table):
    space, effects, _ = table
    rng = np.random.default_rng(0)

    def score(networks):
        values = sums(space, networks, effects)
        for row, network in enumerate(networks):
            # Block 0 and block 1 do harm together.
            first, second = choices_of(space, network)[:2]
            values[row] -= 3.0 * (first > 0 and second > 0)

        return values

    drawn = [network_of(space, rng.integers(0, OPTIONS, BLOCKS)) for _ in range(160)]
    networks = [*singles(space), *drawn[:90]]
    agent = agents.get("block-additive", space)
    surrogate = agent.method.surrogate
    assert isinstance(surrogate, AdditiveResidual)
    fitted = surrogate.fit(networks, score(networks), np.random.default_rng(0))
    held_out = drawn[90:]
    truth = score(held_out)
    encoded = surrogate.vectors.encode(held_out)
    of_sum = np.mean((fitted.effects.predict(encoded) - truth) ** 2)
    of_both = np.mean((fitted.posterior(held_out).mean - truth) ** 2)
    assert of_both < 0.75 * of_sum


def test_it_opens_with_replacements_of_the_best(table):
    space, _, _ = table
    networks = [network_of(space, [0] * BLOCKS), network_of(space, [3, 3, 3, 3, 3, 3])]
    history = History(observed(networks, [1.0, 0.5]))
    agent = agents.get("block-additive", space, n_initial=2, replacements=BLOCKS)
    batch = agent.propose(history, BLOCKS, np.random.default_rng(0))
    changed = [np.flatnonzero(choices_of(space, one.architecture)).tolist() for one in batch]
    assert sorted(changed) == [[block] for block in range(BLOCKS)]
    assert all(one.parent == networks[0] for one in batch)
    assert batch[0].operations[0].startswith("block")
    # One by one they are the same kind of suggestions.
    pending = History(history.observations, tuple(Pending(one.architecture) for one in batch[:4]))
    (fifth,) = agent.propose(pending, 1, np.random.default_rng(1))
    tried = {tuple(row) for row in changed[:4]}
    assert tuple(np.flatnonzero(choices_of(space, fifth.architecture))) not in tried


def test_a_named_parent(table):
    space, _, _ = table
    networks = [network_of(space, [0] * BLOCKS), network_of(space, [3, 3, 3, 3, 3, 3])]
    history = History(observed(networks, [1.0, 0.5]))
    agent = agents.get("block-additive", space, parent=networks[1].key[:12])
    (first,) = agent.propose(history, 1, np.random.default_rng(0))
    assert first.parent == networks[1]
    missing = agents.get("block-additive", space, parent="0" * 12)
    with pytest.raises(UsageError, match="parent '000000000000' is the key of no network"):
        missing.propose(history, 1, np.random.default_rng(0))

    # Also where a source opens the study.
    source = SourceStudy("blocks", "task", "other", space.name, history.observations)
    with pytest.raises(UsageError, match="parent '000000000000' is the key of no network"):
        missing.propose(History(sources=(source,)), 1, np.random.default_rng(0))

    several = agents.get("block-additive", space, parent="")
    with pytest.raises(UsageError, match="several networks begin with the parent ''"):
        several.propose(history, 1, np.random.default_rng(0))


def test_a_parent_that_does_not_meet_the_constraints_is_not_suggested(table):
    space, _, prices = table
    limited = constrain(
        space, [parse("price<=149")], {"price": lambda networks: sums(space, networks, prices)}
    )
    parent = network_of(space, [0] * BLOCKS)
    # It failed in the source, which has no effects then.
    source = SourceStudy("blocks", "task", "other", space.name, observed([parent], [np.nan]))
    agent = agents.get("block-additive", limited, parent=parent.key)
    batch = agent.propose(History(sources=(source,)), 3, np.random.default_rng(0))
    for suggestion in batch:
        assert limited.contains(suggestion.architecture)
        assert (choices_of(space, suggestion.architecture) != 0).sum() == 1


def test_scores_of_a_source_open_a_study(table):
    space, effects, _ = table
    networks = singles(space)
    better = effects.copy()
    better[:, 2] = [0.1, 0.2, 0.3, 0.1, 0.2, 0.3]
    results = observed(networks, 5.0 + sums(space, networks, better))
    history = History(sources=(SourceStudy("blocks", "task", "other", space.name, results),))
    agent = agents.get("block-additive", space)
    (first, *_) = agent.propose(history, 2, np.random.default_rng(0))
    assert isinstance(first, Suggestion)
    assert choices_of(space, first.architecture).tolist() == [2] * BLOCKS


@pytest.mark.parametrize("text", ["params<=9000", "cache<=500", "params>=12000"])
def test_sums_that_costs_are_not(text):
    # Norms that two parts share, and widths: the costs of a decoder are no exact sums.
    space = small_space()
    known = {
        "params": lambda networks: np.array(list(map(costs.params, networks)), float),
        "cache": lambda networks: np.array(
            [costs.kv_cache_bytes(one, 12) for one in networks], float
        ),
    }
    limited = constrain(space, [parse(text)], known)
    vectors = VectorSpace(limited, "block-additive")
    parent = next(one for one in space.initial_pool() if len(one.layers) > 12)
    start = vectors.encode([parent])[0].tolist()
    networks = [parent]
    for replacement in list(vectors.replacements(start))[::3]:
        network = vectors.build(vectors.replace(start, replacement))
        if network is not None:
            networks.append(network)

    encoded = vectors.encode(networks)
    rng = np.random.default_rng(0)
    effects = learn(encoded, rng.normal(size=len(networks)), start)
    members = BestSums(vectors, effects).best(4)
    assert len({member.architecture.functional_key for member in members}) == 4
    for member in members:
        limited.validate(member.architecture)

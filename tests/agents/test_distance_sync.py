"""Shared distances: each pair is computed once, and one more network costs one row."""

from __future__ import annotations

import numpy as np
import pytest

from archive import agents, kernels, spaces
from archive.agents import distance_sync
from archive.agents.base import History, Observation
from archive.agents.distance_sync import DistanceSync
from archive.kernels.distances.otmann import OTMANN
from archive.kernels.gram import Gram
from archive.kernels.stored import kinds, worth_storing
from tests.support.stores import count

SPACE = spaces.get("mlp")


@pytest.fixture(scope="module")
def networks():
    rng = np.random.default_rng(0)
    pool = {one.key: one for one in SPACE.initial_pool()}
    while len(pool) < 14:
        child = SPACE.mutate(list(pool.values())[-1], rng).child
        pool[child.key] = child

    return dict(sorted(pool.items())[:14])


@pytest.fixture
def stored(archive, networks):
    archive.architectures.add(networks.values())
    return archive


@pytest.fixture
def computed(monkeypatch):
    """Pairs that OTMANN computed, one entry for each call."""
    calls = []
    pairs = OTMANN.pairs

    def counting(self, prepared, asked):
        calls.append({tuple(sorted((prepared[i].key, prepared[j].key))) for i, j in asked})
        return pairs(self, prepared, asked)

    monkeypatch.setattr(OTMANN, "pairs", counting)
    return calls


def first(networks, n):
    return dict(list(networks.items())[:n])


def test_all_pairs_are_stored_as_the_kernel_gives_them(stored, networks):
    keys = list(networks)
    assert DistanceSync(stored).keep(networks) == 14 * 13 // 2
    stack = OTMANN().distances([networks[key] for key in keys]).stack
    for name, part in kinds(OTMANN()).items():
        np.testing.assert_array_equal(stored.distances.matrix(keys, name), stack[part])


def test_one_more_network_costs_one_row(stored, networks, computed):
    keeper = DistanceSync(stored)
    keeper.keep(first(networks, 13))
    del computed[:]
    last = list(networks)[13]
    assert keeper.keep(networks) == 13
    assert computed == [{tuple(sorted((last, key))) for key in list(networks)[:13]}]
    assert count(stored.connection, "()-[:DISTANCE]->()") == 14 * 13 // 2
    assert keeper.keep(networks) == 0 and len(computed) == 1


def test_searches_share_stored_distances(stored, networks, computed):
    DistanceSync(stored).keep(first(networks, 10))
    del computed[:]
    gram = Gram(OTMANN())
    other = DistanceSync(stored, [gram])
    # Own networks, then those of a source, then a new one: every pair once.
    assert other.keep(first(networks, 3)) == other.keep(first(networks, 10)) == 0
    assert computed == []
    assert other.keep({list(networks)[10]: list(networks.values())[10]}) == 10
    assert len(computed) == 1
    values = list(networks.values())[:11]
    distances = gram.distances(values).stack
    assert len(computed) == 1
    np.testing.assert_array_equal(distances, OTMANN().distances(values).stack)


def test_beyond_the_limit_a_new_network_gets_its_nearest(stored, networks, monkeypatch):
    monkeypatch.setattr(distance_sync, "ALL_PAIRS", 8)
    monkeypatch.setattr(distance_sync, "NEAREST", 4)
    keeper = DistanceSync(stored)
    assert keeper.keep(first(networks, 13)) == 0
    assert keeper.keep(networks) == 4
    key = list(networks)[13]
    others = list(networks)[:13]
    row = stored.distances.rows([key], others, "otmann")[0, 0]
    exact = OTMANN().distances([networks[key]], [networks[other] for other in others]).stack[0, 0]
    stored_pairs = ~np.isnan(row)
    assert stored_pairs.sum() == 4
    np.testing.assert_array_equal(row[stored_pairs], exact[stored_pairs])
    assert exact[stored_pairs].max() <= exact[~stored_pairs].min()


def test_rows_are_the_matrix_cut_out(stored, networks):
    DistanceSync(stored).keep(first(networks, 6))
    keys = list(networks)[:8]
    matrix = stored.distances.matrix(keys, "otmann")
    np.testing.assert_array_equal(stored.distances.rows(keys[4:7], keys, "otmann"), matrix[:, 4:7])
    np.testing.assert_array_equal(
        stored.distances.rows(keys, keys[2:5], "otmann"), matrix[:, :, 2:5]
    )
    assert stored.distances.rows(keys[:2], keys[2:], "edit").shape == (2, 6)
    assert np.isnan(stored.distances.rows(keys[:2], keys[2:], "edit")).all()


def test_a_kernel_of_other_settings_has_a_name_of_its_own():
    assert (
        list(kinds(OTMANN())) == list(kinds(OTMANN(threads=1))) == ["otmann", "otmann_normalised"]
    )
    assert list(kinds(OTMANN("code"))) == ["otmann_variant_code", "otmann_variant_code_normalised"]
    assert list(kinds(kernels.get("gromov-wasserstein", starts=1))) == [
        "gromov_wasserstein_starts_1"
    ]
    other = list(kinds(OTMANN(nu_str=(0.5,))))
    assert other != list(kinds(OTMANN(nu_str=(0.25,)))) and all(
        name.isidentifier() for name in other
    )


def test_what_is_worth_storing():
    assert worth_storing(kernels.get("otmann"), "cnn") and worth_storing(
        kernels.get("wasserstein"), "mlp"
    )
    assert not worth_storing(kernels.get("edit"), "cnn") and not worth_storing(
        kernels.get("path"), "cnn"
    )
    assert not worth_storing(kernels.get("otmann"), "nasbench201")


@pytest.mark.parametrize(
    ("kind", "memories"), [("nasbot", 1), ("gp-wasserstein", 1), ("morphism", 1), ("random", 0)]
)
def test_agents_show_their_memories(kind, memories):
    assert len(agents.get(kind, SPACE).grams) == memories


def test_a_filled_memory_changes_no_suggestion(stored, networks, few_candidates):
    seen = tuple(
        Observation(network, score, f"s#{at}")
        for at, (network, score) in enumerate(
            zip(networks.values(), np.linspace(0, 1, 14) ** 2, strict=True)
        )
    )
    cold, warm = (agents.get("gp-wasserstein", SPACE) for _ in range(2))
    DistanceSync(stored, warm.grams).keep(networks)
    DistanceSync(stored, (other := agents.get("gp-wasserstein", SPACE)).grams).keep(networks)
    suggestions = [
        agent.propose(History(seen), 1, np.random.default_rng(3)) for agent in (cold, warm, other)
    ]
    assert suggestions[0] == suggestions[1] == suggestions[2]
    assert (
        "wasserstein" in stored.query("MATCH ()-[d:DISTANCE]->() RETURN keys(d) LIMIT 1").rows[0][0]
    )

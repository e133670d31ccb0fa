"""The mean effect: against the written-out sum over pairs of pairs, and its coverage."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import stdtrit

from archive.effects.estimate import estimate

ENDS = st.lists(
    st.tuples(st.floats(-5, 5), st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=30
)


def arrays(rows):
    differences, first, second = zip(*rows, strict=True)
    return np.array(differences), np.array(first, np.int64), np.array(second, np.int64)


def test_families_that_differ_have_one_voice_each_and_families_that_agree_one_a_pair():
    first = np.array([0] * 40 + [1, 1, 2, 2], np.int64)
    apart = np.array([1.0] * 40 + [3.0, 3.0, 5.0, 5.0]) + np.tile([-0.01, 0.01], 22)
    assert estimate(apart, first, first).mean == pytest.approx(3.0, abs=0.02)
    alike = np.tile([0.0, 2.0], 22) + np.where(first == 2, 1e-3, 0)
    assert estimate(alike, first, first).mean == pytest.approx(1.0, abs=0.01)


def test_the_variance_is_the_sum_over_all_pairs_that_share_a_cluster():
    """Each pair of eight clusters once: all weights are equal."""
    first, second = np.array(list(combinations(range(8), 2)), np.int64).T
    levels = np.random.default_rng(0).normal(size=8)
    differences = levels[first] + levels[second]
    found = estimate(differences, first, second)
    parts = (differences - differences.mean()) / 28
    variance = 0.0
    for one, other in product(range(28), repeat=2):
        if {first[one], second[one]} & {first[other], second[other]}:
            variance += parts[one] * parts[other]

    assert variance > 2 * parts @ parts
    margin = stdtrit(7, 0.975) * np.sqrt(variance * 8 / 7)
    assert found.high - found.mean == pytest.approx(margin)
    assert found.mean - found.low == pytest.approx(margin)


@given(ENDS)
def test_order_direction_and_shift_change_nothing_else(rows):
    differences, first, second = arrays(rows)
    found = estimate(differences, first, second)
    assert found.low <= found.mean <= found.high
    turned = estimate(-differences[::-1], second[::-1], first[::-1])
    assert turned.mean == pytest.approx(-found.mean, abs=1e-9)
    assert turned.high == pytest.approx(-found.low, abs=1e-6)
    shifted = estimate(differences + 1.0, first, second)
    assert shifted.mean == pytest.approx(found.mean + 1.0, abs=1e-6)


def test_one_cluster_has_no_bounded_interval():
    ones = np.zeros(9, np.int64)
    found = estimate(np.arange(9.0), ones, ones)
    assert (found.mean, found.low, found.high) == (4.0, -np.inf, np.inf)


def test_intervals_cover_the_effect_on_families():
    """Independent pairs of one family would give intervals of a third of this width."""
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(300):
        families = np.repeat(np.arange(10), rng.integers(1, 12, 10))
        effects = 1.0 + rng.normal(0, 0.5, 10)[families] + rng.normal(0, 0.2, len(families))
        found = estimate(effects, families, families)
        covered += found.low <= 1.0 <= found.high

    assert 0.9 <= covered / 300 <= 0.99

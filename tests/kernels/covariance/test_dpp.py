"""k-DPPs against the enumeration of all subsets."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from archive.errors import NumericalError, UsageError
from archive.kernels.covariance.dpp import KDPP, log_elementary


def gram(n, rank, seed):
    factor = np.random.default_rng(seed).normal(size=(n, rank))
    return factor @ factor.T


def enumerated(matrix, k):
    """The probabilities of all subsets by eq.

    (10), or of the limit of matrix + eps I where it is of low rank.
    """
    subsets = list(itertools.combinations(range(len(matrix)), k))
    rank = int(np.linalg.matrix_rank(matrix)) if matrix.any() else 0
    weights = [
        sum(
            np.linalg.det(matrix[np.ix_(part, part)])
            for part in itertools.combinations(subset, min(k, rank))
        )
        for subset in subsets
    ]
    return subsets, np.array(weights) / np.sum(weights)


@given(st.integers(1, 7), st.integers(0, 7), st.integers(0, 7), st.integers(0, 2**32 - 1))
def test_probabilities_of_all_subsets(n, rank, k, seed):
    matrix = gram(n, min(rank, n), seed)
    k = min(k, n)
    process = KDPP(matrix, k)
    subsets, expected = enumerated(matrix, k)
    actual = np.exp([process.log_probability(subset) for subset in subsets])
    np.testing.assert_allclose(actual, expected, atol=1e-8)
    assert actual.sum() == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("n", "rank", "k"),
    [(6, 6, 3), (7, 3, 3), (5, 2, 3), (4, 0, 2), (6, 6, 6), (6, 6, 1)],
    ids=["full rank", "k is the rank", "k above the rank", "all zero", "all items", "one item"],
)
def test_samples_follow_the_probabilities(n, rank, k):
    process = KDPP(gram(n, rank, seed=n + rank + k), k)
    rng = np.random.default_rng(7)
    subsets = list(itertools.combinations(range(n), k))
    counts = dict.fromkeys(subsets, 0)
    for _ in range(4000):
        counts[process.sample(rng)] += 1

    expected = 4000 * np.exp([process.log_probability(subset) for subset in subsets])
    if len(subsets) > 1:
        assert chisquare(list(counts.values()), expected, sum_check=False).pvalue > 1e-3


def test_uneven_qualities_are_sampled_evenly_often():
    quality = np.array([1.0, 3.0, 0.3, 2.0, 0.5])
    process = KDPP(quality[:, None] * gram(5, 5, 1) * quality, 2)
    rng = np.random.default_rng(3)
    drawn = [process.sample(rng) for _ in range(4000)]
    subsets, expected = enumerated(quality[:, None] * gram(5, 5, 1) * quality, 2)
    assert chisquare([drawn.count(subset) for subset in subsets], 4000 * expected).pvalue > 1e-3


def test_the_limit_is_the_limit():
    matrix = gram(6, 2, 5)
    limit = KDPP(matrix, 4)
    near = KDPP(matrix + 1e-6 * np.eye(6), 4)
    for subset in itertools.combinations(range(6), 4):
        assert limit.log_probability(subset) == pytest.approx(
            near.log_probability(subset), abs=1e-4
        )


def test_repeats_never_stand_together():
    matrix = gram(4, 4, 2)[np.ix_([0, 0, 1, 2, 3], [0, 0, 1, 2, 3])]
    process = KDPP(matrix, 3)
    assert process.log_probability([0, 1, 2]) < -25
    rng = np.random.default_rng(0)
    assert not any({0, 1} <= set(process.sample(rng)) for _ in range(300))


def test_a_thousand_items_whose_polynomials_overflow():
    matrix = 1e12 * gram(1000, 600, 4)
    process = KDPP(matrix, 60)
    assert process.rank == 600
    rng = np.random.default_rng(1)
    drawn = process.sample(rng)
    assert len(set(drawn)) == 60 and drawn == tuple(sorted(drawn))
    # det of 60 items in 600 directions against that of random items: the sample's must be likely.
    others = [process.log_probability(rng.choice(1000, 60, replace=False)) for _ in range(5)]
    assert np.isfinite(process.log_probability(drawn))
    assert process.log_probability(drawn) > min(others)


def test_scale_does_not_matter():
    matrix = gram(6, 6, 9)
    small = KDPP(1e-200 * matrix, 3)
    large = KDPP(1e100 * matrix, 3)
    assert small.log_probability([0, 2, 5]) == pytest.approx(large.log_probability([0, 2, 5]))
    assert small.sample(np.random.default_rng(2)) == large.sample(np.random.default_rng(2))


@given(st.lists(st.floats(0.0, 10.0, allow_subnormal=False), max_size=7), st.integers(0, 8))
def test_elementary_polynomials_by_definition(values, k):
    actual = np.exp(log_elementary(np.array(values), k))
    for degree, m in itertools.product(range(k + 1), range(len(values) + 1)):
        expected = sum(math.prod(part) for part in itertools.combinations(values[:m], degree))
        assert actual[degree, m] == pytest.approx(expected)


def test_subsets_of_another_size_and_none():
    process = KDPP(np.eye(3), 2)
    assert process.log_probability([0]) == -np.inf
    assert KDPP(np.eye(3), 0).sample(np.random.default_rng(0)) == ()
    assert KDPP(np.eye(3), 0).log_probability([]) == pytest.approx(0.0)
    assert KDPP(np.zeros((0, 0)), 0).sample(np.random.default_rng(0)) == ()


def test_what_cannot_be():
    with pytest.raises(UsageError, match="between 0 and the number of items, 3, got 4"):
        KDPP(np.eye(3), 4)

    with pytest.raises(UsageError, match=r"distinct positions below 3, got \[0, 0\]"):
        KDPP(np.eye(3), 2).log_probability([0, 0])

    with pytest.raises(NumericalError, match=r"square matrix, got shape \(2, 3\)"):
        KDPP(np.zeros((2, 3)), 1)

    with pytest.raises(NumericalError, match="finite, got nan"):
        KDPP(np.array([[1.0, np.nan], [np.nan, 1.0]]), 1)

    with pytest.raises(NumericalError, match="symmetric"):
        KDPP(np.array([[1.0, 0.5], [0.0, 1.0]]), 1)

    with pytest.raises(NumericalError, match="positive semi-definite, got an eigenvalue of -1"):
        KDPP(np.array([[0.0, 1.0], [1.0, 0.0]]), 1)

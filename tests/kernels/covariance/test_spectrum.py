"""Repair of indefinite matrices: exact, reported, and without effect on semi-definite ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.errors import NumericalError
from archive.kernels.covariance.spectrum import (
    IndefiniteKernelWarning,
    repair,
    surely_positive_semidefinite,
)
from tests.support import kernel_oracle


def with_spectrum(values: list[float], seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    vectors = np.linalg.qr(rng.standard_normal((len(values), len(values))))[0]
    matrix = (vectors * values) @ vectors.T
    return 0.5 * (matrix + matrix.T)


def test_clips_negative_eigenvalues_and_says_so():
    matrix = with_spectrum([3.0, 4.0, -2.0, 1.0, -0.5])
    with pytest.warns(IndefiniteKernelWarning, match="2 of 5 eigenvalues .* down to -2") as caught:
        repaired = repair(matrix)

    np.testing.assert_allclose(np.linalg.eigvalsh(repaired.matrix), [0, 0, 1, 3, 4], atol=1e-12)
    np.testing.assert_array_equal(repaired.matrix, repaired.matrix.T)
    assert repaired.negative == 2
    assert repaired.smallest == pytest.approx(-2.0)
    assert repaired.amount == pytest.approx(np.sqrt(4.25 / 30.25))
    assert repaired.amount == pytest.approx(
        np.linalg.norm(repaired.matrix - matrix) / np.linalg.norm(matrix)
    )
    assert caught[0].message.repair.negative == 2
    # Projecting the matrix itself gives the repaired one: training and prediction agree.
    np.testing.assert_allclose(repaired.projection @ matrix, repaired.matrix, atol=1e-12)


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=8), st.integers(0, 99))
def test_sound_matrices_stay_as_they_are(values, seed):
    matrix = with_spectrum(values, seed)
    repaired = repair(matrix)
    assert repaired.matrix is matrix
    assert repaired.amount == 0
    assert repaired.projection is None


def test_rounding_is_not_indefiniteness():
    points = np.random.default_rng(0).standard_normal((40, 3))
    for matrix in (points @ points.T, np.zeros((3, 3)), np.zeros((0, 0))):
        assert repair(matrix).matrix is matrix

    assert repair(np.array([[1.0, 2.0], [2.0, 1.0]]), warn=False).negative == 1


@given(st.lists(st.floats(-1.0, 1e3), min_size=1, max_size=8), st.integers(0, 99))
def test_the_quick_check_is_never_wrong_when_it_says_yes(values, seed):
    matrix = with_spectrum(values, seed)
    if surely_positive_semidefinite(matrix):
        # A hair more than the tolerance, which is at the level of rounding itself.
        assert kernel_oracle.is_positive_semidefinite(matrix, 2e-14 * len(matrix))

    if min(values) > 1e-9 * max(values):
        assert matrix.sum() <= 0 or surely_positive_semidefinite(matrix)


def test_the_quick_check_passes_covariances_of_networks_that_are_equal():
    places = np.random.default_rng(1).uniform(0, 1, (60, 3))
    places[40:] = places[:20]
    distance = np.abs(places[:, None] - places[None, :]).sum(axis=2)
    assert surely_positive_semidefinite(np.exp(-distance))
    assert surely_positive_semidefinite(np.zeros((0, 0)))
    assert not surely_positive_semidefinite(np.array([[1.0, np.nan], [np.nan, 1.0]]))


@pytest.mark.parametrize(
    ("matrix", "reason"),
    [
        (np.ones((2, 3)), r"square, got shape \(2, 3\)"),
        (np.array([[1.0, np.nan], [np.nan, 1.0]]), "not finite"),
        (np.array([[1.0, 0.5], [0.2, 1.0]]), "symmetric, got 0.3 off"),
    ],
)
def test_bad_input(matrix, reason):
    with pytest.raises(NumericalError, match=reason):
        repair(matrix)

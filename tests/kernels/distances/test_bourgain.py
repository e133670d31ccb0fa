"""The Bourgain embedding: the statements of theorem 2, against a direct implementation of the
definition."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.errors import NumericalError, UsageError
from archive.kernels.distances.bourgain import Bourgain
from archive.kernels.distances.edit import EditDistance
from tests.support import kernel_oracle
from tests.support.strategies import cells


@st.composite
def metrics(draw, largest=14):
    """Shortest paths in a random weighted graph; few weights make many equal distances."""
    n = draw(st.integers(1, largest))
    weights = draw(
        st.lists(st.sampled_from([0.5, 1.0, 1.0, 2.0, 7.0]), min_size=n * n, max_size=n * n)
    )
    d = np.array(weights).reshape(n, n)
    d = np.minimum(d, d.T)
    np.fill_diagonal(d, 0.0)
    for k in range(n):
        d = np.minimum(d, d[:, k, None] + d[None, k])

    return d


@given(metrics(), st.integers(0, 5), st.data())
def test_theorem_2(d, seed, data):
    seen = data.draw(st.integers(1, len(d)))
    made = Bourgain.fit(d[:seen, :seen], seed)
    rho = made.distances()
    assert (rho <= d[:seen, :seen] + 1e-12).all()
    # rho is a metric on the observed networks, and its Gaussian kernel strictly positive definite.
    assert ((rho > 0) == (d[:seen, :seen] > 0)).all()
    assert np.linalg.eigvalsh(made.kernel(gamma=50 / rho.max(initial=0.1) ** 2))[0] > 0
    # New networks join, and the kernel of all together stays sound.
    every = made.embed(d[:, :seen])
    np.testing.assert_array_equal(every[:seen], made.coordinates)
    assert (made.distances(every, every) <= d + 1e-12).all()
    for gamma in (0.01, 1.0, 30.0):
        together = made.kernel(every, every, gamma)
        assert kernel_oracle.is_positive_semidefinite(together)
        np.testing.assert_allclose(
            together[:seen, seen:], made.kernel(None, every[seen:], gamma), rtol=1e-12
        )


@given(st.lists(cells(), min_size=2, max_size=9))
def test_of_edit_distances(networks):
    d = EditDistance().distances(networks).stack[0]
    made = Bourgain.fit(d)
    assert ((made.distances() > 0) == (d > 0)).all()
    assert kernel_oracle.is_positive_semidefinite(made.kernel())


def test_the_definition():
    rng = np.random.default_rng(0)
    points = rng.random((37, 3))
    d = np.abs(points[:, None] - points[None]).sum(axis=2)
    made = Bourgain.fit(d)
    assert [len(chosen) for chosen in made.sets] == [
        2**i for i in range(6) for _ in range(math.ceil(math.log(37)))
    ]
    assert all(len(set(chosen)) == len(chosen) for chosen in made.sets)
    coordinates = np.array(
        [[min(d[x, s] for s in chosen) for chosen in made.sets] for x in range(37)]
    )
    np.testing.assert_array_equal(made.coordinates, coordinates)
    squares = ((coordinates[:, None] - coordinates[None]) ** 2).sum(axis=2) / coordinates.shape[1]
    np.testing.assert_allclose(made.distances(), np.sqrt(squares), rtol=1e-12)
    np.testing.assert_allclose(made.kernel(gamma=2.0), np.exp(-2 * squares), rtol=1e-12)
    np.testing.assert_array_equal(Bourgain.fit(d).coordinates, made.coordinates)
    assert len(Bourgain.fit(d, repeats=9).sets) == 6 * 9
    assert made.distortion(d) == pytest.approx(np.max(d[d > 0] / made.distances()[d > 0]))
    assert 1 < made.distortion(d) < 20


def test_networks_that_no_random_set_tells_apart():
    d = 1.0 - np.eye(50)
    made = Bourgain.fit(d, repeats=1)
    assert len(made.sets) > 6
    assert (made.distances()[d > 0] > 0).all()
    # Equal networks stay equal: nothing is added for them.
    twice = np.kron(d, np.ones((2, 2)))
    rho = Bourgain.fit(twice, repeats=1).distances()
    assert ((rho > 0) == (twice > 0)).all()


def test_none_and_one():
    none = Bourgain.fit(np.zeros((0, 0)))
    assert none.kernel().shape == (0, 0)
    np.testing.assert_array_equal(none.kernel(*[none.embed(np.zeros((3, 0)))] * 2), np.ones((3, 3)))
    assert none.distortion(np.zeros((0, 0))) == 1.0
    one = Bourgain.fit(np.zeros((1, 1)))
    np.testing.assert_allclose(
        one.kernel(one.embed(np.array([[2.0], [0.0]]))), [[math.exp(-4)], [1.0]]
    )
    same = Bourgain.fit(np.zeros((4, 4)))
    np.testing.assert_array_equal(same.kernel(), np.ones((4, 4)))
    assert same.distortion(np.zeros((4, 4))) == 1.0


@pytest.mark.parametrize(
    ("distances", "reason"),
    [
        (np.zeros((2, 3)), r"square, got shape \(2, 3\)"),
        (np.full((2, 2), np.nan), "2 x 2 distances are not all finite"),
        (np.array([[0, -1.0], [-1, 0]]), ">= 0, got -1"),
        (np.ones((2, 2)), "at distance 0 from itself, got 1"),
        (np.array([[0, 1.0], [2, 0]]), "symmetric, got 1 off"),
    ],
)
def test_distances_that_are_none(distances, reason):
    with pytest.raises(NumericalError, match=reason):
        Bourgain.fit(distances)


def test_bad_arguments():
    made = Bourgain.fit(1.0 - np.eye(3))
    with pytest.raises(UsageError, match=r"shape \(m, 3\), got \(4, 2\)"):
        made.embed(np.zeros((4, 2)))

    with pytest.raises(NumericalError, match="finite and >= 0"):
        made.embed(np.array([[0.0, 1.0, np.inf]]))

    with pytest.raises(UsageError, match="gamma must be a finite number >= 0, got -1"):
        made.kernel(gamma=-1)

    with pytest.raises(UsageError, match="repeats must be >= 1, got 0"):
        Bourgain.fit(np.zeros((2, 2)), repeats=0)

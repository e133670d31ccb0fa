"""The exact solver on instances beyond those of networks: ties, tiny and huge masses, costs at the
limit."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from archive.kernels.distances import transport
from tests.support import examples, kernel_oracle

sizes = st.integers(0, 7)
# Few distinct values make ties, hence degenerate pivots; the wide range strains tolerances.
ties = st.integers(1, 3).map(float)
wide = st.sampled_from([1e-3, 0.1, 0.3, 1.0, 7.7, 1e4, 1e8]) | st.floats(1e-3, 1e8)


@st.composite
def instances(draw):
    """Masses of both sides and label penalties, one label a node, so that any cost matrix can be
    had."""
    m = draw(sizes)
    n = draw(sizes)
    mass = draw(st.sampled_from([ties, wide]))
    cost = draw(
        st.sampled_from([st.sampled_from([0.0, 0.5, 1.0, 1.999, 2.0, np.inf]), st.floats(0, 2.5)])
    )
    return (
        draw(arrays(float, m, elements=mass)),
        draw(arrays(float, n, elements=mass)),
        draw(arrays(float, (m, n), elements=cost)),
    )


def solve(a, b, cost, places=None, nu_str=(0.0,)):
    m, n = cost.shape
    penalties = np.full((m + n, m + n), np.inf)
    penalties[:m, m:] = cost
    penalties[m:, :m] = cost.T
    arcs, tree = transport.workspace(max(m, n), max(m, n))
    out = np.empty((len(nu_str), 2))
    places = np.zeros((m + n, 1)) if places is None else places
    failed = transport.solve_pairs(
        np.array([[0, 1], [1, 0]]),
        np.concatenate([a, b]),
        np.arange(m + n),
        places,
        transport.slopes_of(places),
        np.array([[0, m], [m, m + n]]),
        penalties,
        np.array(nu_str, float),
        arcs,
        tree,
        out,
    )
    assert failed == -1
    np.testing.assert_allclose(out[:, 0], out[:, 1], rtol=1e-9, atol=1e-12 * (a.sum() + b.sum()))
    return out[:, 0]


@examples(5)
@given(instances())
def test_optimum(instance):
    a, b, cost = instance
    expected = kernel_oracle.program_3(a, b, cost) if cost.size else a.sum() + b.sum()
    np.testing.assert_allclose(
        solve(a, b, cost), expected, rtol=1e-7, atol=1e-8 * max(a.max(initial=0), b.max(initial=0))
    )


@given(instances(), st.integers(0, 2**32 - 1))
def test_the_warm_start_reaches_the_same_optimum(instance, seed):
    a, b, cost = instance
    places = np.random.default_rng(seed).integers(0, 6, (len(a) + len(b), 3)) / 2
    nu_str = (0.0, 0.05, 0.1, 0.3, 1.0, 5.0)
    together = solve(a, b, cost, places, nu_str)
    alone = [solve(a, b, cost, places, (nu,))[0] for nu in nu_str]
    np.testing.assert_allclose(together, alone, rtol=1e-9, atol=1e-12 * (a.sum() + b.sum()))


def test_blocks_of_many_pairs():
    """They have another rule of pricing."""
    assert 70 * 80 >= transport.MANY
    rng = np.random.default_rng(3)
    m = 70
    n = 80
    a = rng.integers(1, 50, m).astype(float)
    b = rng.integers(1, 50, n).astype(float)
    cost = rng.choice([0.0, 0.25, 0.4, np.inf], (m, n))
    places = (
        np.hstack(
            [np.sort(rng.random((m + n, 3)), axis=0), np.sort(rng.random((m + n, 3)), axis=0)[::-1]]
        )
        * 4
    )
    structure = np.abs(places[:m, None] - places[None, m:]).sum(axis=2)
    for nu, found in zip((0.1, 0.8), solve(a, b, cost, places, (0.1, 0.8)), strict=True):
        np.testing.assert_allclose(
            found, kernel_oracle.program_3(a, b, cost + nu * structure), rtol=1e-7
        )


def test_degenerate_assignments_end():
    rng = np.random.default_rng(0)
    for n in (2, 10, 60, 200):
        cost = rng.integers(0, 3, (n, n)) / 2.0
        ones = np.ones(n)
        assert 0 <= solve(ones, ones, cost)[0] <= n


def test_equal_costs_match_everything_that_fits():
    a = np.array([3.0, 1.0, 2.0])
    b = np.array([4.0, 1.0])
    np.testing.assert_allclose(solve(a, b, np.full((3, 2), 0.5)), 5 * 0.5 + 1)

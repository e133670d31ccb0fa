"""The Gaussian process's benchmark at a small size: its figures and their meaning."""

from __future__ import annotations

import math

import numpy as np
import pytest

from archive.agents.surrogates.threads import one_thread
from tests.benchmarks.agents import gp


@pytest.mark.whole
def test_figures():
    figures = gp.measure(observations=30, candidates=20, many=60, repeats=1)
    assert all(math.isfinite(figure.value) and figure.value >= 0.0 for figure in figures)
    exact = [figure for figure in figures if figure.goal == "<= 1e-6"]
    assert len(exact) == 3
    assert all(figure.value <= 1e-6 for figure in exact)
    assert sum("30 observations, 3 components" in figure.name for figure in figures) == 1
    (peak,) = (figure for figure in figures if figure.unit == "MiB")
    assert 20 < peak.value < 4096
    assert len(figures) == 8


def test_the_naive_posterior_is_the_same_one():
    points = gp.Points(40, 0)
    surrogate = gp.DistanceGP(points, gp.exponential(3), gp.MarginalLikelihood())
    fitted = surrogate.fit(points.networks[:30], points.scores[:30], np.random.default_rng(0))
    naive = gp._Naive(points, fitted).posterior(np.arange(30), np.arange(30, 40))
    posterior = fitted.posterior(points.networks[30:])
    scale = fitted.scale
    np.testing.assert_allclose(
        scale.centre + scale.spread * np.array([mean for mean, _ in naive]), posterior.mean
    )
    np.testing.assert_allclose(
        scale.spread**2 * np.array([variance for _, variance in naive]), posterior.variance
    )


def test_threads_are_given_back():
    from threadpoolctl import threadpool_info

    def threads():
        return [
            library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
        ]

    before = threads()
    with one_thread(5000):
        assert threads() == before

    with one_thread():
        with one_thread(3):
            assert set(threads()) == {1}

        assert set(threads()) == {1}

    assert threads() == before

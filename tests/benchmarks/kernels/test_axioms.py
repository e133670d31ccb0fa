"""The axioms that `python -m tests.benchmarks kernels` measures, and the detection of a kernel that violates
one."""

from __future__ import annotations

import numpy as np
import pytest

from archive import kernels
from tests.benchmarks.kernels import axioms


@pytest.mark.whole
def test_every_kernel_keeps_what_it_claims():
    figures = list(axioms.measure(networks=6))
    assert {figure.name.partition(":")[0] for figure in figures} == set(kernels.names())
    for figure in figures:
        if figure.goal is not None:
            sign, bound = figure.goal.split()
            assert figure.value <= float(bound) if sign == "<=" else figure.value >= float(bound), (
                figure
            )


def test_a_detour_that_is_shorter_shows():
    distances = np.array([[0.0, 1.0, 4.0], [1.0, 0.0, 1.0], [4.0, 1.0, 0.0]])
    assert axioms._triangle(distances) == pytest.approx((4 - 2) / 4)
    assert axioms._triangle(np.sqrt(distances)) <= 0


def test_a_covariance_that_is_none_shows():
    # Four points around a centre at distance 1, 2 from each other: a star, whose squares no
    # Euclidean space holds.
    star = np.full((5, 5), 2.0)
    star[0] = star[:, 0] = 1.0
    np.fill_diagonal(star, 0.0)
    assert axioms._smallest(star**2) < -1e-3
    assert axioms._smallest(star) > 0

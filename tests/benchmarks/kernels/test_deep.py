"""The benchmark of large networks measures valid networks; speeds are not judged here."""

from __future__ import annotations

import numpy as np

from archive import spaces
from tests.benchmarks.kernels import deep


def test_networks_are_members_of_the_size_asked_for():
    first, second = (deep.residual_network(60, np.random.default_rng(seed)) for seed in (0, 1))
    for network in (first, second):
        spaces.get("torch").validate(network)
        assert 60 <= len(network.layers) < 80

    assert first.key != second.key


def test_figures():
    figures = list(deep.measure(networks=3, layers=30))
    assert len({figure.name for figure in figures}) == len(figures) == 5
    assert all(figure.value > 0 and figure.unit == "ms" for figure in figures)
    assert sum(figure.goal == "<= 50" for figure in figures) == 2

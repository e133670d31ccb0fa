"""Stand-ins for architectures whose distances are L1 distances of points: what the Gaussian
process's tests share."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from archive.kernels.base import Components


class Point(NamedTuple):
    """All that a Gaussian process asks of an architecture is its key."""

    key: str
    place: tuple[float, ...]


class Differences:
    """One component a coordinate: |x_i - y_i|."""

    def distances(self, first, second=None):
        rows, columns = (
            np.array([point.place for point in some])
            for some in (first, first if second is None else second)
        )
        if not rows.size or not columns.size:
            return Components(
                np.empty((3, len(rows), len(columns))), np.empty((0, len(rows), len(columns)))
            )

        stack = np.abs(rows.T[:, :, None] - columns.T[:, None, :])
        return Components(stack, np.empty((0, *stack.shape[1:])))


def points(count, seed=0, coordinates=3):
    places = np.random.default_rng(seed).uniform(0.0, 3.0, (count, coordinates))
    return [Point(f"{seed}-{at}", tuple(place)) for at, place in enumerate(places)]


def smooth(networks, seed=0, noise=0.1):
    """Scores that depend on the first coordinate strongly, on the second weakly, on the third not
    at all."""
    places = np.array([network.place for network in networks])
    clean = np.sin(2.0 * places[:, 0]) + 0.2 * places[:, 1:2].sum(axis=1)
    return clean + noise * np.random.default_rng(seed).standard_normal(len(networks))

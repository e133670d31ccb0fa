"""Places of objects on a plane by their distances: landmark multidimensional scaling.

de Silva, Tenenbaum: Sparse multidimensional scaling using landmark points (Stanford, 2004), section
2.

| symbol | meaning                                                                     | shape    |
|--------|-----------------------------------------------------------------------------|----------|
| m, n   | number of landmarks, number of objects                                      |          |
| D      | squared distances of the landmarks                                          | (m, m)   |
| mu     | mean of the columns of D                                                    | (m,)     |
| B      | -H D H / 2, with H the centring matrix; eigenvalues l_i, eigenvectors v_i   | (m, m)   |
| L#     | rows v_i / sqrt(l_i) of the k largest positive eigenvalues                  | (k, m)   |
| d_x    | squared distances of an object to the landmarks                             | (m,)     |
| x      | -L# (d_x - mu) / 2, the place of the object                                 | (k,)     |

Distances that belong to points of a k-dimensional Euclidean space are kept exactly. The cost is m
distances an object, and O(m^3) once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from archive.errors import NumericalError
from archive.plots.data.results import Floats

ROWS = 4096
"""Objects that are placed at a time, so that their distances stay small in memory."""


@dataclass(frozen=True, eq=False)
class Plane:
    """An embedding that was fitted to landmarks.

    Attributes:
        basis: (k, m) float64, L#.
        means: (m,) float64, mu.
        kept: Share of the positive part of the spectrum of B that the k axes keep, in [0, 1].
    """

    basis: Floats
    means: Floats
    kept: float

    @classmethod
    def fit(cls, distances: Floats, axes: int = 2) -> Plane:
        """Fit the (m, m) distances of the landmarks; places on an axis without extent are 0.

        Raises:
            NumericalError: A distance is not finite.
        """
        if not np.isfinite(distances).all():
            raise NumericalError(f"distances of {len(distances)} landmarks are not all finite")

        squares = distances**2
        means: Floats = squares.mean(axis=0)
        centred = -0.5 * (squares - means - means[:, None] + means.mean())
        values, vectors = np.linalg.eigh(centred)
        positive = values[values > 0].sum()
        largest = values[::-1][:axes]
        # Rounding leaves tiny eigenvalues; their axes would be noise.
        usable = largest > 1e-9 * max(values[-1], 0.0)
        basis = np.zeros((axes, len(distances)))
        basis[: len(largest)][usable] = (
            vectors[:, ::-1][:, :axes][:, usable] / np.sqrt(largest[usable])
        ).T
        return cls(basis, means, float(largest[usable].sum() / positive) if positive > 0 else 1.0)

    def place(self, distances: Floats) -> Floats:
        """Return the (q, k) places of objects from their (q, m) distances to the landmarks."""
        places: Floats = -0.5 * (distances**2 - self.means) @ self.basis.T
        return places


def place_all(plane: Plane, count: int, distances: Callable[[slice], Floats]) -> Floats:
    """Return the (n, k) places of objects from their distances to the landmarks, by parts."""
    places = np.zeros((count, len(plane.basis)))
    for begin in range(0, count, ROWS):
        part = slice(begin, min(begin + ROWS, count))
        places[part] = plane.place(distances(part))

    return places


def orient(places: Floats, size: Floats) -> Floats:
    """Return places with axes turned so that larger objects lie toward the positive end.

    The sign of an eigenvector is arbitrary. Where size and place are unrelated, the first place
    other than 0 becomes positive.
    """
    turned = places.copy()
    for axis in turned.T:
        if not len(axis):
            continue

        centred = axis - axis.mean()
        sizes = size - size.mean()
        tendency = float(np.dot(centred, sizes))
        scale = float(np.linalg.norm(centred) * np.linalg.norm(sizes))
        if abs(tendency) <= 1e-9 * scale or not scale:
            tendency = float(next(filter(None, axis), 1.0))

        if tendency < 0 or tendency != tendency:
            axis *= -1.0

    return turned

"""Feature distances: norms of the difference of features, computed once a network.

| symbol | meaning                                                                    | shape          |
|--------|----------------------------------------------------------------------------|----------------|
| phi_c  | sparse features of one network, by name; one vector for each component c   | (features,)    |
| X, Y   | dense features of the rows' and of the columns' networks                   | (m, p), (n, p) |
| d_c    | ||phi_c(x) - phi_c(y)||, the L1 or the Euclidean norm                      | (m, n)         |

Both norms are metrics of the features, so that d_c is a pseudo-metric of networks. The L1 norm, its
square root, the Euclidean norm and its square are negative definite: exp(-beta d) is then a
covariance for every beta > 0 (Schoenberg).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from archive.architecture.graph import Architecture
from archive.kernels.base import Components, Distance, check_one_space

Floats = NDArray[np.float64]
Comparison = Literal["l1", "l2", "line"]


@dataclass(frozen=True, eq=False)
class Embedded:
    """Features of one network.

    Attributes:
        key: The architecture's key.
        space: The architecture's space.
        features: One sparse vector a component: feature name to value, zeros left out.
    """

    key: str
    space: str
    features: tuple[Mapping[str, float], ...]


class FeatureDistance(Distance[Embedded]):
    """A distance of named features, part by part.

    Features of a whole space are packed once, so that rows are cheap.
    """

    cheap_rows: ClassVar[bool] = True

    @property
    @abstractmethod
    def comparisons(self) -> tuple[Comparison, ...]:
        """Comparison of the features of each part, in the order of `Embedded.features`.

        `l1` and `l2` are norms of the difference. `line` is the area between the distribution
        functions of measures on a line; their features are places and masses.
        """

    @property
    def part_weights(self) -> tuple[float, ...] | None:
        """Weights of the parts in their sum; None where each part is a component."""
        return None

    def _sides(
        self,
        first: Sequence[Embedded | Architecture],
        second: Sequence[Embedded | Architecture] | None,
    ) -> tuple[list[Embedded], list[Embedded] | None]:
        """Return the networks of both sides, prepared; None for the second where it is the first.

        Raises:
            InvalidArchitectureError: The networks are of different spaces.
        """
        rows = list(map(self._as_prepared, first))
        columns = None if second is None else list(map(self._as_prepared, second))
        check_one_space([*rows, *(columns or ())])
        return rows, columns

    def _as_prepared(self, network: Embedded | Architecture) -> Embedded:
        return self.prepare(network) if isinstance(network, Architecture) else network


class EmbeddedDistance(FeatureDistance):
    """A norm of the difference of sparse feature vectors; blocks are computed at memory speed.

    Attributes:
        norm: `"l1"`, or `"l2"` for the Euclidean norm (not its square).
    """

    norm: ClassVar[Literal["l1", "l2"]]

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Return the norm, once for each component."""
        return (self.norm,) * len(self.components)

    @property
    def power(self) -> float:
        """1 for L1; 2 for the Euclidean norm: exp(-beta d^2) is then the features' Gaussian."""
        return 2.0 if self.norm == "l2" else 1.0

    @abstractmethod
    def features(self, architecture: Architecture) -> tuple[Mapping[str, float], ...]:
        """Return the features of a network, one mapping a component.

        They are equal for all its relabellings.

        Raises:
            InvalidArchitectureError: The features are not defined on this network.
        """

    def prepare(self, architecture: Architecture) -> Embedded:
        """Compute the features, without zeros."""
        features = tuple(map(_without_zeros, self.features(architecture)))
        return Embedded(architecture.key, architecture.space, features)

    @property
    def unnormalised(self) -> int:
        """Return the number of components: none is normalised by default."""
        return len(self.components)

    def distances(
        self,
        first: Sequence[Embedded | Architecture],
        second: Sequence[Embedded | Architecture] | None = None,
    ) -> Components:
        """Compare distinct features once, by vector instructions or merging, on all processors."""
        from archive.kernels.features import l1_blocks

        rows, columns = self._sides(first, second)
        stack = np.zeros(
            (len(self.components), len(rows), len(rows if columns is None else columns))
        )
        for component, block in enumerate(stack if stack.size else ()):
            part = l1_blocks.vectors(
                features_of(rows, component),
                None if columns is None else features_of(columns, component),
                euclidean=self.norm == "l2",
            )
            l1_blocks.fill(block, [(1.0, part)], symmetric=columns is None)

        return Components.of_stack(stack, self.unnormalised)


def _without_zeros(features: Mapping[str, float]) -> dict[str, float]:
    return {name: float(value) for name, value in features.items() if value}


def features_of(networks: Sequence[Embedded], part: int) -> list[Mapping[str, float]]:
    """Return the features of one part of networks."""
    return [network.features[part] for network in networks]


def vocabulary(networks: Sequence[Embedded], component: int = 0) -> tuple[str, ...]:
    """Return the sorted names of all features of the networks."""
    return tuple(sorted(set[str]().union(*features_of(networks, component))))


def matrix(networks: Sequence[Embedded], names: Sequence[str], component: int = 0) -> Floats:
    """Return the features as a dense matrix.

    Args:
        networks: m networks.
        names: Names of the columns; other features are ignored.
        component: Position of the component.

    Returns:
        (m, len(names)) float64.
    """
    from archive.kernels.features.l1_blocks import dense

    return dense(features_of(networks, component), dict(zip(names, range(len(names)), strict=True)))

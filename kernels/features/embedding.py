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
        """Weights of the parts in their sum, the one component;

        None where each part is a component.
        """
        return None


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
        """2 for the Euclidean norm, so that exp(-beta d^2) is the Gaussian kernel of the features;

        1 for L1.
        """
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
        features = tuple(
            {name: float(x) for name, x in part.items() if x}
            for part in self.features(architecture)
        )
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

        rows = [self._as_embedded(network) for network in first]
        columns = None if second is None else [self._as_embedded(network) for network in second]
        check_one_space([*rows, *(columns or ())])
        stack = np.zeros(
            (len(self.components), len(rows), len(rows if columns is None else columns))
        )
        for component, block in enumerate(stack if stack.size else ()):
            part = l1_blocks.vectors(
                [network.features[component] for network in rows],
                None if columns is None else [network.features[component] for network in columns],
                euclidean=self.norm == "l2",
            )
            l1_blocks.fill(block, [(1.0, part)], symmetric=columns is None)

        return Components.of_stack(stack, self.unnormalised)

    def _as_embedded(self, network: Embedded | Architecture) -> Embedded:
        return self.prepare(network) if isinstance(network, Architecture) else network


def vocabulary(networks: Sequence[Embedded], component: int = 0) -> tuple[str, ...]:
    """Return the sorted names of all features of the networks."""
    names: set[str] = set()
    for network in networks:
        names.update(network.features[component])

    return tuple(sorted(names))


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

    return dense(
        [network.features[component] for network in networks],
        {name: column for column, name in enumerate(names)},
    )

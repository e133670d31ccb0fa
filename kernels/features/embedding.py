"""Distances that are a norm of the difference of features: embed a network once, then blocks at memory speed.

| symbol | meaning                                                                    | shape          |
|--------|----------------------------------------------------------------------------|----------------|
| phi_c  | sparse features of one network, by name; one vector for each component c   | (features,)    |
| X, Y   | the features of the rows' and of the columns' networks, dense              | (m, p), (n, p) |
| d_c    | ||phi_c(x) - phi_c(y)||, the L1 or the Euclidean norm                      | (m, n)         |

Both norms are metrics of the features, so that d_c is a pseudo-metric of networks. The L1 norm, its square root, the
Euclidean norm and its square are negative definite: exp(-beta d) is then a covariance for every beta > 0 (Schoenberg).
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


@dataclass(frozen=True, eq=False)
class Embedded:
    """The features of one network.

    Attributes:
        key: The architecture's key.
        space: The architecture's space.
        features: One sparse vector a component: feature name to value, zeros left out.
    """

    key: str
    space: str
    features: tuple[Mapping[str, float], ...]


class EmbeddedDistance(Distance[Embedded]):
    """A distance that is a norm of the difference of sparse feature vectors; blocks at memory speed.

    Attributes:
        norm: `"l1"`, or `"l2"` for the Euclidean norm (not its square).
    """

    norm: ClassVar[Literal["l1", "l2"]]

    @abstractmethod
    def features(self, architecture: Architecture) -> tuple[Mapping[str, float], ...]:
        """Return the features of a network, the same for all its relabellings: one mapping a component.

        Raises:
            InvalidArchitectureError: The features are not defined on this network.
        """

    def prepare(self, architecture: Architecture) -> Embedded:
        """Compute the features; those that are 0 are left out."""
        features = tuple({name: float(x) for name, x in part.items() if x} for part in self.features(architecture))
        return Embedded(architecture.key, architecture.space, features)

    @property
    def unnormalised(self) -> int:
        """Count the components: none is normalised unless an implementation says so."""
        return len(self.components)

    def distances(
        self, first: Sequence[Embedded | Architecture], second: Sequence[Embedded | Architecture] | None = None
    ) -> Components:
        """Compare distinct features once, in vector instructions or by merging, on all processors."""
        from archive.kernels.features.l1 import blocks

        rows = [self._embedded(network) for network in first]
        columns = None if second is None else [self._embedded(network) for network in second]
        check_one_space([*rows, *(columns or ())])
        stack = np.zeros((len(self.components), len(rows), len(rows if columns is None else columns)))
        for component, block in enumerate(stack if stack.size else ()):
            part = blocks.vectors(
                [network.features[component] for network in rows],
                None if columns is None else [network.features[component] for network in columns],
                euclidean=self.norm == "l2",
            )
            blocks.fill(block, [(1.0, part)], symmetric=columns is None)
        return Components.of_stack(stack, self.unnormalised)

    def _embedded(self, network: Embedded | Architecture) -> Embedded:
        return self.prepare(network) if isinstance(network, Architecture) else network


def vocabulary(networks: Sequence[Embedded], component: int = 0) -> tuple[str, ...]:
    """Return the names of the features that any of the networks has, sorted."""
    return tuple(sorted({name for network in networks for name in network.features[component]}))


def matrix(networks: Sequence[Embedded], names: Sequence[str], component: int = 0) -> Floats:
    """Lay features out densely.

    Args:
        networks: m networks.
        names: The columns; features of other names are ignored.
        component: Whose features.

    Returns:
        (m, len(names)) float64.
    """
    from archive.kernels.features.l1.parts import dense

    return dense([network.features[component] for network in networks], {name: at for at, name in enumerate(names)})

"""Arc features: layers as conditional hyperparameters of deep and wide enough networks.

Swersky, Duvenaud, Snoek, Hutter, Osborne: Raiders of the Lost Architecture (2014).
`archive.kernels.covariance.arc` has the kernel on configurations, its notation and its formulas;
here the parameters are the settings of a network's layers.

| symbol | meaning                                                                             |
|--------|-------------------------------------------------------------------------------------|
| place  | (p, s): layers whose longest path from the input has p hops; s counts them          |
| op     | categorical parameter of a place: operation and stride of its layer                 |
| units  | real parameter of a place: log of the units, between the logs of least and greatest |
| omega  | cost of a layer at a place in one network only                                      |
| rho    | relative cost of different layers at one place                                      |

The paper names general graphs as future work; this convention is the archive's. Layers with the
same p are ordered by operation, stride and units. The order is invariant under relabelling, and
exchanging equal layers changes no feature. Input and output are the same in all networks and are no
parameters. A layer without inputs has p = 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar, Literal

from archive.architecture.graph import Architecture, Layer
from archive.architecture.operations import INPUT, OUTPUT
from archive.errors import UsageError
from archive.kernels.covariance.arc import choice_coordinates
from archive.kernels.features.embedding import EmbeddedDistance

UNITS = (8, 1024)


class ArcFeatures(EmbeddedDistance):
    """Euclidean distance of layers by place: existence, operation and number of units.

    For either kind of parameter, d = sqrt(sum over places of d_i^2), and d_i is the paper's
    pseudo-metric: 0 where neither network has the parameter, omega where one has it, and omega
    sqrt(2) sqrt(1 - cos(pi rho t)) where both do, with t = 1/2 for different operations and t =
    |difference of log units| / (log greatest - log least). With rho = 1 the squared cost of a
    different operation is equal to one missing and one additional layer.

    Both components are Euclidean distances of embeddings, hence pseudo-metrics, and exp(-sum_i
    beta_i d_i^2) is positive semi-definite. Networks that differ in their wiring only can be at
    distance 0. Preparing costs O(edges), a pair O(layers). Choose it for chains and networks close
    to chains; for cells, other kernels are better: their wiring matters as much as their
    operations.

    Args:
        omega: Cost of a parameter that one network lacks, > 0.
        rho: In (0, 1].
        units: Least and greatest number of units, to which units are clipped; by default NASBOT's
            domain.

    Raises:
        UsageError: An argument is out of range.
    """

    name: ClassVar[str] = "arc"
    norm: ClassVar[Literal["l1", "l2"]] = "l2"

    def __init__(
        self, omega: float = 1.0, rho: float = 1.0, units: tuple[int, int] = UNITS
    ) -> None:
        self.omega = float(omega)
        self.rho = float(rho)
        self.units = tuple(units)
        if not 0 < self.omega < math.inf:
            raise UsageError(f"omega must be a finite number > 0, got {omega}")

        if not 0 < self.rho <= 1:
            raise UsageError(f"rho must be in (0, 1], got {rho}")

        if len(self.units) != 2 or not 1 <= self.units[0] < self.units[1] < math.inf:
            raise UsageError(f"units must be two ascending numbers >= 1, got {units}")

    @property
    def components(self) -> tuple[str, ...]:
        """Return the two kinds of parameters."""
        return ("arc:operation", "arc:units")

    def features(self, architecture: Architecture) -> tuple[Mapping[str, float], ...]:
        """Embed each parameter on its own coordinates."""
        operations: dict[str, float] = {}
        units: dict[str, float] = {}
        shared, specific = choice_coordinates(self.rho)
        for slot, layer in places(architecture).items():
            operations[slot] = self.omega * shared
            operations[f"{slot} {layer.op}/{layer.stride}"] = self.omega * specific
            if layer.units is not None:
                angle = math.pi * self.rho * self.code(layer.units)
                units[f"{slot} sin"] = self.omega * math.sin(angle)
                units[f"{slot} cos"] = self.omega * math.cos(angle)

        return operations, units

    def code(self, units: int) -> float:
        """Return the position of units between least and greatest, in [0, 1] on a log scale."""
        least, greatest = self.units
        clipped = min(max(units, least), greatest)
        return math.log(clipped / least) / math.log(greatest / least)


def places(architecture: Architecture) -> dict[str, Layer]:
    """Return the layers between input and output by place, `"p.s"`."""
    hops: list[int] = []
    by_hops: dict[int, list[Layer]] = {}
    for layer, parents in zip(architecture.layers, architecture.parents, strict=True):
        hops.append(0 if layer.op == INPUT else 1 + max((hops[p] for p in parents), default=0))
        if layer.op not in (INPUT, OUTPUT):
            by_hops.setdefault(hops[-1], []).append(layer)

    placed: dict[str, Layer] = {}
    for p, layers in sorted(by_hops.items()):
        layers.sort(key=lambda layer: (layer.op, layer.stride, layer.units or 0))
        for s, layer in enumerate(layers):
            placed[f"{p}.{s}"] = layer

    return placed

"""Units of a weight: which of its numbers one output feature or channel is computed with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvTransposeNd


class Units(NamedTuple):
    """How the units of a weight lie.

    Attributes:
        axis: Axis of the units. All other axes are of the numbers of one unit.
        groups: Number of parts of the first axis, each with as many units of its own: groups of a
            transposed convolution, whose first axis is of the inputs; else 1.
    """

    axis: int = 0
    groups: int = 1


class UnitWeights(NamedTuple):
    """A weight of a layer, with its units."""

    parameter: nn.Parameter
    units: Units

    @torch.no_grad()
    def bound(self, norm: float) -> None:
        """Scale the numbers of each unit whose L2 norm is above a bound, in place."""
        grouped: Tensor = self.parameter.unflatten(0, (self.units.groups, -1))  # type: ignore[no-untyped-call]
        inner = [axis for axis in range(1, grouped.ndim) if axis != self.units.axis + 1]
        norms = torch.linalg.vector_norm(grouped, dim=inner, keepdim=True).clamp(min=norm)
        grouped.mul_(norm / norms)


def unit_weights(layer: nn.Module, recurse: bool = True) -> Iterator[UnitWeights]:
    """Yield the matrices and kernels of a layer.

    A module says by its attribute `unit_axes` how the units lie, by the name of each matrix. In
    others, the first axis of each tensor with several is that of the units, as in `torch.nn`, but
    for transposed convolutions.

    Args:
        layer: The layer.
        recurse: Whether to yield those of its submodules as well.
    """
    for part in layer.modules() if recurse else (layer,):
        known = getattr(part, "unit_axes", None)
        for name, parameter in part.named_parameters(recurse=False):
            if known is not None:
                yield from (UnitWeights(parameter, units) for units in known.get(name, ()))
            elif parameter.ndim > 1:
                yield UnitWeights(
                    parameter,
                    Units(1, part.groups) if isinstance(part, _ConvTransposeNd) else Units(),
                )

"""Units of a weight: the numbers that compute one output feature or channel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvTransposeNd


class Units(NamedTuple):
    """Axis and groups of the units of a weight.

    Attributes:
        axis: Axis of the units. All other axes are of the numbers of one unit.
        groups: Number of parts of the first axis, each with equally many units: the groups of a
            transposed convolution (its first axis is the inputs); else 1.
    """

    axis: int = 0
    groups: int = 1


class UnitWeights(NamedTuple):
    """A weight of a layer, with its units."""

    parameter: nn.Parameter
    units: Units

    @torch.no_grad()
    def bound(self, norm: float) -> None:
        """Scale the numbers of each unit with an L2 norm above a bound, in place."""
        grouped: Tensor = self.parameter.unflatten(0, (self.units.groups, -1))  # type: ignore[no-untyped-call]
        inner = [axis for axis in range(1, grouped.ndim) if axis != self.units.axis + 1]
        norms = torch.linalg.vector_norm(grouped, dim=inner, keepdim=True).clamp(min=norm)
        grouped.mul_(norm / norms)


def unit_weights(layer: nn.Module, recurse: bool = True) -> Iterator[UnitWeights]:
    """Yield the matrices and kernels of a layer.

    The attribute `unit_axes` of a module has the axes of the units, by the name of each matrix. In
    other modules the units are the first axis of each tensor with several axes, as in `torch.nn`,
    except in transposed convolutions.

    Args:
        layer: The layer.
        recurse: Whether to yield the weights of its submodules as well.
    """
    for part in layer.modules() if recurse else (layer,):
        axes = getattr(part, "unit_axes", None)
        for name, parameter in part.named_parameters(recurse=False):
            if axes is not None:
                yield from (UnitWeights(parameter, units) for units in axes.get(name, ()))
            elif parameter.ndim > 1:
                units = Units(1, part.groups) if isinstance(part, _ConvTransposeNd) else Units()
                yield UnitWeights(parameter, units)

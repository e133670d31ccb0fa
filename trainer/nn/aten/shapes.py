"""Shapes in imported networks: of all values, without memory for them; and fixed sides.

A graph may fix sizes that are wrong for images of other sides than at the import. The graph of a
model that interpolates to a multiple of the sides of its input holds the resulting numbers, and so
does the graph of a model that always interpolates to the same sides. The two cannot be
distinguished: both take inputs of the imported sides only. Interpolation by a scale factor suits
all sides.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, fx

from archive.architecture.aten.wiring import Input
from archive.architecture.graph import Architecture
from archive.errors import InvalidArchitectureError


def compute_shapes(module: fx.GraphModule, inputs: Sequence[Input]) -> dict[str, tuple[int, ...]]:
    """Return the shape of each tensor that a module computes for a batch of one, by node name.

    Args:
        module: A module on the device `meta`; put into evaluation mode.
        inputs: Its inputs.
    """
    tensors = []
    for expected in inputs:
        dtype = getattr(torch, expected.dtype)
        tensors.append(torch.empty((1, *expected.shape), dtype=dtype, device="meta"))

    run = _ShapesRun(module)
    run.run(*tensors)
    return run.shapes


class _ShapesRun(fx.Interpreter):
    """Runs a module and keeps the shape of each value."""

    def __init__(self, module: fx.GraphModule) -> None:
        super().__init__(module.eval())
        self.shapes: dict[str, tuple[int, ...]] = {}

    def run_node(self, n: fx.Node) -> object:
        """Run a node, and keep the shape of its value."""
        value = super().run_node(n)
        if isinstance(value, Tensor):
            self.shapes[n.name] = tuple(value.shape)

        return value


def check_sides(architecture: Architecture, imported: Input, shape: tuple[int, ...]) -> None:
    """Check that no interpolation of a network has the sides of another input.

    Args:
        architecture: The network.
        imported: Input that the network was imported for.
        shape: Shape of the input that it would get; a grey image has all channels.

    Raises:
        InvalidArchitectureError: An interpolation has fixed sides; the message names it and the
            remedy.
    """
    if shape == imported.shape:
        return

    for layer in architecture.layers:
        sides = layer.attributes.get("output_size")
        if "upsample" in layer.op and sides is not None:
            raise InvalidArchitectureError(
                f"the network was imported for inputs {imported}, and its {layer.op} to the "
                f"sides {sides} may depend on them: import it for {Input(shape)}, or interpolate "
                "by a scale_factor without recompute_scale_factor"
            )

"""Shapes of the values that a module computes, without memory for them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, fx

from archive.architecture.aten.wiring import Input


def shapes_of(module: fx.GraphModule, inputs: Sequence[Input]) -> dict[str, tuple[int, ...]]:
    """Return the shape of each tensor that a module computes for a batch of one, by the name of its
    node.

    Args:
        module: A module on the device `meta`; put into evaluation mode.
        inputs: Its inputs.
    """
    run = _ShapesRun(module)
    run.run(
        *(
            torch.empty((1, *each.shape), dtype=getattr(torch, each.dtype), device="meta")
            for each in inputs
        )
    )
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

"""Sizes of the layers of a network: shape of the output and number of parameters, of the module
that is trained.
"""

from __future__ import annotations

from typing import NamedTuple

from archive.architecture.aten.vocabulary import NAME as TORCH
from archive.architecture.graph import Architecture
from archive.errors import InvalidArchitectureError
from archive.trainer.protocols.networks import NetworkForm


class LayerSize(NamedTuple):
    """Sizes of one layer.

    Attributes:
        shape: Shape of its output for one input, without the batch; empty where that is no tensor.
        params: Number of trained numbers that it owns.
    """

    shape: tuple[int, ...]
    params: int


def layer_sizes(architecture: Architecture, form: NetworkForm) -> list[LayerSize]:
    """Return the sizes of each layer but those of the output.

    Args:
        architecture: A network of `mlp`, `cnn` or `torch` in canonical order; without blocks.
        form: Input and outputs of the network; networks of `torch` have their own.

    Raises:
        InvalidArchitectureError: The architecture is a cell, whose layers have other sizes at each
            of its places in a network; or the network cannot have the form.
    """
    if architecture.space == TORCH:
        from archive.trainer.nn.aten.network import output_shapes

        shapes = output_shapes(architecture)
        return [LayerSize(shape, _trained(architecture, u)) for u, shape in enumerate(shapes)]

    if architecture.space not in ("cnn", "mlp"):
        raise InvalidArchitectureError(
            "a cell is repeated in a network with other sizes at each place: "
            f"{architecture.space} has no sizes to show"
        )

    from archive.trainer.nn import builders

    network = builders.build(architecture, form)
    first = form.input_shape if architecture.space == "cnn" else ()
    return [
        LayerSize(
            tuple(getattr(module, "shape", first)),
            sum(parameter.numel() for parameter in module.parameters()),
        )
        for module in network.layers  # type: ignore[union-attr]
    ][:-1]


def _trained(architecture: Architecture, u: int) -> int:
    from archive.architecture.aten.weights import trained

    return trained(architecture.layers[u])

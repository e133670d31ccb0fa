"""Sizes of the layers of a built network: output shapes and numbers of parameters."""

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
    """Return the sizes of each layer but the output.

    Args:
        architecture: A network of `mlp`, `cnn` or `torch` in canonical order; without blocks.
        form: Input and outputs of the network; networks of `torch` have their own.

    Raises:
        InvalidArchitectureError: The architecture is a cell, with other sizes at each place in a
            network; or the network cannot have the form.
    """
    if architecture.space == TORCH:
        from archive.architecture.aten.weights import count_trained
        from archive.trainer.nn.aten.network import output_shapes

        sizes = []
        for u, shape in enumerate(output_shapes(architecture)):
            sizes.append(LayerSize(shape, count_trained(architecture.layers[u])))

        return sizes

    if architecture.space not in ("cnn", "mlp"):
        raise InvalidArchitectureError(
            "a cell is repeated in a network with other sizes at each place: "
            f"{architecture.space} has no sizes to show"
        )

    from archive.trainer.nn import builders, costs

    network = builders.build(architecture, form)
    first = form.input_shape if architecture.space == "cnn" else ()
    sizes = []
    for module in network.layers[:-1]:  # type: ignore[index]
        shape = tuple(getattr(module, "shape", first))
        params = costs.count_numbers(module.parameters())
        sizes.append(LayerSize(shape, params))

    return sizes

"""Sizes that are fixed in a graph, and so may be wrong for images of other sides than those of the
import.

The graph of a model that interpolates to a multiple of the sides of its input has the resulting
numbers, as has the graph of a model that always interpolates to the same sides. The two cannot be
distinguished, so that both take inputs of the imported sides only. Interpolation by a scale factor
suits all sides.
"""

from __future__ import annotations

from archive.architecture.aten.wiring import Input
from archive.architecture.graph import Architecture
from archive.errors import InvalidArchitectureError


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
                f"sides {sides} may depend "
                f"on them: import it for {Input(shape)}, or interpolate by a scale_factor without "
                "recompute_scale_factor"
            )

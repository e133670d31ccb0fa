"""Checks of a graph of layers: what makes it a network of its vocabulary."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from archive.architecture.layer import Arguments, Edge
from archive.architecture.operations import INPUT, OUTPUT, Vocabulary
from archive.errors import InvalidArchitectureError

if TYPE_CHECKING:
    from archive.architecture.graph import Architecture, Connection

_MOST_ARGUMENTS = 10_000


def check_edges(edges: Iterable[Connection], n: int, words: Vocabulary) -> dict[Edge, Arguments]:
    """Return the arguments of each edge, checked.

    Args:
        edges: Pairs of positions, with arguments where the vocabulary has them.
        n: Number of layers.
        words: The vocabulary.

    Raises:
        InvalidArchitectureError: An edge does not join two layers, is repeated, or has arguments
            that it cannot have.
    """
    checked: dict[Edge, Arguments] = {}
    for tail, head, *arguments in edges:
        if not (0 <= tail < n and 0 <= head < n):
            raise InvalidArchitectureError(
                f"an edge must join two of the {n} layers, got ({tail}, {head})"
            )

        if tail == head:
            raise InvalidArchitectureError("cycle: the layer feeds itself", tail)

        if (tail, head) in checked:
            raise InvalidArchitectureError(f"the edge ({tail}, {head}) is given twice")

        if arguments and not words.arguments:
            edge = (tail, head, *arguments)
            raise InvalidArchitectureError(f"an edge of {words.name} has no arguments, got {edge}")

        if not all(0 <= argument < _MOST_ARGUMENTS for argument in arguments):
            edge = (tail, head, *arguments)
            raise InvalidArchitectureError(
                f"arguments of an edge must be in [0, {_MOST_ARGUMENTS}), got {edge}"
            )

        checked[tail, head] = tuple(sorted(arguments))

    return checked


def validate(architecture: Architecture, words: Vocabulary) -> None:
    """Check labels, ends and connections of an architecture.

    Raises:
        InvalidArchitectureError: The graph is no network; the message gives the reason and the
            layer.
        UnknownNameError: A label does not exist.
    """
    _check_layers(architecture, words)
    _check_ends(architecture)
    if not words.dead_ends:
        _check_dead_ends(architecture)

    if words.decisions:
        _check_decisions(architecture, words)

    if words.images:
        levels(architecture, words)


def _check_layers(architecture: Architecture, words: Vocabulary) -> None:
    for u, layer in enumerate(architecture.layers):
        operation = words[layer.op]
        if words.attributes:
            if layer.stride < 1 or (layer.units is not None and layer.units < 1):
                raise InvalidArchitectureError(
                    (
                        f"{layer.op} needs units and a stride >= 1, got {layer.units} and "
                        f"{layer.stride}"
                    ),
                    u,
                )

            continue

        if layer.attributes:
            raise InvalidArchitectureError(
                f"{layer.op} must have no attributes, got {layer.attributes.text:.60}", u
            )

        if operation.has_units:
            if layer.units is None or layer.units < 1:
                raise InvalidArchitectureError(f"{layer.op} needs units >= 1, got {layer.units}", u)
        elif layer.units is not None:
            raise InvalidArchitectureError(f"{layer.op} must have no units, got {layer.units}", u)

        if layer.stride not in operation.strides:
            allowed = " or ".join(map(str, operation.strides))
            raise InvalidArchitectureError(
                f"{layer.op} needs stride {allowed}, got {layer.stride}", u
            )


def _check_ends(architecture: Architecture) -> None:
    for op, name in ((INPUT, "input"), (OUTPUT, "output")):
        positions = [u for u, layer in enumerate(architecture.layers) if layer.op == op]
        if not positions:
            raise InvalidArchitectureError(f"a network needs one {name} layer ({op!r}), got none")

        if len(positions) > 1:
            raise InvalidArchitectureError(
                f"a network needs one {name} layer, got a second {name}", positions[1]
            )

    # In topological order, a layer that feeds the input precedes it.
    if architecture.layers[0].op != INPUT:
        raise InvalidArchitectureError("the input is fed by a layer", 0)

    last = len(architecture.layers) - 1
    if architecture.layers[last].op != OUTPUT:
        raise InvalidArchitectureError("the output feeds a layer", last)


def _check_dead_ends(architecture: Architecture) -> None:
    n = len(architecture.layers)
    for u in range(n):
        op = architecture.layers[u].op
        if u > 0 and not architecture.parents[u]:
            raise InvalidArchitectureError(f"dead end: nothing feeds {op}", u)

        if u < n - 1 and not architecture.children[u]:
            raise InvalidArchitectureError(f"dead end: {op} feeds nothing", u)


def _check_decisions(architecture: Architecture, words: Vocabulary) -> None:
    last = len(architecture.layers) - 1
    for u, layer in enumerate(architecture.layers[:-1]):
        decides = words[layer.op].group == "decision"
        feeds_output = last in architecture.children[u]
        if feeds_output and not decides:
            raise InvalidArchitectureError(
                f"only decision layers feed the output, got {layer.op}", u
            )

        if decides and architecture.children[u] != (last,):
            raise InvalidArchitectureError(
                f"the decision layer {layer.op} feeds another layer than the output", u
            )


def levels(architecture: Architecture, words: Vocabulary) -> tuple[int | None, ...]:
    """Return the number of halvings of the image up to each layer (`Architecture.levels`).

    Raises:
        InvalidArchitectureError: Images of several sizes meet, or a layer needs an image and has a
            vector.
    """
    level_of: list[int | None] = []
    for u, layer in enumerate(architecture.layers):
        operation = words[layer.op]
        incoming = {level_of[p] for p in architecture.parents[u]}
        if operation.group != "output" and len(incoming) > 1:
            raise InvalidArchitectureError(_mismatch(architecture, level_of, u), u)

        level = next(iter(incoming), 0)
        if operation.flat:
            level_of.append(None)
        elif level is None:
            raise InvalidArchitectureError(f"{layer.op} needs an image, but a vector feeds it", u)
        else:
            level_of.append(level + (layer.stride == 2))

    return tuple(level_of)


def _mismatch(architecture: Architecture, level_of: list[int | None], u: int) -> str:
    sizes = ", ".join(
        f"layer {p}: " + ("a vector" if (level := level_of[p]) is None else f"1/{2**level}")
        for p in architecture.parents[u]
    )
    return f"image sizes do not meet at {architecture.layers[u].op}: {sizes}"

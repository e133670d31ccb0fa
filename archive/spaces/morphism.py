"""Network morphisms: operations that grow a network and can preserve the function that it computes.

Jin, Song, Hu: Efficient Neural Architecture Search with Network Morphism (2018). Chen, Goodfellow,
Shlens: Net2Net (2016). Here they are pure functions of graphs; the table has the weights with which
the child computes its parent's function.

| operation     | paper           | effect                             | weights that keep it      |
|---------------|-----------------|------------------------------------|---------------------------|
| `deepen`      | deep(G, u)      | a layer after u, as wide           | the identity              |
| `widen`       | wide(G, u)      | more units in u                    | divided copies of units   |
| `skip_add`    | add(G, u, v)    | a residual block after u           | a last kernel of zeros    |
| `skip_concat` | concat(G, u, v) | an edge from u to v: concatenation | zeros for new inputs of v |

A layer with several parents concatenates them, and only residual blocks add. So an additive
connection is a separate block, and there is no `skip_add` in a vocabulary without such blocks
(`mlp`). Graphs contain no input sizes, so an operation changes only the layer that it names. The
weights of the layers that read its output change, too: the paper's effective area
(`archive.trainer.morphism`).

The identity passes an activation unchanged only if values are never negative (all of `cnn` but the
input; relu, crelu, logistic and softplus of `mlp`). After the other operations of `mlp` the new
layer is a crelu, which keeps both signs.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from archive.architecture.graph import Architecture, Layer
from archive.architecture.operations import Vocabulary, vocabulary
from archive.errors import InvalidArchitectureError
from archive.spaces.modifiers import apply

_NEVER_NEGATIVE = frozenset({"relu", "crelu", "logistic", "softplus"})
_ENDS = frozenset({"input", "output", "decision"})

Choice = partial[Architecture]


def deepen(architecture: Architecture, layer: int, op: str) -> Architecture:
    """Insert a layer after another one; it gets all of its outgoing edges.

    Args:
        architecture: The network.
        layer: Position u of the layer before it.
        op: Operation of the new layer, one of `deepenings`.

    Raises:
        InvalidArchitectureError: A layer of this operation cannot be the identity there.
    """
    if op not in deepenings(architecture, layer):
        allowed = ", ".join(deepenings(architecture, layer)) or "no operation"
        raise InvalidArchitectureError(
            f"{op} cannot be the identity on the output of this layer, but {allowed}", layer
        )

    return _insert(architecture, layer, op)


def widen(architecture: Architecture, layer: int, units: int | None = None) -> Architecture:
    """Increase the units of a layer, twice as many by default.

    Raises:
        InvalidArchitectureError: The layer has no units, or has `units` or more already.
    """
    old = architecture.layers[layer]
    if old.units is None:
        raise InvalidArchitectureError(f"{old.op} has no units to widen", layer)

    units = 2 * old.units if units is None else units
    if units <= old.units:
        raise InvalidArchitectureError(
            f"widen needs more than {old.units} units, got {units}", layer
        )

    layers = list(architecture.layers)
    layers[layer] = Layer(old.op, units, old.stride)
    return Architecture(architecture.space, layers, architecture.edges)


def skip_add(architecture: Architecture, layer: int, op: str) -> Architecture:
    """Insert a residual block: the output of a layer plus the output of two convolutions of it.

    Args:
        architecture: The network.
        layer: Position u.
        op: The block, one of `additions`.

    Raises:
        InvalidArchitectureError: The output of the layer is no image, or may be negative.
    """
    if op not in additions(architecture, layer):
        raise InvalidArchitectureError(f"{op} cannot add the output of this layer", layer)

    return _insert(architecture, layer, op)


def skip_concat(architecture: Architecture, tail: int, head: int) -> Architecture:
    """Connect two layers.

    Average pools match their image sizes (`archive.spaces.modifiers.apply.skip`).

    Raises:
        InvalidArchitectureError: They are connected already, or not in order, or pools cannot match
            the image sizes.
    """
    return apply.skip(architecture, tail, head)


def deepenings(architecture: Architecture, layer: int) -> tuple[str, ...]:
    """Return the operations that `deepen` can insert after a layer."""
    words = vocabulary(architecture.space)
    if not words.decisions or widths(architecture)[layer] is None:
        return ()

    if words.images:
        if architecture.levels[layer] is None:
            return words.of_group("fc")

        return _convolutions(words, residual=False)

    return ("relu",) if architecture.layers[layer].op in _NEVER_NEGATIVE else ("crelu",)


def additions(architecture: Architecture, layer: int) -> tuple[str, ...]:
    """Return the residual blocks that `skip_add` can insert after a layer."""
    words = vocabulary(architecture.space)
    if (
        not words.images
        or architecture.levels[layer] is None
        or widths(architecture)[layer] is None
    ):
        return ()

    return _convolutions(words, residual=True)


def _convolutions(words: Vocabulary, *, residual: bool) -> tuple[str, ...]:
    return tuple(op for op in words.of_group("conv") if words[op].residual == residual)


def widths(architecture: Architecture) -> tuple[int | None, ...]:
    """Return each layer's output channels or features; None for ends, or if the input decides."""
    outputs: list[int | None] = []
    layers = zip(architecture.layers, architecture.groups, architecture.parents, strict=True)
    for layer, group, parents in layers:
        if group in _ENDS:
            outputs.append(None)
        elif layer.units is not None:
            outputs.append(2 * layer.units if layer.op == "crelu" else layer.units)
        else:
            incoming = [width for p in parents if (width := outputs[p]) is not None]
            outputs.append(sum(incoming) if incoming and len(incoming) == len(parents) else None)

    return tuple(outputs)


def choices(architecture: Architecture) -> dict[str, list[Choice]]:
    """Return the legal applications of each operation by its name, as functions.

    Operations without any are omitted. A function may still raise `InvalidArchitectureError` (image
    sizes), and the child may exceed the limits of a space.
    """
    every: dict[str, list[Choice]] = {"deepen": [], "widen": [], "skip_add": [], "skip_concat": []}
    for u, layer in enumerate(architecture.layers):
        for op in deepenings(architecture, u):
            every["deepen"].append(partial(deepen, architecture, u, op))

        if layer.units is not None:
            every["widen"].append(partial(widen, architecture, u))

        for op in additions(architecture, u):
            every["skip_add"].append(partial(skip_add, architecture, u, op))

    for pair in _find_unconnected(architecture):
        every["skip_concat"].append(partial(skip_concat, architecture, *pair))

    return {name: calls for name, calls in every.items() if calls}


def _insert(architecture: Architecture, layer: int, op: str) -> Architecture:
    new = len(architecture.layers)
    units = widths(architecture)[layer]
    edges = [(new if tail == layer else tail, head) for tail, head in architecture.edges]
    return Architecture(
        architecture.space, [*architecture.layers, Layer(op, units)], [*edges, (layer, new)]
    )


def _find_unconnected(architecture: Architecture) -> Iterator[tuple[int, int]]:
    """Yield pairs for an edge: from the input or an inner layer to an inner or decision layer."""
    if not vocabulary(architecture.space).decisions:
        return

    groups = architecture.groups
    for head, group in enumerate(groups):
        if group not in ("input", "output"):
            for tail in range(head):
                is_end = groups[tail] in ("decision", "output")
                if not is_end and tail not in architecture.parents[head]:
                    yield tail, head

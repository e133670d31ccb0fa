"""Words, kinds and channels of layers in pictures."""

from __future__ import annotations

from typing import Any

from archive.architecture.decoders.labels import details_of
from archive.architecture.graph import Architecture
from archive.architecture.layer import Layer
from archive.architecture.operations import INPUT, OUTPUT, Operation, vocabulary
from archive.architecture.parameter_operations import describe_layer
from archive.drawing.diagram import DiagramNode

_KINDS = {
    "input": "ends",
    "output": "ends",
    "entry": "ends",
    "exit": "join",
    "conv": "conv",
    "pool": "pool",
    "fc": "dense",
    "rectifier": "activation",
    "sigmoid": "activation",
    "decision": "decision",
    "norm": "norm",
    "mixer": "attention",
    "feed-forward": "dense",
    "head": "decision",
    "attention": "attention",
    "embedding": "embedding",
    "source": "source",
}
_NAMES = {
    INPUT: "input",
    OUTPUT: "output",
    "native_layer_norm": "layer_norm",
    "native_group_norm": "group_norm",
    "_native_batch_norm_legit": "batch_norm",
    "_native_batch_norm_legit_no_training": "batch_norm",
    "scaled_dot_product_attention": "attention",
    "max_pool2d_with_indices": "max_pool2d",
    "max_pool3d_with_indices": "max_pool3d",
}
_LONGEST_VALUE = 60
_MOST_VALUES = 12


def node(architecture: Architecture, u: int, channels: int | None, note: str = "") -> DiagramNode:
    """Return a layer as a box.

    Args:
        architecture: The network.
        u: Position of the layer.
        channels: Channels of its output, for the width of the box.
        note: Second line of the box.
    """
    layer = architecture.layers[u]
    operation = vocabulary(architecture.space)[layer.op]
    return DiagramNode(
        label=_label(layer, operation),
        kind=_kind(operation, len(architecture.parents[u])),
        detail=_detail(layer),
        note=note,
        tip=_tip(layer, u),
        channels=channels,
        layer=u,
    )


def channels(architecture: Architecture) -> list[int | None]:
    """Return the channels of each layer's output: its own, else its inputs'; None without."""
    operations = vocabulary(architecture.space)
    emitted: list[int | None] = []
    for layer, parents in zip(architecture.layers, architecture.parents, strict=True):
        incoming = list(filter(None, map(emitted.__getitem__, parents)))
        if layer.units is not None:
            emitted.append(layer.units)
        elif not incoming or operations[layer.op].group in ("output", "decision", "source"):
            emitted.append(None)
        else:
            # Inputs of a layer without arguments are concatenated.
            joined = layer.op == "cat" or not operations.arguments
            emitted.append(sum(incoming) if joined else max(incoming))

    return emitted


def value_text(value: Any) -> str:
    """Return an attribute's value as a short text."""
    # The content of a constant can have megabytes.
    text = str(list(value[:_MOST_VALUES]) if isinstance(value, tuple) else value)
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 1] + "…"


def _kind(operation: Operation, inputs: int) -> str:
    if operation.group == "cell":
        if operation.zero:
            return "zero"

        return "pool" if operation.pools else "conv" if operation.kernel else "identity"

    if operation.group in _KINDS:
        return _KINDS[operation.group]

    return "join" if inputs > 1 else "other"


def _label(layer: Layer, operation: Operation) -> str:
    setting = describe_layer(layer)
    if setting is not None:
        return setting

    name = layer.op.removeprefix(f"{operation.part}.") if operation.part else layer.op
    if not layer.attributes:
        return _NAMES.get(name, name)

    if name == "convolution":
        name = "conv_transpose" if layer.attributes.get("transposed") else "conv"
        window = _sides(layer, "weight")[2:]
    else:
        name = _NAMES.get(name, name.lstrip("_"))
        window = _sides(layer, "kernel_size")

    return f"{name} {_window(window)}" if window else name


def _window(sides: tuple[int, ...]) -> str:
    return "×".join(map(str, sides * 2 if len(sides) == 1 else sides))


def _detail(layer: Layer) -> str:
    parts = [] if layer.units is None else [str(layer.units)]
    stride = max(_sides(layer, "stride"), default=layer.stride)
    if stride > 1:
        parts.append(f"/{stride}")

    groups = layer.attributes.get("groups", 1)
    if isinstance(groups, int) and groups > 1:
        parts.append("depthwise" if groups == layer.units else f"{groups} groups")

    parts.append(details_of(layer))
    if layer.op == INPUT:
        parts.append(str(layer.attributes.get("input", "")))

    return " ".join(filter(None, parts))


def _sides(layer: Layer, name: str) -> tuple[int, ...]:
    value = layer.attributes.get(name)
    if isinstance(value, tuple):
        return tuple(side for side in value if isinstance(side, int))

    return (value,) if isinstance(value, int) and not isinstance(value, bool) else ()


def _tip(layer: Layer, u: int) -> str:
    lines = [f"layer {u}: {layer.op}"]
    if layer.units is not None:
        lines.append(f"units: {layer.units}")

    if layer.stride != 1:
        lines.append(f"stride: {layer.stride}")

    for name, value in list(layer.attributes.items())[:_MOST_VALUES]:
        lines.append(f"{name}: {value_text(value)}")

    return "\n".join(lines)

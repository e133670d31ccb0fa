"""Blocks of a network, which its stages repeat, and their properties."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from archive.architecture.outline.assembly import Draft, stride_of
from archive.architecture.outline.condensing import ModuleGraph
from archive.architecture.outline.modules import NetworkModule, Property
from archive.architecture.outline.words import module_text


@dataclass(frozen=True)
class NetworkBlock:
    """A block of a network.

    Attributes:
        index: Its number in the network, from 0.
        kind: Kind of block: `bottleneck`, `basic`, `inverted bottleneck`, `transformer`, ….
        properties: Numbers and names by property; absent where a property does not apply.
        modules: Its modules in topological order.
        layers: Positions of its layers, ascending.
    """

    index: int
    kind: str
    properties: dict[str, Property]
    modules: tuple[NetworkModule, ...]
    layers: tuple[int, ...]

    @property
    def channels(self) -> int | None:
        """Channels of its output; None where they are not known."""
        value = self.properties.get("channels")
        return value if isinstance(value, int) else None


def describe(
    graph: ModuleGraph, draft: Draft, index: int, before: dict[str, Property]
) -> NetworkBlock:
    """Return a block with its properties.

    Args:
        graph: The modules of the network.
        draft: The block.
        index: Its number in the network.
        before: Properties of the block, or the stem, before it.
    """
    modules = [graph.modules[number] for number in sorted(draft.modules)]
    main = [graph.modules[number] for number in draft.main]
    properties: dict[str, Property] = {}
    kind = _kind(draft, main)
    _describe_sizes(graph, draft, main, before, properties)
    _describe_convs(main, properties)
    _describe_mixer(main, draft, properties)
    beside = {number for shortcut in draft.shortcuts for number in shortcut}
    inner = [graph.modules[number] for number in draft.modules if number not in beside]
    _describe_norm(inner, main[0], draft, properties)
    _describe_rest(graph, draft, main, properties)
    layers: list[int] = []
    for module in modules:
        layers += module.layers

    return NetworkBlock(index, kind, properties, tuple(modules), tuple(sorted(layers)))


def _kind(draft: Draft, main: Sequence[NetworkModule]) -> str:
    if draft.form == "downsampling":
        return "downsampling"

    kinds = [module.kind for module in main if module.weighted]
    mlps = [module for module in main if module.kind == "mlp"]
    convs = [module for module in main if module.kind == "conv"]
    if "attention" in kinds:
        return "transformer" if "mlp" in kinds else "attention"

    if draft.form == "branches":
        return "dense" if _is_dense(main) else "branches"

    if any(module.properties.get("over") for module in mlps):
        return "mixer"

    depthwise = [index for index, conv in enumerate(convs) if conv.properties.get("depthwise")]
    windows = [index for index, conv in enumerate(convs) if int(conv.properties["kernel"]) > 1]
    if mlps:
        if not convs:
            pools = any(module.kind == "pool" for module in main)
            return "metaformer" if pools or len(draft.shortcuts) > 1 else "mlp"

        return "convnext" if len(draft.shortcuts) < 2 and depthwise else "metaformer"

    if depthwise:
        ends = [index for index in range(len(convs)) if index not in depthwise]
        if ends and ends[0] < depthwise[0]:
            return "inverted bottleneck" if ends[-1] > depthwise[-1] else "conv"

        return "separable" if ends else "conv"

    if len(windows) == len(convs) and len(convs) == 2:
        return "basic"

    if len(convs) > 2 and windows and not {0, len(convs) - 1}.intersection(windows):
        return "bottleneck"

    if len(convs) == 2 and windows == [0]:
        return "fused inverted bottleneck"

    if len(main) == 1:
        return main[0].kind

    return "residual" if draft.form == "residual" else "conv" if convs else "block"


def _is_dense(main: Sequence[NetworkModule]) -> bool:
    joins = sum(module.kind == "cat" for module in main)
    return joins > 2


def _describe_sizes(
    graph: ModuleGraph,
    draft: Draft,
    main: Sequence[NetworkModule],
    before: dict[str, Property],
    properties: dict[str, Property],
) -> None:
    ends = [module.properties for module in main if module.properties.get("channels")]
    channels = ends[-1]["channels"] if ends else before.get("channels", 0)
    if "channels" in before:
        properties["in_channels"] = before["channels"]

    shape = shape_of(graph, max(draft.modules))
    if shape and draft.form == "branches" and len(shape) == 4:
        channels = shape[1]

    if channels:
        properties["channels"] = channels

    old = before.get("resolution")
    properties.update(image_size(shape, int(channels or 0), old))
    new = properties.get("resolution")
    if old and new:
        stride = round(int(old) / int(new))
        if stride > 1:
            properties["stride"] = stride
    elif stride_of(main) > 1 and ("tokens" not in properties or draft.form == "downsampling"):
        # Among tokens, attention may reduce keys and values alone.
        properties["stride"] = stride_of(main)


def shape_of(graph: ModuleGraph, number: int) -> tuple[int, ...] | None:
    """Return the shape of a module's output before it is moved; None where it is unknown."""
    wiring = graph.wiring
    for u in reversed(graph.modules[number].layers):
        if wiring.on_path[u] and wiring.live[u] and not wiring.is_glue(u):
            return wiring.shapes[u]

    return wiring.shapes[graph.modules[number].end]


def image_size(
    shape: tuple[int, ...] | None, channels: int, before: Property | None = None
) -> dict[str, Property]:
    """Return the side of an image as `resolution`, or the number of tokens, of a shape.

    Args:
        shape: The shape, with the batch first.
        channels: Channels, which tell the side of the channels.
        before: Side of the image before: as many tokens are an image.
    """
    if shape is None or not channels:
        return {}

    if len(shape) == 4 and channels in (shape[1], shape[3]):
        sides = shape[2:] if shape[1] == channels else shape[1:3]
        return {"resolution": round(math.sqrt(math.prod(sides)))}

    if len(shape) == 3 and shape[2] == channels:
        side = math.isqrt(shape[1])
        if before and side * side == shape[1] and side in (before, math.ceil(int(before) / 2)):
            return {"resolution": side}

        return {"tokens": shape[1]}

    return {}


def _describe_convs(main: Sequence[NetworkModule], properties: dict[str, Property]) -> None:
    convs = [module.properties for module in main if module.kind == "conv"]
    windows = [conv for conv in convs if int(conv["kernel"]) > 1]
    if windows:
        properties["kernel"] = max(int(conv["kernel"]) for conv in windows)
        if any(conv.get("depthwise") for conv in windows):
            properties["groups"] = "depthwise"
        elif any(conv.get("groups") for conv in windows):
            properties["groups"] = max(int(conv.get("groups", 1)) for conv in windows)

    if len(convs) > 1 and windows:
        middle = int(windows[0]["channels"])
        wide = windows[0].get("depthwise") or len(convs) == 2
        base = int(convs[0]["in_channels"]) if wide else int(convs[-1]["channels"])
        if len(convs) == 2 and len(windows) == 2:
            base = int(convs[-1]["channels"])

        if base:
            properties["expansion"] = round(middle / base, 4)

    if any(conv.get("weights") for conv in convs):
        properties["weights"] = "standardised"

    for module in main:
        if module.kind == "squeeze-excitation":
            properties["squeeze_excitation"] = module.properties.get("ratio", 1.0)
        elif module.kind == "gate":
            properties["gate"] = module.properties.get("gate", "product")


_ATTENTION = (
    "heads",
    "kv_heads",
    "head_size",
    "qkv_bias",
    "qk_norm",
    "rotary",
    "position_bias",
    "causal",
    "window",
)


def _describe_mixer(
    main: Sequence[NetworkModule], draft: Draft, properties: dict[str, Property]
) -> None:
    attentions = [module.properties for module in main if module.kind == "attention"]
    mlps = [module.properties for module in main if module.kind == "mlp"]
    for name in _ATTENTION:
        if attentions and name in attentions[0]:
            properties[name] = attentions[0][name]

    channel_mlps = [mlp for mlp in mlps if "over" not in mlp]
    if channel_mlps and "ratio" in channel_mlps[-1]:
        properties["mlp_ratio"] = channel_mlps[-1]["ratio"]

    if any(mlp.get("gated") for mlp in mlps):
        properties["gated"] = True

    if channel_mlps and "kernel" in channel_mlps[-1]:
        properties["mlp_kernel"] = channel_mlps[-1]["kernel"]

    inner = [mlp["inner_norm"] for mlp in mlps if mlp.get("inner_norm") == "response"]
    if inner:
        properties["mlp_norm"] = inner[0]

    if attentions:
        properties["mixer"] = "attention"
    elif any("over" in mlp for mlp in mlps):
        properties["mixer"] = "mlp"
    elif any(module.kind == "conv" and int(module.properties["kernel"]) > 1 for module in main):
        properties["mixer"] = "conv"
    elif any(module.kind == "pool" for module in main):
        properties["mixer"] = "pool"

    if any(module.properties.get("layer_scale") for module in main):
        properties["layer_scale"] = True

    if attentions and mlps and len(draft.shortcuts) == 1:
        properties["parallel"] = True


def _describe_norm(
    modules: Sequence[NetworkModule],
    first: NetworkModule,
    draft: Draft,
    properties: dict[str, Property],
) -> None:
    norms: Counter[str] = Counter()
    activations: Counter[str] = Counter()
    for module in modules:
        for name in ("norm", "inner_norm"):
            if name in module.properties:
                norms[str(module.properties[name])] += 1

        if "activation" in module.properties and module.kind not in ("squeeze-excitation", "gate"):
            activations[str(module.properties["activation"])] += 1

    norms.pop("response", None)
    properties["norm"] = norms.most_common(1)[0][0] if norms else "none"
    if activations:
        properties["activation"] = activations.most_common(1)[0][0]

    if draft.form != "residual" or not norms:
        return

    if draft.post:
        properties["norm_place"] = "post"
    elif first.kind == "norm":
        properties["norm_place"] = "pre"
    elif any(module.properties.get("norm_after") for module in modules):
        properties["norm_place"] = "inside, last"
    else:
        properties["norm_place"] = "inside"


def _describe_rest(
    graph: ModuleGraph,
    draft: Draft,
    main: Sequence[NetworkModule],
    properties: dict[str, Property],
) -> None:
    if draft.form == "residual":
        shortcuts = []
        for numbers in draft.shortcuts:
            modules = [graph.modules[number] for number in numbers]
            scales = all(module.kind == "mul" for module in modules)
            shortcuts.append("scale" if modules and scales else module_text(modules, bare=True))

        properties["shortcut"] = ", ".join(filter(None, dict.fromkeys(shortcuts))) or "identity"

    reducing = [module for module in main if int(module.properties.get("stride", 1)) > 1]
    if reducing:
        properties["downsampling"] = module_text(reducing, bare=True)

    rest: list[str] = []
    for module in main:
        if module.kind not in _NAMED:
            rest.append(module.kind)

    if rest:
        properties["rest"] = ", ".join(sorted(set(rest)))


_NAMED = frozenset(
    (
        "conv",
        "linear",
        "attention",
        "mlp",
        "squeeze-excitation",
        "gate",
        "norm",
        "activation",
        "pool",
        "mean",
        "add",
        "cat",
        "reshape",
        "recurrent",
        "embedding",
    )
)

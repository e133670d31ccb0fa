"""An outline as numbers: a fixed set of names for any network, for predictions.

Ratios and sizes are means over the blocks that have them, and 0 where none has; widths and sizes of
the image are base-2 logarithms. Shares are parts of all blocks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from archive.architecture.outline.blocks import NetworkBlock
from archive.architecture.outline.modules import Property
from archive.architecture.outline.outline import HEAD, STEM, Outline, Section

_KINDS = (
    "transformer",
    "metaformer",
    "mixer",
    "mlp",
    "convnext",
    "inverted bottleneck",
    "fused inverted bottleneck",
    "separable",
    "bottleneck",
    "basic",
    "residual",
    "conv",
    "branches",
    "dense",
)
_MIXERS = ("attention", "conv", "mlp", "pool")
_NORMS = ("batch", "layer", "group", "none")
_ACTIVATIONS = ("relu", "gelu", "silu", "hardswish")
_PLACES = ("pre", "post", "inside", "inside, last")
_MEANS = (
    "kernel",
    "expansion",
    "squeeze_excitation",
    "heads",
    "kv_heads",
    "head_size",
    "mlp_ratio",
)
_SHARES = (
    "squeeze_excitation",
    "layer_scale",
    "position_bias",
    "rotary",
    "qk_norm",
    "gated",
    "window",
    "parallel",
)


def numbers(outline: Outline) -> dict[str, float]:
    """Return the numbers of an outline by name; the names are the same for all networks."""
    blocks = [block for block in outline.blocks if block.kind != "downsampling"]
    stages = outline.stages
    found = {
        "blocks": float(len(blocks)),
        "stages": float(len(stages)),
        "deepest_stage": float(max((stage.depth for stage in stages), default=0)),
        "layers": float(len(outline.architecture.layers)),
        "modules": float(len(outline.modules)),
        "width_first": _log(stages[0].channels if stages else 0),
        "width_last": _log(stages[-1].channels if stages else 0),
        "width_mean": _mean(_log(block.channels) for block in blocks),
        "resolution_first": _log(_size(stages[0]) if stages else 0),
        "resolution_last": _log(_size(stages[-1]) if stages else 0),
        "input_side": _log(_input_side(outline)),
        "stem_convs": float(_count(outline.section(STEM), "conv")),
        "stem_stride": _log(_stem_stride(outline.section(STEM))),
        "head_layers": float(_count(outline.section(HEAD), "conv", "linear", "mlp")),
        "outputs": _log(outline.section(HEAD).channels),
    }
    for name in _MEANS:
        found[f"{name}_mean"] = _mean(_values(blocks, name))

    for name in _SHARES:
        found[f"share_{name}"] = _share(blocks, [name in block.properties for block in blocks])

    for name, words in (
        ("kind", _KINDS),
        ("mixer", _MIXERS),
        ("norm", _NORMS),
        ("norm_place", _PLACES),
        ("activation", _ACTIVATIONS),
    ):
        for word in words:
            members = [_property(block, name) == word for block in blocks]
            found[f"share_{name}_{word.replace(', ', '_').replace(' ', '_')}"] = _share(
                blocks, members
            )

    depthwise = [block.properties.get("groups") == "depthwise" for block in blocks]
    found["share_depthwise"] = _share(blocks, depthwise)
    identity = [block.properties.get("shortcut") == "identity" for block in blocks]
    found["share_identity"] = _share(blocks, identity)
    return found


def _property(block: NetworkBlock, name: str) -> Property | None:
    return block.kind if name == "kind" else block.properties.get(name)


def _values(blocks: Iterable[NetworkBlock], name: str) -> list[float]:
    values = []
    for block in blocks:
        value = block.properties.get(name)
        if isinstance(value, (int, float)):
            values.append(float(value))

    return values


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed) if listed else 0.0


def _share(blocks: Sequence[NetworkBlock], members: Sequence[bool]) -> float:
    return sum(members) / len(blocks) if blocks else 0.0


def _log(value: float | None) -> float:
    return math.log2(value) if value else 0.0


def _size(stage: Section) -> float:
    """Return the side of the image in a stage; the root of the number of tokens."""
    if stage.resolution:
        return float(stage.resolution)

    tokens = stage.blocks[-1].properties.get("tokens", 0)
    return math.sqrt(float(tokens))


def _input_side(outline: Outline) -> float:
    text = str(outline.architecture.layers[0].attributes.get("input", "0"))
    return float(text.split(" ")[0].split(":")[0].split("x")[-1])


def _count(section: Section, *kinds: str) -> int:
    return sum(module.kind in kinds for module in section.modules)


def _stem_stride(stem: Section) -> float:
    return float(math.prod(int(module.properties.get("stride", 1)) for module in stem.modules))

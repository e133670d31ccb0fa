"""Traits of networks: the properties in which two networks can differ by one edit.

| space                                  | traits                                              |
|----------------------------------------|-----------------------------------------------------|
| named decisions (parameters, choices)  | the values by name, of a proposal of the network    |
| slots (cells of NAS-Bench-201, DARTS)  | the operation of each slot                          |
| imported and generated models (torch)  | properties of the outline: sizes, mixer, stem, …    |
| others                                 | the edges, and each layer in canonical order        |
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from archive.architecture.graph import Architecture
from archive.architecture.outline.blocks import NetworkBlock
from archive.architecture.outline.changes import NAMES
from archive.architecture.outline.modules import NetworkModule, Property
from archive.architecture.outline.outline import HEAD, STEM, Outline, Section, outline
from archive.architecture.outline.words import module_text
from archive.kernels.differences.base import words
from archive.kernels.features.adjacency import slots_of

OUTLINED = "torch"
"""Space whose networks have outlines."""

EDGES = "edges"
"""Trait of networks without outline or slots: the pairs of layers."""

_STEM = ("stem", "stem width", "stem norm", "stem activation")
_SIZES = ("width", "heads", "kv_heads", "head_size", "groups", "expansion", "mlp_ratio")

GROUPS: tuple[frozenset[str], ...] = (
    frozenset([*_SIZES, "squeeze_excitation", "stem width"]),
    frozenset([*_STEM, "shortcut", "downsampling", "tokens", "position embedding"]),
    frozenset(["activation", "stem activation", "head activation"]),
    frozenset(["norm", "stem norm", "head norm"]),
    frozenset(["head", "outputs", "head norm", "head activation"]),
    frozenset(["depth"]),
    frozenset(["input"]),
)
"""Traits of outlines that change together: a wider network has more heads."""


def groups_of(space: str, names: Iterable[str]) -> list[Collection[str]]:
    """Return the groups of traits that one edit may change together.

    Args:
        space: Name of the space.
        names: Names of the traits of its networks.
    """
    if space != OUTLINED:
        return [[name] for name in names]

    others = set(names)
    for group in GROUPS:
        others -= group

    return [*GROUPS, others]


def traits_of(architecture: Architecture) -> dict[str, str]:
    """Return the traits of a network without named decisions."""
    if architecture.space == OUTLINED:
        return _of_outline(outline(architecture))

    slots = slots_of(architecture.space)(architecture)
    if slots is not None:
        return dict(slots)

    canonical = architecture.canonical
    traits = {EDGES: str(canonical.edges)}
    for position, layer in enumerate(canonical.layers):
        traits[f"layer {position}"] = words(layer)

    return traits


def _of_outline(network: Outline) -> dict[str, str]:
    stages = network.stages
    traits = {
        "input": str(network.architecture.layers[0].attributes.get("input")),
        "width": "/".join(str(stage.channels) for stage in stages),
        "depth": "/".join(str(stage.depth) for stage in stages),
        "kind": " ".join(_distinct(block.kind for block in _blocks(stages))),
    }
    for name in NAMES:
        values = "/".join(_values(stage, name) for stage in stages)
        if values.strip("/"):
            traits[name] = values

    for name in (STEM, HEAD):
        section = network.section(name)
        traits[name] = module_text(section.modules, bare=True)
        for part in ("norm", "activation"):
            traits[f"{name} {part}"] = _joint(section.modules, part)

    stem = list(network.section(STEM).modules)
    traits["stem width"] = _joint(stem, "channels")
    traits["tokens"] = _joint(stem, "tokens")
    traits["position embedding"] = _joint(stem, "position_embedding")
    traits["outputs"] = str(network.section(HEAD).channels)
    return {name: value for name, value in traits.items() if value}


def _blocks(stages: Iterable[Section]) -> Iterator[NetworkBlock]:
    for stage in stages:
        yield from stage.blocks


def _values(stage: Section, name: str) -> str:
    """Return the different values of the blocks of a stage, so that its depth makes no difference."""
    return ",".join(_distinct(str(block.properties.get(name, "")) for block in stage.blocks))


def _joint(modules: Iterable[NetworkModule], name: str) -> str:
    values: list[Property] = []
    for module in modules:
        if name in module.properties:
            values.append(module.properties[name])

    return "/".join(_distinct(map(str, values)))


def _distinct(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))

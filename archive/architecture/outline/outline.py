"""The outline of a network: stem, stages of blocks, head.

    outline(architecture).sections   # stem, stage 1, stage 2, …, head

A stage begins with a block that reduces the image, or changes the number of channels. Every layer
of the network is in one section. The outline is no part of a network's identity: it follows from
the graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

from archive.architecture.aten.blocks import START, unfold
from archive.architecture.graph import Architecture
from archive.architecture.outline.assembly import Draft, Item, find_items
from archive.architecture.outline.blocks import NetworkBlock, describe, image_size, shape_of
from archive.architecture.outline.condensing import ModuleGraph
from archive.architecture.outline.modules import NetworkModule, Property, recognise
from archive.architecture.outline.wiring import Wiring
from archive.errors import InvalidArchitectureError

STEM = "stem"
HEAD = "head"


@dataclass(frozen=True)
class Section:
    """Blocks in a row: the stem, a stage, or the head.

    Attributes:
        name: `stem`, `stage 1`, …, `head`.
        blocks: Its blocks; a block of stem or head is one module.
    """

    name: str
    blocks: tuple[NetworkBlock, ...]

    @property
    def channels(self) -> int | None:
        """Channels of its output; None where they are not known."""
        widths = [block.channels for block in self.blocks if block.channels]
        return widths[-1] if widths else None

    @property
    def depth(self) -> int:
        """Number of blocks that do more than to reduce the image."""
        return sum(block.kind != "downsampling" for block in self.blocks)

    @property
    def resolution(self) -> int | None:
        """Side of the image at its end; None where it is not known."""
        value = self.blocks[-1].properties.get("resolution") if self.blocks else None
        return value if isinstance(value, int) else None

    @property
    def modules(self) -> Iterator[NetworkModule]:
        """The modules of its blocks."""
        for block in self.blocks:
            yield from block.modules


@dataclass(frozen=True)
class Outline:
    """A network as sections of blocks.

    Attributes:
        architecture: The network, without folded blocks: the layers' positions are its own.
        sections: Stem, stages and head, in order; empty ones are left out.
        parents: For each module, by its number in `modules`, those that it reads.
        modules: All modules in topological order.
    """

    architecture: Architecture
    sections: tuple[Section, ...]
    modules: tuple[NetworkModule, ...]
    parents: tuple[tuple[int, ...], ...]

    @property
    def stages(self) -> tuple[Section, ...]:
        """The stages."""
        return tuple(part for part in self.sections if part.name not in (STEM, HEAD))

    @property
    def blocks(self) -> tuple[NetworkBlock, ...]:
        """The blocks of all stages."""
        blocks: list[NetworkBlock] = []
        for stage in self.stages:
            blocks += stage.blocks

        return tuple(blocks)

    def section(self, name: str) -> Section:
        """Return the section of a name, empty where the network has none."""
        for section in self.sections:
            if section.name == name:
                return section

        return Section(name, ())


@lru_cache(maxsize=512)
def outline(architecture: Architecture) -> Outline:
    """Return the outline of a network."""
    if architecture.positions(START):
        # A network that is too large to be written out is outlined as it is folded.
        with suppress(InvalidArchitectureError):
            architecture = unfold(architecture)

    graph = ModuleGraph(recognise(Wiring(architecture)))
    items = find_items(graph)
    first, last = _bounds(items)
    aside = [number for number, inside in enumerate(graph.trunk) if not inside]
    stem = _modules_of(items[:first])
    head = _modules_of(items[last:])
    sections: list[Section] = []
    begin = _properties_of(graph, stem)
    blocks = _blocks(graph, items[first:last], begin)
    sections += _stages(blocks)
    if stem or aside:
        sections.insert(0, _loose(STEM, graph, sorted([*aside, *stem])))

    if head:
        sections.append(_loose(HEAD, graph, head))

    return Outline(
        architecture, tuple(sections), tuple(graph.modules), tuple(map(tuple, graph.parents))
    )


def _bounds(items: Sequence[Item]) -> tuple[int, int]:
    """Return the places of the first block, and behind the last one."""
    places = [position for position, item in enumerate(items) if isinstance(item, Draft)]
    return (places[0], places[-1] + 1) if places else (len(items), len(items))


def _modules_of(items: Sequence[Item]) -> list[int]:
    return [item for item in items if isinstance(item, int)]


def _properties_of(graph: ModuleGraph, stem: Sequence[int]) -> dict[str, Property]:
    """Return channels and size at the end of the stem."""
    properties: dict[str, Property] = {}
    for number in stem:
        module = graph.modules[number]
        if "channels" in module.properties:
            properties["channels"] = module.properties["channels"]

        if properties:
            channels = int(properties["channels"])
            properties.update(image_size(shape_of(graph, number), channels))

    return properties


def _blocks(
    graph: ModuleGraph, items: Sequence[Item], begin: dict[str, Property]
) -> list[NetworkBlock]:
    blocks: list[NetworkBlock] = []
    before = begin
    for item in items:
        assert isinstance(item, Draft)
        block = describe(graph, item, len(blocks), before)
        before = {**before, **block.properties}
        if "resolution" not in block.properties:
            before.pop("resolution", None)

        blocks.append(block)

    return blocks


def _stages(blocks: Sequence[NetworkBlock]) -> list[Section]:
    stages: list[list[NetworkBlock]] = []
    for block in blocks:
        reduces = block.kind == "downsampling" or int(block.properties.get("stride", 1)) > 1
        grows = bool(stages) and block.channels != stages[-1][-1].channels
        opened = bool(stages) and len(stages[-1]) == 1 and stages[-1][0].kind == "downsampling"
        if not stages or ((reduces or grows) and not opened):
            stages.append([])

        stages[-1].append(block)

    return [Section(f"stage {number}", tuple(stage)) for number, stage in enumerate(stages, 1)]


def _loose(name: str, graph: ModuleGraph, numbers: Sequence[int]) -> Section:
    """Return the stem or the head, with a block for each module."""
    blocks = []
    for index, number in enumerate(numbers):
        module = graph.modules[number]
        blocks.append(NetworkBlock(index, module.kind, module.properties, (module,), module.layers))

    return Section(name, tuple(blocks))

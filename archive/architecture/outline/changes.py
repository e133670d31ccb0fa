"""Named changes between two outlines: what a person would say that was changed.

    changes(outline(first), outline(second))   # [kv heads 4 -> 2 in blocks 1-6]

One edit is one change. Numbers that follow from another are not reported: heads where the width
changes and their size stays, the width of a stem that grows with the stages. Stages are paired in
order, and blocks within a stage from its begin.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from archive.architecture.outline.blocks import NetworkBlock
from archive.architecture.outline.modules import NetworkModule, Property
from archive.architecture.outline.outline import HEAD, STEM, Outline, Section
from archive.architecture.outline.words import module_text

NETWORK = "network"


@dataclass(frozen=True)
class Change:
    """A difference of two networks that has a name.

    Attributes:
        name: What changed: `width`, `depth`, `kernel`, `kv heads`, …; `other` for a difference
            without a name.
        where: `network`, `stem`, `head`, `stage 2`, `blocks 1-6`, …, by the blocks of the first.
        before: Value in the first network; None where it has none.
        after: Value in the second network; None where it has none.
    """

    name: str
    where: str
    before: Property | None
    after: Property | None

    def __str__(self) -> str:
        """Return the change as a line: `kv heads 4 -> 2 in blocks 1-6`."""
        if self.before is None and self.after is None:
            return f"{self.name} in {self.where}"

        suffix = "" if self.where == NETWORK else f" in {self.where}"
        if self.before is None:
            return f"{self.name} added: {_text(self.after)}{suffix}"

        if self.after is None:
            return f"{self.name} removed: {_text(self.before)}{suffix}"

        return f"{self.name} {_text(self.before)} -> {_text(self.after)}{suffix}"


NAMES = {
    "kernel": "kernel",
    "groups": "groups",
    "expansion": "expansion ratio",
    "weights": "weights",
    "squeeze_excitation": "squeeze-excitation",
    "gate": "gate",
    "heads": "heads",
    "kv_heads": "kv heads",
    "head_size": "head size",
    "qkv_bias": "qkv bias",
    "qk_norm": "qk norm",
    "rotary": "rotary embedding",
    "position_bias": "position bias",
    "causal": "causal mask",
    "window": "window",
    "mlp_ratio": "mlp ratio",
    "gated": "gated mlp",
    "mlp_kernel": "mlp kernel",
    "mlp_norm": "mlp norm",
    "mixer": "mixer",
    "layer_scale": "layer scale",
    "parallel": "parallel branches",
    "norm": "norm",
    "activation": "activation",
    "norm_place": "norm place",
    "shortcut": "shortcut",
    "downsampling": "downsampling",
    "stride": "stride",
    "rest": "other layers",
}
"""Property of blocks to the name of its change."""

_NETWORK_WIDE = ("norm", "activation", "weights")
_RATIOS = {"mlp_ratio": 0.03, "expansion": 0.03, "squeeze_excitation": 0.05}
"""Property to the relative difference below which it counts as equal: hidden widths are rounded."""

_OF_MIXER = frozenset(
    "heads kv_heads head_size qkv_bias qk_norm rotary position_bias causal window kernel groups "
    "expansion mlp_kernel rest gate norm_place".split()
)
"""Properties that a change of the mixer brings with it."""


def changes(before: Outline, after: Outline) -> list[Change]:
    """Return the changes from one network to another; empty for equal outlines of one network."""
    if before.architecture.functional_key == after.architecture.functional_key:
        return []

    named = _inputs(before, after)
    stages = _pair_stages(before.stages, after.stages)
    named += _widths(before, after, stages)
    named += _depths(before, after, stages)
    blocks = _pair_blocks(stages)
    named += _properties(before, after, blocks, wider=any(c.name == "width" for c in named))
    named += _ends(before, after, wider=any(change.name == "width" for change in named))
    return named or [Change("other", NETWORK, None, None)]


def _text(value: Property | None) -> str:
    if value is True:
        return "yes"

    if value is False:
        return "no"

    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _inputs(before: Outline, after: Outline) -> list[Change]:
    texts = []
    for network in (before, after):
        value = network.architecture.layers[0].attributes.get("input")
        texts.append(None if value is None else str(value))

    if texts[0] == texts[1]:
        return []

    return [Change("input size", NETWORK, texts[0], texts[1])]


StagePair = tuple[Section, Section]


def _pair_stages(first: Sequence[Section], second: Sequence[Section]) -> list[StagePair]:
    """Return the stages that belong together, in order; the others have no partner."""
    if len(first) == len(second):
        return list(zip(first, second, strict=True))

    # Alignment of least cost; a pair costs less than two stages without partners.
    rows = len(first) + 1
    columns = len(second) + 1
    cost = [[0.0] * columns for _ in range(rows)]
    for i in range(rows):
        for j in range(columns):
            if i == 0 or j == 0:
                cost[i][j] = float(i + j)
                continue

            joined = cost[i - 1][j - 1] + _unlike(first[i - 1], second[j - 1])
            cost[i][j] = min(joined, cost[i - 1][j] + 1.0, cost[i][j - 1] + 1.0)

    pairs: list[StagePair] = []
    i = len(first)
    j = len(second)
    while i and j:
        joined = cost[i - 1][j - 1] + _unlike(first[i - 1], second[j - 1])
        if cost[i][j] == joined:
            pairs.append((first[i - 1], second[j - 1]))
            i -= 1
            j -= 1
        elif cost[i][j] == cost[i - 1][j] + 1.0:
            i -= 1
        else:
            j -= 1

    return pairs[::-1]


def _unlike(first: Section, second: Section) -> float:
    """Return how unlike two stages are, from 0 to 1.9."""
    kinds = first.blocks[-1].kind != second.blocks[-1].kind
    sizes = first.resolution != second.resolution
    widths = 0.0
    if first.channels and second.channels:
        widths = min(abs(math.log2(first.channels / second.channels)), 1.0)

    return 0.5 * kinds + 0.7 * sizes + 0.7 * widths


def _widths(before: Outline, after: Outline, pairs: Sequence[StagePair]) -> list[Change]:
    differing = []
    for first, second in pairs:
        if first.channels != second.channels:
            differing.append(first.name)

    if not differing:
        return []

    where = NETWORK if len(differing) == len(before.stages) else _list(differing)
    return [Change("width", where, _row(before, "channels"), _row(after, "channels"))]


def _depths(before: Outline, after: Outline, pairs: Sequence[StagePair]) -> list[Change]:
    named = []
    if len(before.stages) != len(after.stages):
        named.append(Change("stages", NETWORK, len(before.stages), len(after.stages)))

    differing = [first.name for first, second in pairs if first.depth != second.depth]
    if differing:
        where = NETWORK if len(differing) == len(before.stages) else _list(differing)
        named.append(Change("depth", where, _row(before, "depth"), _row(after, "depth")))

    return named


def _row(outline: Outline, name: str) -> Property:
    """Return a number of all stages: `64/128/256/512`, or the number of the only one."""
    values = [getattr(stage, name) for stage in outline.stages]
    return int(values[0] or 0) if len(values) == 1 else "/".join(map(str, values))


def _list(names: Sequence[str]) -> str:
    """Return stages as a text: `stages 2-3`."""
    numbers = [int(name.rpartition(" ")[2]) for name in names]
    return ranges("stage", numbers)


def ranges(noun: str, numbers: Sequence[int]) -> str:
    """Return numbers as a text: `blocks 1-6`, `stages 1, 3-4`."""
    spans: list[list[int]] = []
    for number in sorted(set(numbers)):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])

    texts = []
    for begin, end in spans:
        texts.append(str(begin) if begin == end else f"{begin}-{end}")

    plural = len(spans) > 1 or spans[0][0] != spans[0][1]
    return f"{noun}{'s' if plural else ''} {', '.join(texts)}"


BlockPair = tuple[NetworkBlock, NetworkBlock]


def _pair_blocks(pairs: Iterable[StagePair]) -> list[BlockPair]:
    blocks: list[BlockPair] = []
    for first, second in pairs:
        opening = [_opening(first), _opening(second)]
        if opening[0] and opening[1]:
            blocks.append((first.blocks[0], second.blocks[0]))

        blocks += zip(first.blocks[opening[0] :], second.blocks[opening[1] :], strict=False)

    return blocks


def _opening(stage: Section) -> int:
    """Return 1 if a stage begins with a block that only reduces the image, else 0."""
    return int(stage.blocks[0].kind == "downsampling")


def _properties(
    before: Outline, after: Outline, pairs: Sequence[BlockPair], *, wider: bool
) -> list[Change]:
    """Return the changes of properties of blocks, one change for each property."""
    named: list[Change] = []
    differing: dict[str, list[tuple[int, Property | None, Property | None]]] = defaultdict(list)
    possible: dict[str, int] = defaultdict(int)
    for first, second in pairs:
        if first.kind != second.kind:
            differing["kind"].append((first.index, first.kind, second.kind))

        possible["kind"] += 1
        names = [name for name in NAMES if name in first.properties or name in second.properties]
        for name in names:
            possible[name] += 1

        for name in _differing(first, second, names, wider):
            values = (first.properties.get(name), second.properties.get(name))
            differing[name].append((first.index, *values))

    for name, entries in differing.items():
        old = _joint([value for _, value, _ in entries])
        new = _joint([value for _, _, value in entries])
        numbers = [index + 1 for index, _, _ in entries]
        whole = len(numbers) == possible[name] == len(before.blocks) and len(numbers) > 1
        where = NETWORK if whole and name in _NETWORK_WIDE else ranges("block", numbers)
        named.append(Change(NAMES.get(name, "block"), where, old, new))

    return named


def _joint(values: Sequence[Property | None]) -> Property | None:
    """Return the values of several blocks as one: the value, or `3/5`."""
    distinct = list(dict.fromkeys(values))
    if len(distinct) == 1:
        return distinct[0]

    return "/".join("none" if value is None else _text(value) for value in distinct)


def _differing(
    first: NetworkBlock, second: NetworkBlock, names: Sequence[str], wider: bool
) -> list[str]:
    """Return the properties in which two blocks differ, without those that follow from others."""
    old = first.properties
    new = second.properties
    differing: list[str] = []
    for name in names:
        if not _equal(name, old.get(name), new.get(name)):
            differing.append(name)

    gone: set[str] = set()
    if first.kind != second.kind or "mixer" in differing:
        gone |= _OF_MIXER if "mixer" in differing else {"expansion", "rest", "norm_place"}

    if "heads" in differing:
        same_size = old.get("head_size") == new.get("head_size")
        gone |= {"head_size"} if not wider or not same_size else {"heads"}
        if old.get("kv_heads") == old.get("heads") and new.get("kv_heads") == new.get("heads"):
            gone.add("kv_heads")

    if wider and "head_size" in differing and "heads" not in differing:
        gone.add("head_size")

    if wider and "groups" in differing and _group_width(first) == _group_width(second):
        gone.add("groups")

    if "expansion" in differing and "squeeze_excitation" in old and "squeeze_excitation" in new:
        gone.add("squeeze_excitation")

    if wider and old.get("squeeze_excitation") and new.get("squeeze_excitation"):
        # The inner width of a first block follows from the stage before.
        gone.add("squeeze_excitation")

    if "stride" in differing or "kernel" in differing:
        gone.add("downsampling")

    if "shortcut" in differing and _projects(first) != _projects(second):
        # A projection follows from a change of channels or size.
        gone.add("shortcut")

    return [name for name in differing if name not in gone]


def _projects(block: NetworkBlock) -> bool:
    """Return whether the channels or the size change within a block."""
    properties = block.properties
    moves = properties.get("in_channels") != properties.get("channels")
    return moves or "stride" in properties


def _group_width(block: NetworkBlock) -> float | None:
    groups = block.properties.get("groups")
    channels = block.channels
    if not isinstance(groups, int) or not channels:
        return None

    return round(channels * float(block.properties.get("expansion", 1.0)) / groups)


def _equal(name: str, first: Property | None, second: Property | None) -> bool:
    if first == second:
        return True

    if name not in _RATIOS or first is None or second is None:
        return False

    return abs(math.log(float(first) / float(second))) < _RATIOS[name]


def _ends(before: Outline, after: Outline, *, wider: bool) -> list[Change]:
    """Return the changes of stem and head."""
    named: list[Change] = []
    stems = (before.section(STEM), after.section(STEM))
    patches = [_patch(stem) for stem in stems]
    if patches[0] and patches[1] and patches[0] != patches[1]:
        named.append(Change("patch size", STEM, *patches))
    else:
        shapes = [module_text(_shown(stem), bare=True) for stem in stems]
        if shapes[0] != shapes[1]:
            named.append(Change("stem", STEM, shapes[0] or None, shapes[1] or None))
        elif not wider:
            widths = [_channels(stem) for stem in stems]
            if widths[0] != widths[1]:
                named.append(Change("stem width", STEM, widths[0], widths[1]))

    tokens = [_sum(stem, "tokens") for stem in stems]
    if tokens[0] != tokens[1]:
        named.append(Change("tokens", STEM, *tokens))

    embeddings = [_sum(stem, "position_embedding") > 0 for stem in stems]
    if embeddings[0] != embeddings[1]:
        named.append(Change("position embedding", STEM, *embeddings))

    heads = (before.section(HEAD), after.section(HEAD))
    shapes = [_head_text(head) for head in heads]
    if shapes[0] != shapes[1]:
        named.append(Change("head", HEAD, shapes[0] or None, shapes[1] or None))

    outputs = [head.channels for head in heads]
    if outputs[0] != outputs[1] and outputs[0] and outputs[1]:
        named.append(Change("outputs", HEAD, *outputs))

    for section, sections in ((STEM, stems), (HEAD, heads)):
        for name in ("norm", "activation"):
            named += _end_property(before, after, section, sections, name)

    return named


def _end_property(
    before: Outline, after: Outline, where: str, sections: tuple[Section, Section], name: str
) -> list[Change]:
    """Return the change of the norm or activation of stem or head, unless the blocks have it."""
    values = []
    for section in sections:
        names = [module.properties.get(name) for module in section.modules]
        values.append(_joint([value for value in names if value]) if any(names) else None)

    if values[0] == values[1]:
        return []

    in_blocks = []
    for outline in (before, after):
        in_blocks.append({block.properties.get(name) for block in outline.blocks})

    if in_blocks[0] != in_blocks[1] and values[0] in in_blocks[0] and values[1] in in_blocks[1]:
        return []

    return [Change(f"{where} {name}", where, values[0], values[1])]


def _shown(section: Section) -> list[NetworkModule]:
    shown: list[NetworkModule] = []
    for module in section.modules:
        if module.kind not in ("ip", "op", "norm", "activation", "reshape", "getitem"):
            shown.append(module)

    return shown


def _patch(stem: Section) -> int:
    """Return the side of the patches of a stem with one convolution; 0 without."""
    convs = [module.properties for module in stem.modules if module.kind == "conv"]
    if len(convs) == 1 and convs[0].get("kernel") == convs[0].get("stride"):
        return int(convs[0]["kernel"])

    return 0


def _channels(section: Section) -> str:
    numbers = []
    for module in section.modules:
        if module.kind in ("conv", "linear") and "channels" in module.properties:
            numbers.append(str(module.properties["channels"]))

    return "/".join(numbers)


def _sum(section: Section, name: str) -> int:
    return sum(int(module.properties.get(name, 0)) for module in section.modules)


def _head_text(head: Section) -> str:
    return module_text(_shown(head), bare=True)

"""Assembly of blocks: which modules of the trunk make one block.

A part of the trunk that ends with a sum is a residual block. The residual parts of a transformer,
attention and MLP, are one block. Without a sum, known rows of modules are blocks: an inverted
bottleneck, a depthwise-separable convolution. Modules between blocks that reduce the image are a
block of form `downsampling`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from archive.architecture.outline.condensing import ModuleGraph
from archive.architecture.outline.modules import NetworkModule, Property


@dataclass
class Draft:
    """A block before its description.

    Attributes:
        modules: Numbers of its modules.
        main: Numbers of the modules of its main branches, ascending.
        shortcuts: For each sum the modules beside the main branch: empty for the identity.
        form: `residual`, `plain`, `branches`, or `downsampling`.
        post: Whether a norm follows its sum.
    """

    modules: list[int]
    main: list[int]
    shortcuts: list[list[int]] = field(default_factory=list)
    form: str = "plain"
    post: bool = False


Item = Draft | int
"""A block, or the number of a module between blocks."""


def find_items(graph: ModuleGraph) -> list[Item]:
    """Return the trunk as blocks and modules between them, in order."""
    items: list[Item] = []
    begin: int | None = None
    for part in graph.parts():
        mixes = any(graph.modules[number].weighted for number in part)
        sums = graph.modules[part[-1]].kind == "add"
        if len(part) > 1 and (mixes or sums):
            items.append(_branching(graph, part, begin))
        else:
            # A norm, or an activation, of several layers.
            items += part

        begin = part[-1]

    items = _with_norms(graph, items)
    items = _with_rows(graph, items)
    items = _with_pairs(graph, items)
    items = _without_ends(graph, items)
    if not any(isinstance(item, Draft) for item in items):
        return _plain(graph, items)

    return _with_downsampling(graph, items)


def _without_ends(graph: ModuleGraph, items: Sequence[Item]) -> list[Item]:
    """Return the items with branches of the stem and of the head as modules.

    The stem begins with branches of convolutions that reduce the image, the head ends with branches
    of linear layers.
    """
    result = list(items)
    drafts = [index for index, item in enumerate(items) if isinstance(item, Draft)]
    if len(drafts) < 2:
        return result

    for places, kinds in ((drafts[-1:], {"linear"}), (drafts[:1], {"conv"})):
        item = items[places[0]]
        assert isinstance(item, Draft)
        modules = [graph.modules[number] for number in item.modules]
        weighted = {module.kind for module in modules if module.weighted}
        reduces = kinds == {"linear"} or (places[0] == 0 and item.form == "residual")
        if weighted <= kinds and reduces and (kinds == {"linear"} or stride_of(modules) > 1):
            if kinds == {"linear"} or any(item.shortcuts):
                result[places[0] : places[0] + 1] = sorted(item.modules)

    return result


def _branching(graph: ModuleGraph, part: Sequence[int], begin: int | None) -> Draft:
    """Return a part with branches as a block."""
    end = part[-1]
    inside = set(part)
    if graph.modules[end].kind not in ("add", "sub"):
        return Draft(list(part), list(part), form="branches")

    operands = _operands(graph, end, inside)
    branches = {operand: _before(graph, operand, inside) for operand in operands}
    identities = [operand for operand in operands if operand == begin or operand not in inside]
    if identities and begin is not None:
        return Draft(list(part), list(part), [[]], "residual")

    def effort(operand: int) -> tuple[int, int]:
        numbers = branches[operand]
        return sum(graph.modules[number].weighted for number in numbers), len(numbers)

    short = min(operands, key=effort)
    others: set[int] = set()
    for operand in operands:
        if operand != short:
            others |= branches[operand]

    shortcut = sorted(branches[short] - others)
    main = [number for number in part if number not in shortcut]
    return Draft(list(part), main, [shortcut], "residual")


def _operands(graph: ModuleGraph, end: int, inside: set[int]) -> list[int]:
    """Return the terms of a sum; sums that only this one reads are written out."""
    operands: list[int] = []
    for parent in graph.trunk_parents(end):
        inner = graph.modules[parent].kind == "add" and graph.children[parent] == [end]
        if parent in inside and inner and len(graph.trunk_parents(parent)) > 1:
            operands += _operands(graph, parent, inside)
        else:
            operands.append(parent)

    return operands


def _before(graph: ModuleGraph, number: int, inside: set[int]) -> set[int]:
    """Return a module and the modules before it in the same part."""
    earlier: set[int] = set()
    stack = [number]
    while stack:
        current = stack.pop()
        if current in inside and current not in earlier:
            earlier.add(current)
            stack += graph.trunk_parents(current)

    return earlier


def _kind_at(graph: ModuleGraph, items: Sequence[Item], index: int) -> str:
    """Return the kind of the module at an index; empty for a block and outside."""
    if not 0 <= index < len(items):
        return ""

    item = items[index]
    return graph.modules[item].kind if isinstance(item, int) else ""


def _with_norms(graph: ModuleGraph, items: Sequence[Item]) -> list[Item]:
    """Return the items with the norms between residual blocks in one of the two blocks."""
    residuals = 0
    leading = 0
    followed = 0
    for index, item in enumerate(items):
        if isinstance(item, Draft) and item.form == "residual":
            residuals += 1
            leading += graph.modules[item.main[0]].kind == "norm"
            followed += _kind_at(graph, items, index + 1) == "norm"

    post = followed > leading and 2 * followed > residuals
    result: list[Item] = []
    for index, item in enumerate(items):
        before = result[-1] if result else None
        following = items[index + 1] if index + 1 < len(items) else None
        if _kind_at(graph, items, index) in ("norm", "activation") and isinstance(item, int):
            if isinstance(before, Draft) and before.form == "residual":
                is_norm = graph.modules[item].kind == "norm"
                if (post and is_norm) or not is_norm:
                    before.modules.append(item)
                    before.post = before.post or is_norm
                    continue

            if isinstance(following, Draft) and following.form == "residual":
                following.modules.insert(0, item)
                following.main.insert(0, item)
                continue

        if _kind_at(graph, items, index) in ("squeeze-excitation", "gate"):
            if isinstance(item, int) and isinstance(before, Draft) and isinstance(following, Draft):
                before.modules.append(item)
                before.main.append(item)
                continue

        result.append(item)

    return result


def _with_rows(graph: ModuleGraph, items: Sequence[Item]) -> list[Item]:
    """Return the items with known rows of modules as blocks."""
    result: list[Item] = []
    index = 0
    while index < len(items):
        length = _row_length(graph, items, index)
        if length:
            numbers = [item for item in items[index : index + length] if isinstance(item, int)]
            result.append(Draft(numbers, list(numbers)))
            index += length
        else:
            result.append(items[index])
            index += 1

    return result


def _row_length(graph: ModuleGraph, items: Sequence[Item], index: int) -> int:
    """Return the number of items of the block that begins at an index; 0 without one."""

    def conv(index: int) -> dict[str, Property]:
        if _kind_at(graph, items, index) != "conv":
            return {}

        number = items[index]
        assert isinstance(number, int)
        return graph.modules[number].properties

    end = index
    first = conv(end)
    expands = first.get("kernel") == 1 and "activation" in first
    if expands and conv(end + 1).get("depthwise"):
        end += 1

    window = conv(end)
    wide = window.get("depthwise") or (
        not expands
        and int(window.get("kernel", 1)) > 1
        and int(window.get("channels", 0)) >= 2 * int(window.get("in_channels", 0))
        and "activation" in window
    )
    if not window or not wide:
        return 0

    end += 1
    if _kind_at(graph, items, end) in ("squeeze-excitation", "gate"):
        end += 1

    last = conv(end)
    if last.get("kernel") != 1:
        return 0

    # Without an activation, a wide convolution is projected back; in a separable one, both have.
    narrow = int(last.get("channels", 0)) < int(window.get("channels", 0))
    if not window.get("depthwise") and not (narrow and "activation" not in last):
        return 0

    return end + 1 - index


def _with_pairs(graph: ModuleGraph, items: Sequence[Item]) -> list[Item]:
    """Return the items with residual parts that make one block joined: attention and MLP."""
    result: list[Item] = []
    for item in items:
        before = result[-1] if result else None
        if isinstance(item, Draft) and isinstance(before, Draft) and _pairs(graph, before, item):
            before.modules += item.modules
            before.main += item.main
            before.shortcuts += item.shortcuts
            before.post = before.post or item.post
        else:
            result.append(item)

    return result


def _pairs(graph: ModuleGraph, first: Draft, second: Draft) -> bool:
    if first.form != "residual" or second.form != "residual":
        return False

    if any(graph.modules[number].weighted for number in second.shortcuts[0]):
        return False

    kinds = _weighted_kinds(graph, first)
    others = _weighted_kinds(graph, second)
    # A position encoding by a depthwise convolution, before the rest of the block.
    if kinds == ["depthwise"] and len(first.shortcuts) == 1 and others != ["depthwise"]:
        return True

    if "attention" in kinds and set(others) == {"depthwise", "mlp"}:
        return "mlp" not in kinds

    return others == ["mlp"] and "mlp" not in kinds


def _weighted_kinds(graph: ModuleGraph, draft: Draft) -> list[str]:
    """Return the kinds of modules with weights in the main branches, each once."""
    kinds: list[str] = []
    for number in draft.main:
        module = graph.modules[number]
        kind = module.kind
        if kind == "mlp" and module.properties.get("over"):
            kind = "token mlp"
        elif kind == "conv" and module.properties.get("depthwise"):
            kind = "depthwise"

        if (module.weighted or kind == "pool") and kind not in kinds:
            kinds.append(kind)

    return kinds


def _plain(graph: ModuleGraph, items: Sequence[Item]) -> list[Item]:
    """Return a network without branches: a block for each module with weights but the last ones."""
    numbers = [item for item in items if isinstance(item, int)]
    convs = [number for number in numbers if _is_window(graph, number)]
    weighted = convs or [number for number in numbers if graph.modules[number].weighted]
    last = weighted[-1] if convs else weighted[-2] if len(weighted) > 1 else -1
    result: list[Item] = []
    for number in numbers:
        if number in weighted and number <= last:
            result.append(Draft([number], [number]))
        else:
            result.append(number)

    return _with_downsampling(graph, result)


def _is_window(graph: ModuleGraph, number: int) -> bool:
    """Return whether a module is a convolution whose output is an image."""
    module = graph.modules[number]
    shape = graph.wiring.shapes[module.layers[0]]
    return module.kind == "conv" and (shape is None or math.prod(shape[2:]) > 1)


def _with_downsampling(graph: ModuleGraph, items: Sequence[Item]) -> list[Item]:
    """Return the items with the modules between two blocks as blocks."""
    blocks = [index for index, item in enumerate(items) if isinstance(item, Draft)]
    if not blocks:
        return list(items)

    result: list[Item] = list(items[: blocks[0]])
    between: list[int] = []
    for item in items[blocks[0] : blocks[-1] + 1]:
        if isinstance(item, int):
            between.append(item)
            continue

        modules = [graph.modules[number] for number in between]
        if stride_of(modules) > 1 or _grows(modules):
            result.append(Draft(between, list(between), form="downsampling"))
        elif between:
            item.modules = [*between, *item.modules]
            item.main = [*between, *item.main]

        between = []
        result.append(item)

    return [*result, *items[blocks[-1] + 1 :]]


def stride_of(modules: Iterable[NetworkModule]) -> int:
    """Return the product of the strides of modules."""
    return math.prod(int(module.properties.get("stride", 1)) for module in modules)


def _grows(modules: Sequence[NetworkModule]) -> bool:
    """Return whether modules change the number of channels."""
    ends = [module.properties for module in modules if "in_channels" in module.properties]
    return bool(ends) and ends[0].get("in_channels") != ends[-1].get("channels")

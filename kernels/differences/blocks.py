"""The script of the edit distance of decoders: blocks matched, changed, inserted and removed.

Notation as in `archive.kernels.distances.block_edit`. The layers of a matched pair of blocks are
paired by their roles: the mixer with the mixer, its norm with the other one's norm.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from archive.architecture.decoders.design import Block, Design, PlacedPart, placed_design_of
from archive.architecture.decoders.labels import text_of
from archive.architecture.decoders.vocabulary import ALL_MIXERS
from archive.architecture.graph import Architecture
from archive.kernels.differences.base import Difference, DifferencePart
from archive.kernels.distances.block_edit import block_features, stream_features

Floats = NDArray[np.float64]
Pair = tuple[int | None, int | None]
Roles = dict[str, int]
"""Position of each layer of a block by its role, in topological order."""

_ROLES = ("norm", "part", "behind", "sum")
_ORDER = tuple(f"{kind} {role}" for kind in ("mixer", "feed-forward") for role in _ROLES)


def block_difference(first: Architecture, second: Architecture, component: str) -> Difference:
    """Return the script of two decoders, in O(n n') time and memory.

    Raises:
        InvalidArchitectureError: One of them is no decoder.
    """
    design, placed = placed_design_of(first)
    other, other_placed = placed_design_of(second)
    parts = [_stream_part(first, second, design, other)]
    pairs: list[Pair] = [*_ends(first, second, begin=True)]
    for i, j in _align(_features(design), _features(other)):
        roles = {} if i is None else _roles(placed[i])
        other_roles = {} if j is None else _roles(other_placed[j])
        parts.append(_block_part(design, other, (i, j), (roles, other_roles)))
        pairs += _pair(roles, other_roles)

    pairs += _ends(first, second, begin=False)
    return Difference("edit", component, first, second, tuple(parts), tuple(pairs))


def _features(design: Design) -> Floats:
    rows = [block_features(block, design.width) for block in design.blocks]
    return np.array(rows, np.float64).reshape(len(rows), -1)


def _align(first: Floats, second: Floats) -> list[Pair]:
    """Return the blocks of both networks, matched, removed and inserted, in order."""
    n = len(first)
    m = len(second)
    removals = first.sum(axis=1)
    insertions = second.sum(axis=1)
    costs = np.zeros((n + 1, m + 1))
    costs[1:, 0] = np.cumsum(removals)
    costs[0, 1:] = np.cumsum(insertions)
    for i in range(n):
        for j in range(m):
            change = costs[i, j] + np.abs(first[i] - second[j]).sum()
            fewer = min(costs[i, j + 1] + removals[i], costs[i + 1, j] + insertions[j])
            costs[i + 1, j + 1] = min(change, fewer)

    aligned: list[Pair] = []
    i = n
    j = m
    while i or j:
        if i and j:
            change = costs[i - 1, j - 1] + np.abs(first[i - 1] - second[j - 1]).sum()
            if change <= costs[i, j]:
                i -= 1
                j -= 1
                aligned.append((i, j))
                continue

        if i and costs[i - 1, j] + removals[i - 1] <= costs[i, j]:
            i -= 1
            aligned.append((i, None))
        else:
            j -= 1
            aligned.append((None, j))

    return aligned[::-1]


def _roles(placed: tuple[PlacedPart, ...]) -> Roles:
    """Return the layers of a block by their roles; parallel parts share the first one's norm."""
    roles: Roles = {}
    taken: set[int] = set()
    is_parallel = len({part.addition for part in placed}) < len(placed)
    for part in placed:
        kind = "mixer" if part.part.op in ALL_MIXERS else "feed-forward"
        addition = None if is_parallel and kind == "mixer" else part.addition
        for role, position in zip(
            _ROLES, (part.norm, part.position, part.behind, addition), strict=True
        ):
            if position is not None and position not in taken:
                taken.add(position)
                roles[f"{kind} {role}"] = position

    return roles


def _pair(first: Roles, second: Roles) -> list[Pair]:
    pairs: list[Pair] = []
    for role in _ORDER:
        if role in first or role in second:
            pairs.append((first.get(role), second.get(role)))

    return pairs


def _ends(first: Architecture, second: Architecture, *, begin: bool) -> list[Pair]:
    """Return input and embedding, or the last norm, the head and the output."""
    if begin:
        return [(0, 0), (first.children[0][0], second.children[0][0])]

    pairs: list[Pair] = []
    u = len(first.layers) - 1
    v = len(second.layers) - 1
    for _ in range(3):
        pairs.append((u, v))
        u = first.parents[u][0]
        v = second.parents[v][0]

    return pairs[::-1]


def _stream_part(
    first: Architecture, second: Architecture, design: Design, other: Design
) -> DifferencePart:
    features = stream_features(design)
    cost = float(np.abs(np.subtract(features, stream_features(other))).sum())
    reasons = []
    if design.width != other.width:
        reasons.append(f"width {design.width} → {other.width}")

    if design.tied != other.tied:
        reasons.append("a head of its own" if design.tied else "a tied head")

    if design.vocabulary != other.vocabulary:
        reasons.append(f"vocabulary {design.vocabulary} → {other.vocabulary}")

    if cost and not reasons:
        # Settings that members of the space do not have: `archive arch diff` names them.
        reasons.append("settings of the stream")

    ends = [(network.children[0][0],) for network in (first, second)]
    change = "changed" if reasons else "matched"
    return DifferencePart("stream", change, ends[0], ends[1], cost, ", ".join(reasons))  # type: ignore[arg-type]


def _block_part(
    first: Design, second: Design, pair: Pair, roles: tuple[Roles, Roles]
) -> DifferencePart:
    i, j = pair
    before = tuple(roles[0].values())
    after = tuple(roles[1].values())
    if j is None:
        assert i is not None
        block = first.blocks[i]
        cost = sum(block_features(block, first.width))
        return DifferencePart("block", "removed", before, (), cost, _text(block, first.width))

    new = second.blocks[j]
    features = block_features(new, second.width)
    if i is None:
        return DifferencePart(
            "block", "inserted", (), after, sum(features), _text(new, second.width)
        )

    old = first.blocks[i]
    cost = float(np.abs(np.subtract(block_features(old, first.width), features)).sum())
    if not cost:
        return DifferencePart("block", "matched", before, after, 0.0)

    reason = f"{_text(old, first.width)} → {_text(new, second.width)}"
    return DifferencePart("block", "changed", before, after, cost, reason)


def _text(block: Block, width: int) -> str:
    # The rotary base of a block counts in the distance.
    parts = [text_of(part, width, whole=True) for part in block.parts]
    words = (" beside " if block.parallel else ", ").join(parts)
    return words if block.norm == "pre" else f"{words}, {block.norm} norms"

"""A difference as a diagram: an edit script as one network, a transport plan as two."""

from __future__ import annotations

from archive.architecture.diagram_comparison import beside, merge
from archive.drawing import Diagram
from archive.kernels.differences.base import Change, Difference
from archive.words import PARTS

_LEAST_SHARE = 0.01
"""Share of a layer's mass below which the layer counts as having no partner."""


def difference_diagram(difference: Difference) -> Diagram:
    """Return the diagram of a difference.

    Its heading has the distance and the sums of its parts.
    """
    first = difference.first
    second = difference.second
    if difference.kernel == "otmann":
        most = max((part.amount for part in difference.parts), default=1.0)
        flows = []
        for part in difference.parts:
            if part.first and part.second:
                note = _flow_note(part.amount, part.cost, part.reason)
                flows.append((part.first[0], part.second[0], part.amount / most, note))

        return beside(
            first,
            second,
            (_changes(difference, 0), _changes(difference, 1)),
            flows,
            heading(difference),
        )

    notes: dict[tuple[int | None, int | None], str] = {}
    for part in difference.parts:
        if part.subject == "layer" and part.cost:
            pair = (_only(part.first), _only(part.second))
            notes[pair] = f"costs {part.cost:.3g}"

    return merge(first, second, difference.layers, notes, heading(difference))


def _only(ends: tuple[int, ...]) -> int | None:
    """Return the layer of a part, None where it has none."""
    return ends[0] if ends else None


def pair_diagram(difference: Difference) -> Diagram:
    """Return the diagram of two networks side by side, with the change of each layer."""
    statuses: tuple[list[Change], list[Change]] = (
        ["matched"] * len(difference.first.layers),
        ["matched"] * len(difference.second.layers),
    )
    for pair in difference.layers:
        change = difference.change(pair)
        for side, position in enumerate(pair):
            if position is not None:
                statuses[side][position] = change

    return beside(difference.first, difference.second, statuses, ())


def _changes(difference: Difference, which: int) -> list[Change]:
    """Return the change of each layer of the first (0) or second (1) network.

    A layer is inserted or removed if less than `_LEAST_SHARE` of its mass has a partner. Any other
    layer has the change of the larger part of its mass. A layer without mass counts as matched.
    """
    network = (difference.first, difference.second)[which]
    amounts: list[dict[Change, float]] = [{"matched": 0.0} for _ in network.layers]
    for part in difference.parts:
        for u in (part.first, part.second)[which]:
            amounts[u][part.change] = amounts[u].get(part.change, 0.0) + part.amount

    return list(map(_change, amounts))


def _change(amounts: dict[Change, float]) -> Change:
    matched = amounts["matched"]
    changed = amounts.get("changed", 0.0)
    if matched + changed < _LEAST_SHARE * sum(amounts.values()):
        return "removed" if "removed" in amounts else "inserted"

    return "matched" if matched >= changed else "changed"


def heading(difference: Difference) -> tuple[str, ...]:
    """Return the distance, and the sum of each kind of its parts that costs something."""
    sums = []
    for subject, change, _, cost in difference.totals():
        if cost:
            noun = PARTS[subject].text
            plural = "" if subject == "mass" else "s"
            sums.append(f"{noun}{plural} {change}: {cost:.4g}")

    return (
        (
            f"{difference.first.key[:8]} → {difference.second.key[:8]}: {difference.component} "
            f"{difference.distance:.6g}"
        ),
        *filter(None, [" + ".join(sums)]),
    )


def _flow_note(amount: float, cost: float, reason: str) -> str:
    return f"{PARTS['mass'].text} {amount:.6g}, costs {cost:.4g}" + (
        f": {reason}" if reason else ""
    )

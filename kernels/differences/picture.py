"""A difference as a diagram: the edit script as one network, the transport plan as two networks side by side."""

from __future__ import annotations

from archive.architecture.diagram import beside, merged
from archive.drawing import Diagram
from archive.kernels.differences.base import Change, Difference

# Share of a layer's mass that is too little for a partner.
_LITTLE = 0.01


def pictured(difference: Difference) -> Diagram:
    """Return the diagram of a difference; its heading has the distance and the sums of its parts."""
    first, second = difference.first, difference.second
    if difference.kernel == "otmann":
        most = max((part.amount for part in difference.parts), default=1.0)
        flows = [
            (part.first[0], part.second[0], part.amount / most, _flow_words(part.amount, part.cost, part.reason))
            for part in difference.parts
            if part.first and part.second
        ]
        return beside(first, second, (_fates(difference, 0), _fates(difference, 1)), flows, heading(difference))
    notes: dict[tuple[int | None, int | None], str] = {}
    for part in difference.parts:
        if part.subject == "layer" and part.first and part.second and part.cost:
            notes[part.first[0], part.second[0]] = f"costs {part.cost:.3g}"
    return merged(first, second, difference.layers, notes, heading(difference))


def _fates(difference: Difference, which: int) -> list[Change]:
    """Return what happens to the layers of a network.

    A layer is inserted or removed if next to nothing of its mass has a partner; otherwise most of its matched mass
    decides. A layer without mass counts as matched.
    """
    network = (difference.first, difference.second)[which]
    amounts: list[dict[Change, float]] = [{"matched": 0.0} for _ in network.layers]
    for part in difference.parts:
        for u in (part.first, part.second)[which]:
            amounts[u][part.change] = amounts[u].get(part.change, 0.0) + part.amount
    return [_fate(each) for each in amounts]


def _fate(amounts: dict[Change, float]) -> Change:
    matched, changed = amounts["matched"], amounts.get("changed", 0.0)
    if matched + changed < _LITTLE * sum(amounts.values()):
        return "removed" if "removed" in amounts else "inserted"
    return "matched" if matched >= changed else "changed"


def heading(difference: Difference) -> tuple[str, ...]:
    """Return the distance, and the sum of each kind of its parts that costs something."""
    sums = [
        f"{subject}s {change}: {cost:.4g}" if subject != "mass" else f"mass {change}: {cost:.4g}"
        for subject, change, _, cost in difference.totals()
        if cost
    ]
    return (
        f"{difference.first.key[:8]} → {difference.second.key[:8]}: {difference.component} {difference.distance:.6g}",
        *([" + ".join(sums)] if sums else []),
    )


def _flow_words(amount: float, cost: float, reason: str) -> str:
    return f"mass {amount:.6g}, costs {cost:.4g}" + (f": {reason}" if reason else "")

"""The constraints of a study, and its nearest result while none meets them, for the JSON output and in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from archive.store.records import Study
    from archive.store.snapshots import Snapshot


def constraint_items(study: Study) -> list[dict[str, Any]]:
    """Return the constraints of a study (`archive.cli.documents.constraints.ConstraintItem`)."""
    return [{"name": each.name, "operator": each.operator, "bound": each.bound} for each in study.constraints]


def nearest_item(snapshot: Snapshot) -> dict[str, Any] | None:
    """Return the result of the smallest violation (`archive.cli.documents.constraints.NearestItem`).

    None where a result meets the constraints, there are none, or no result tells all their quantities.
    """
    study, nearest = snapshot.study, snapshot.nearest
    if not study.constraints or snapshot.incumbent is not None or nearest is None:
        return None
    metrics = {study.objective: nearest.value, **nearest.metrics}
    return {
        "architecture": nearest.architecture_key,
        "proposal": nearest.id,
        "value": nearest.value,
        "metrics": {each.name: metrics[each.name] for each in study.constraints},
    }


def unmet(snapshot: Snapshot) -> str | None:
    """Return in one line that no result meets the constraints, with the nearest one; None where one does."""
    study = snapshot.study
    results = sum(view.value is not None for view in snapshot.proposals)
    if not study.constraints or snapshot.incumbent is not None or not results:
        return None
    return unmet_line(list(map(str, study.constraints)), results, nearest_item(snapshot))


def unmet_line(constraints: list[str], results: int, nearest: Mapping[str, Any] | None) -> str:
    """Return in one line that no result meets constraints.

    Args:
        constraints: The constraints as text.
        results: Number of results.
        nearest: The nearest result, from `nearest_item`.
    """
    line = f"none of the {results} results meets {' and '.join(constraints)}"
    if nearest is None:
        return f"{line}: none has a value of each of these quantities"
    values = ", ".join(f"{name} {value:.6g}" for name, value in nearest["metrics"].items())
    return f"{line}: the nearest, {nearest['architecture']} ({nearest['proposal']}), has {values}"

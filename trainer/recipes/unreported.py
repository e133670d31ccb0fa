"""The failure of a recipe that does not report the study's objective: a trial states it, a search
recognises it.
"""

from __future__ import annotations

from collections.abc import Iterable

NONE = "none"


def reason(objective: str, metrics: Iterable[str]) -> str:
    """Return the reason of the failure.

    Args:
        objective: Name of the study's objective.
        metrics: Names of the metrics that the recipe reports.
    """
    return _beginning(objective) + (", ".join(metrics) or NONE)


def reported(reason: str | None, objective: str) -> list[str] | None:
    """Return the metrics that a failed trial reported; None where it failed for another reason.

    Args:
        reason: Reason of the failure.
        objective: Name of the study's objective.
    """
    beginning = _beginning(objective)
    if reason is None or not reason.startswith(beginning):
        return None

    metrics = reason.removeprefix(beginning)
    return [] if metrics == NONE else metrics.split(", ")


def _beginning(objective: str) -> str:
    return f"the recipe reports no metric {objective!r}, the study's objective; the training has "

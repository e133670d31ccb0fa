"""Estimates of noise-free values as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from archive.searches.results import EstimateItem, ObjectiveEstimate


def interval(estimate: EstimateItem | ObjectiveEstimate) -> str:
    """Return the interval of an estimate as text."""
    return "–" if estimate.low is None else f"{estimate.low:.4g} to {estimate.high:.4g}"

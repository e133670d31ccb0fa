"""Estimates of noise-free values, as `archive study best` and `archive search` show them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from archive.store.records import sign

if TYPE_CHECKING:
    from collections.abc import Mapping

    from archive.agents.recommendation import Recommendation
    from archive.store.records import Study
    from archive.store.snapshots import ProposalView, Snapshot


def estimate_item(study: Study, one: Recommendation) -> dict[str, Any]:
    """Return the estimate of a network's value, in the task's own unit."""
    better = sign(study.direction)
    low, high = sorted(better * end for end in (one.low, one.high) if end is not None) or (None, None)
    return {"mean": better * one.score, "low": low, "high": high, "evaluations": len(one.evaluations)}


def best_views(snapshot: Snapshot) -> dict[str, ProposalView]:
    """Return the best evaluation of each network of a study by the network's key, the best first."""
    views: dict[str, ProposalView] = {}
    for view in snapshot.best(len(snapshot.proposals)):
        views.setdefault(view.architecture_key, view)
    return views


def best_view(views: Mapping[str, ProposalView], one: Recommendation) -> ProposalView | None:
    """Return the best evaluation of a recommended network in the study; None if it is newer than the snapshot."""
    own = [views[key] for key in {seen.architecture.key for seen in one.evaluations} if key in views]
    # Networks of one function may have several keys, with other dead layers.
    ids = {seen.id: seen.score for seen in one.evaluations}
    return max(own, key=lambda view: ids.get(view.id, -math.inf), default=None)


def interval(estimate: dict[str, Any]) -> str:
    """Return the interval of an estimate as text."""
    return "–" if estimate["low"] is None else f"{estimate['low']:.4g} to {estimate['high']:.4g}"

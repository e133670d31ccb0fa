"""Pareto set of a study's results with several objectives.

| symbol | meaning                                                                              | shape  |
|--------|--------------------------------------------------------------------------------------|--------|
| Y      | scores of the results: values with their sign such that larger is better. Replicates | (n, M) |
|        | of a network are one result, of their mean values (`ranking.replicates`)             |        |
| P      | Pareto set: rows of Y that no other row dominates                                    | (k, M) |
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from archive.store.ranking.replicates import averaged
from archive.store.records import Objective, State, sign
from archive.store.snapshots import violation_of

if TYPE_CHECKING:
    from archive.store.records import Study
    from archive.store.snapshots import ProposalView, Snapshot

Array = NDArray[np.float64]


def pareto_front(snapshot: Snapshot) -> list[ProposalView]:
    """Return P of a study's whole trainings, the best in the first objective first.

    Replicates are represented by their first evaluation, with the mean values.
    """
    complete = (view for view in snapshot.proposals if view.state is State.COMPLETE)
    views, scores = scored(snapshot.study, dict(averaged(complete)).values())
    return [views[at] for at in front_of(scores)]


def scored(study: Study, means: Iterable[ProposalView]) -> tuple[list[ProposalView], Array]:
    """Return the results that meet the constraints and have all objectives, and their scores Y."""
    met = (view for view in means if not violation_of(study, view))
    rows = [
        (view, values) for view in met if (values := values_of(view, study.objectives)) is not None
    ]
    signs = np.array([sign(each.direction) for each in study.objectives])
    return [view for view, _ in rows], signs * np.array([values for _, values in rows]).reshape(
        len(rows), len(signs)
    )


def values_of(view: ProposalView, objectives: Sequence[Objective]) -> tuple[float, ...] | None:
    """Return the values of all objectives of a proposal; None if one is unknown or not finite."""
    values = [view.value, *(view.metrics.get(each.name) for each in objectives[1:])]
    finite = [float(value) for value in values if value is not None and math.isfinite(value)]
    return tuple(finite) if len(finite) == len(values) else None


def front_of(scores: Array) -> NDArray[np.int64]:
    """Return the positions of P among the rows of Y, the best in the first objective first.

    Args:
        scores: (n, M) float64, larger is better; no NaN.

    Returns:
        (k,) int64.
    """
    chosen = np.flatnonzero(nondominated(scores))
    return chosen[np.argsort(-scores[chosen, 0], kind="stable")]


def nondominated(scores: Array) -> NDArray[np.bool_]:
    """Return (n,) whether each row is in the Pareto set; of equal rows, the first one only.

    Args:
        scores: (n, M) float64, larger is better; no NaN.
    """
    # Imported here because the command line loads this module, and listing studies needs no such
    # computation.
    import moocore

    if not len(scores):
        return np.zeros(0, np.bool_)

    mask: NDArray[np.bool_] = moocore.is_nondominated(scores, maximise=True, keep_weakly=False)
    return mask

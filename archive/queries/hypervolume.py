"""Pareto set and hypervolume of the results of a study with several objectives.

| symbol | meaning                                                                              | shape  |
|--------|--------------------------------------------------------------------------------------|--------|
| Y      | scores of the results: values with their sign such that larger is better             | (n, M) |
| P      | Pareto set: rows of Y that no other row equals or exceeds in all objectives          | (k, M) |
| r      | reference point                                                                      | (M,)   |
| H      | hypervolume: volume of the union over P of the boxes between r and a row of P        | scalar |

H = vol(union of [r, p], p in P), in the product of the objectives' units (Zitzler and Thiele, 1998). Reports have the
worst value of each objective among the results as r, so that no result is left out and no choice is needed; H then
compares stages of one study. Two studies are compared with a reference point that is given.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from archive.store.records import Objective, State, sign
from archive.store.snapshots import violation_of

if TYPE_CHECKING:
    from archive.store.snapshots import ProposalView, Snapshot

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ParetoSet:
    """Pareto set of a study, with the hypervolume that it has reached.

    Attributes:
        objectives: The objectives.
        proposals: Proposals of the Pareto set, the best in the first objective first.
        values: Their values of each objective, in the objectives' units.
        reference: The reference point, in the objectives' units.
        hypervolume: Hypervolume of all results.
        history: Number of a proposal and hypervolume of the results up to it, in the order of the proposals.
        left_out: Number of evaluated proposals that meet the constraints, without a finite value of every objective.
    """

    objectives: tuple[Objective, ...]
    proposals: tuple[ProposalView, ...]
    values: tuple[tuple[float, ...], ...]
    reference: tuple[float, ...]
    hypervolume: float
    history: tuple[tuple[int, float], ...]
    left_out: int


def pareto_set(snapshot: Snapshot, reference: Sequence[float] | None = None) -> ParetoSet | None:
    """Return the Pareto set of a study's whole trainings; None before the first result with all objectives.

    Results that do not meet the study's constraints are left out, of the hypervolume as well.

    Args:
        snapshot: The study with its proposals.
        reference: Reference point in the objectives' units; None for the worst values among the results.
    """
    objectives = snapshot.study.objectives
    signs = np.array([sign(each.direction) for each in objectives])
    study = snapshot.study
    complete = [view for view in snapshot.proposals if view.state is State.COMPLETE]
    evaluated = [view for view in complete if not violation_of(study, view)] if study.constraints else complete
    rows = [(view, values) for view in evaluated if (values := values_of(view, objectives)) is not None]
    if not rows:
        return None
    scores = signs * np.array([values for _, values in rows])
    worst = scores.min(axis=0) if reference is None else signs * np.array(reference, np.float64)
    reached = history(scores, worst)
    chosen = np.flatnonzero(nondominated(scores))
    chosen = chosen[np.argsort(-scores[chosen, 0], kind="stable")]
    return ParetoSet(
        objectives,
        tuple(rows[at][0] for at in chosen),
        tuple(rows[at][1] for at in chosen),
        tuple((signs * worst).tolist()),
        float(reached[-1]),
        tuple((view.number, volume) for (view, _), volume in zip(rows, reached.tolist(), strict=True)),
        len(evaluated) - len(rows),
    )


def values_of(view: ProposalView, objectives: Sequence[Objective]) -> tuple[float, ...] | None:
    """Return the values of all objectives of a proposal; None if one is unknown or not finite."""
    values = [view.value, *(view.metrics.get(each.name) for each in objectives[1:])]
    finite = [float(value) for value in values if value is not None and math.isfinite(value)]
    return tuple(finite) if len(finite) == len(values) else None


def nondominated(scores: Array) -> NDArray[np.bool_]:
    """Return (n,) whether each row is in the Pareto set; of equal rows, the first one only.

    Args:
        scores: (n, M) float64, larger is better; no NaN.
    """
    # Imported here because the command line loads this module, and listing studies needs no such computation.
    import moocore

    if not len(scores):
        return np.zeros(0, np.bool_)
    mask: NDArray[np.bool_] = moocore.is_nondominated(scores, maximise=True, keep_weakly=False)
    return mask


def hypervolume(scores: Array, reference: Array) -> float:
    """Return H.

    Args:
        scores: (n, M) float64, larger is better; rows that do not exceed the reference point add nothing.
        reference: (M,) float64: r.
    """
    import moocore

    return float(moocore.hypervolume(scores, ref=reference, maximise=True)) if len(scores) else 0.0


def history(scores: Array, reference: Array) -> Array:
    """Return the hypervolume of the first 1, 2, … rows: (n,) float64, nondecreasing."""
    reached = np.zeros(len(scores))
    front, volume = np.empty((0, scores.shape[1])), 0.0
    for at, row in enumerate(scores):
        if not (front >= row).all(axis=1).any():
            front = np.vstack([front[~(front <= row).all(axis=1)], row])
            volume = max(volume, hypervolume(front, reference))
        reached[at] = volume
    return reached

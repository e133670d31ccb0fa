"""Means over the replicates of a study: evaluations of one network with equal hyperparameters.

| symbol | meaning                                                                              |
|--------|--------------------------------------------------------------------------------------|
| E_n    | finished evaluations of network n, with equal hyperparameters                        |
| v_i    | value of evaluation i of an objective, or of another metric                          |
| v_n    | mean of the finite v_i, i in E_n; v_i itself where all are equal                     |

Evaluations of a network differ if trainings have noise. The best of several is then the luckiest
one, and a Pareto set of single evaluations consists of lucky ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from archive.store.snapshots import ProposalView

Replicates = tuple[str, str]
"""Key of a group of replicates: the network's functional key, and the hyperparameters as text."""


def replicate_key(functional_key: str, hyperparameters: Mapping[str, Any]) -> Replicates:
    """Return the key of the group of an evaluation of a network with these hyperparameters."""
    return functional_key, repr(sorted(hyperparameters.items())) if hyperparameters else ""


def key_of(view: ProposalView) -> Replicates:
    """Return the key of the group that a proposal belongs to."""
    return replicate_key(view.functional_key, view.hyperparameters)


def averaged(views: Iterable[ProposalView]) -> Iterator[tuple[Replicates, ProposalView]]:
    """Yield, after each evaluation, its group and the mean of the group so far.

    The mean is the view of the first evaluation of the group with mean value and mean metrics.
    """
    groups: dict[Replicates, list[ProposalView]] = {}
    for view in views:
        group = groups.setdefault(key := key_of(view), [])
        group.append(view)
        yield key, _mean_of(group)


def _mean_of(group: Sequence[ProposalView]) -> ProposalView:
    if len(group) == 1:
        return group[0]

    names = dict.fromkeys(name for view in group for name in view.metrics)
    metrics = {
        name: _mean([view.metrics[name] for view in group if name in view.metrics])
        for name in names
    }
    values = [view.value for view in group if view.value is not None]
    return replace(group[0], value=_mean(values) if values else None, metrics=metrics)


def _mean(values: Sequence[float]) -> float:
    finite = [value for value in values if math.isfinite(value)]
    if len({*finite}) < 2:
        return finite[0] if finite else values[0]

    return math.fsum(finite) / len(finite)

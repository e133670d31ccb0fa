"""Front of a history with several objectives: estimated scores, not single lucky results.

| symbol | meaning                                                                                         | shape  |
|--------|-------------------------------------------------------------------------------------------------|--------|
| y_ij   | score of evaluation i for objective j, larger is better                                         | scalar |
| E_n    | evaluations of network n with equal hyperparameters: its replicates                             | set    |
| f_nj   | estimate of the noise-free score of network n for objective j                                   | (k, M) |
| r      | reference point of the volumes: the worst mean of each objective over replicates, without       | (M,)   |
|        | outliers (`archive.agents.observations`), less a tenth of the range (as Ishibuchi et al., 2018, |        |
|        | advise, so that the ends of the front count)                                                    |        |

| objective j                                              | f_nj                                           |
|----------------------------------------------------------|------------------------------------------------|
| has noise, and the agent's incumbent is a posterior mean | sum_s w_s mu_sj(n), in score units             |
| all others                                               | mean of y_ij over E_n: y_ij without replicates |

Whether an objective has noise follows from its own scores, by the rule of `archive.agents.observations`.
The posterior belongs to the surrogate by which EHVI ranks candidates, with means mu_sj and weights
w_s of its members. It is used if the surrogate estimates noise (`Fitted.noises`) and if the agent,
with one objective, takes the greatest posterior mean for its incumbent (`Method.repeats`).

The front of n noisy scores consists of lucky evaluations. It exceeds the true front and hides
improvements, the more so the larger n is. f is the plug-in estimate, as for one objective (Picheny,
Wagner, Ginsbourger, 2013). Daulton, Balandat and Bakshy (Parallel Bayesian optimization of multiple
noisy objectives, 2021) integrate over the posterior of the front instead, at the cost of one
decomposition for each sample.

Without noise and replicates f is Y itself, and the front is the measured one, to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import compress
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from archive.agents.objectives.goals import points
from archive.agents.observations import is_noisy, replicate_rows, usual
from archive.agents.surrogates.base import Array
from archive.architecture.networks import take
from archive.objectives.pareto import ranks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from archive.agents.base import History, Observation
    from archive.agents.surrogates.base import Fitted

MARGIN = 0.1
"""Distance of the reference point beyond the worst scores, as a share of their range."""

MOST = 1000
"""Most networks to estimate by a posterior, in the order of their nondomination ranks by means."""


class Front(NamedTuple):
    """Estimated scores of networks that meet the constraints, (f, M) float64; r, (M,) float64."""

    scores: Array
    reference: Array


def estimate_front(history: History, fitted: Mapping[int, Fitted], *, posterior: bool) -> Front:
    """Return the front of a history with goals; dominated points are included.

    Args:
        history: The history. At least one observation has all objectives.
        fitted: Position of each learnt objective to its surrogate, before any fantasy.
        posterior: Whether objectives with noise are estimated by posterior means.
    """
    observations, scores = points(history)
    groups = replicate_rows(observations)
    estimates = means(scores, groups)
    reference = reference_point(estimates)
    met = _met(history, observations, groups)
    estimates = estimates[met]
    groups = list(compress(groups, met))
    modelled: list[int] = []
    if posterior:
        for objective, model in fitted.items():
            if _is_modelled(model, observations, scores[:, objective]):
                modelled.append(objective)

    if modelled and groups:
        rows = first_ranks(estimates)
        estimates = estimates[rows]
        networks = [observations[groups[row][0]].architecture.functional for row in rows]
        for objective in modelled:
            estimates[:, objective] = fitted[objective].posterior(networks).in_scores().mean

    return Front(estimates, reference)


def means(scores: Array, groups: Sequence[Sequence[int]]) -> Array:
    """Return the mean scores of groups of rows: (k, M) float64 for (n, M) scores.

    Equal scores are kept exactly.
    """
    averages = np.empty((len(groups), scores.shape[1]))
    for row, members in zip(averages, groups, strict=True):
        of_group = scores[list(members)]
        row[:] = np.where((of_group == of_group[0]).all(axis=0), of_group[0], of_group.mean(axis=0))

    return averages


def reference_point(scores: Array) -> Array:
    """Return r for the scores of networks: (k, M) to (M,) float64."""
    # With one loss of 1,000, every gain at the cheap end of the front would be a thousand times as
    # large.
    worst = scores.min(axis=0, where=usual(scores), initial=np.inf)
    best = scores.max(axis=0)
    reference: Array = worst - MARGIN * np.where(best > worst, best - worst, 1.0)
    return reference


def first_ranks(scores: Array) -> list[int]:
    """Return the rows of the first nondomination ranks, at most `MOST`, in increasing order."""
    if len(scores) <= MOST:
        return list(range(len(scores)))

    return sorted(np.argsort(ranks(scores), kind="stable")[:MOST].tolist())


def _is_modelled(fitted: Fitted, observations: Sequence[Observation], scores: Array) -> bool:
    """Return whether an objective has noise that its surrogate estimates."""
    if fitted.noises() is None:
        return False

    if any(observation.hyperparameters for observation in observations):
        # Hyperparameters are no inputs of the models.
        return False

    of_objective = []
    for observation, score in zip(observations, scores.tolist(), strict=True):
        of_objective.append(replace(observation, score=score))

    return is_noisy(of_objective)


def _met(
    history: History, observations: Sequence[Observation], groups: Sequence[Sequence[int]]
) -> NDArray[np.bool_]:
    """Return whether networks meet the constraints by their mean quantities: (k,) bool."""
    if history.constraints is None:
        return np.ones(len(groups), np.bool_)

    averages = [_average(take(observations, rows)) for rows in groups]

    return history.constraints.met(averages)


def _average(replicates: Sequence[Observation]) -> Observation:
    first = replicates[0]
    if len(replicates) == 1 or not first.measured:
        return first

    columns = zip(*(replicate.measured for replicate in replicates), strict=True)
    return replace(first, measured=tuple(map(_finite_mean, columns)))


def _finite_mean(values: Sequence[float]) -> float:
    finite = list(filter(np.isfinite, values))
    if not finite:
        return values[0]

    return finite[0] if len({*finite}) == 1 else float(np.mean(finite))

"""Noise of a history: whether another evaluation of a network could give another score.

| evaluations of one network, with equal hyperparameters   | the history                                              |
|----------------------------------------------------------|----------------------------------------------------------|
| two scores differ                                        | has noise                                                |
| two seeds differ, and no two scores                      | has no noise                                             |
| none of these                                            | has noise if a seed is on record: a training depends on  |
|                                                          | it, and the answer of a table has none                   |

The rule says only that there may be noise. Its variance is a hyperparameter of the surrogates,
which they fit to all evaluations.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from archive.store.ranking.replicates import Replicates, replicate_key

if TYPE_CHECKING:
    from archive.agents.observations import Observation
    from archive.store.records import Evaluation


def is_noisy(observations: Sequence[Observation]) -> bool:
    """Return whether the scores of observations have noise, by the table at the head of this
    module.
    """
    if len({observation.architecture.functional_key for observation in observations}) == len(
        observations
    ):
        # No network has two evaluations: groups of a hundred thousand take three times as long as
        # their keys.
        return any(observation.seed is not None for observation in observations)

    first: dict[Replicates, Observation] = {}
    seeds_differ = False
    for observation in observations:
        other = first.setdefault(key_of(observation), observation)
        if observation.score != other.score:
            return True

        seeds_differ = seeds_differ or observation.seed != other.seed

    return not seeds_differ and any(observation.seed is not None for observation in observations)


def has_replicates(observations: Sequence[Observation]) -> bool:
    """Return whether a network has two evaluations with equal hyperparameters."""
    return len({key_of(observation) for observation in observations}) < len(observations)


def replicates(observations: Iterable[Observation]) -> list[list[Observation]]:
    """Return the observations grouped by network and hyperparameters, in the order of their first
    ones.
    """
    several = list(observations)
    return [[several[row] for row in rows] for rows in replicate_rows(several)]


def replicate_rows(observations: Sequence[Observation]) -> list[list[int]]:
    """Return the positions of observations in the groups of `replicates`."""
    groups: dict[Replicates, list[int]] = {}
    for row, observation in enumerate(observations):
        groups.setdefault(key_of(observation), []).append(row)

    return list(groups.values())


def key_of(evaluation: Observation | Evaluation) -> Replicates:
    """Return the key of the replicates that an evaluation belongs to."""
    return replicate_key(evaluation.architecture.functional_key, evaluation.hyperparameters)

"""Entries of a history, their outliers and their noise.

Outliers are results of failed trainings, such as a loss of 1,000 among losses below 1:

| symbol | meaning                                       | shape            |
|--------|-----------------------------------------------|------------------|
| y      | scores, larger is better                      | (n,) or (n, M)   |
| q, Q   | lower and upper quartile of each column       | scalar, or (M,)  |

    y is an outlier  <=>  y < q - FENCE (Q - q)

Only bad scores are outliers. Where the quartiles are equal, the usual spread is unknown, and there
are no outliers.

A history has noise if another evaluation of a network could give another score:

| evaluations of one network, with equal hyperparameters | the history                                             |
|--------------------------------------------------------|---------------------------------------------------------|
| two scores differ                                      | has noise                                               |
| two seeds differ, and no two scores                    | has no noise                                            |
| none of these                                          | has noise if a seed is on record: a training depends on |
|                                                        | it, and a table has none                                |

The rule says only that there may be noise. Its variance is a hyperparameter of the surrogates,
which they fit to all evaluations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from archive.architecture.graph import Architecture
from archive.store.ranking import Replicates, replicate_key

if TYPE_CHECKING:
    from archive.store.records import Evaluation


@dataclass(frozen=True, slots=True)
class Observation:
    """One finished evaluation.

    Attributes:
        architecture: The evaluated network.
        score: Its value, larger is better.
        id: The evaluation's id in the archive.
        agent: The agent that proposed it, if any.
        hyperparameters: Training hyperparameters that differ from the protocol; empty for most
            agents' proposals.
        seed: Seed of the training; None where none is on record, as for the answer of a table.
        further: Scores of the other objectives of `History.goals`, NaN where unknown; empty without
            goals.
        measured: Measured quantities of `History.constraints`, NaN where unknown; empty without
            such.
        variance: Variance of the prediction from a partial training to the score of the whole
            training, in squared score units; 0 for a whole training. It does not include the noise
            of trainings.
    """

    architecture: Architecture
    score: float
    id: str
    agent: str | None = None
    hyperparameters: Mapping[str, Any] = field(default_factory=dict, hash=False)
    seed: int | None = None
    further: tuple[float, ...] = ()
    measured: tuple[float, ...] = ()
    variance: float = 0.0


@dataclass(frozen=True, slots=True)
class Pending:
    """One proposal that waits for a trainer or is in training.

    `hyperparameters` as in `Observation`.
    """

    architecture: Architecture
    hyperparameters: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class SourceStudy:
    """Results of a study of another task, protocol or space, for agents that transfer.

    Attributes:
        study: Name of the study.
        task: Its task.
        protocol: Its training protocol.
        space: Space of its networks.
        observations: Finished evaluations; larger scores are better, in the unit of the source's
            task.
    """

    study: str
    task: str
    protocol: str
    space: str
    observations: tuple[Observation, ...]


FENCE = 20.0
"""Interquartile ranges; Tukey's fence for far outliers is at 3.

Scores of architectures have long lower tails: cells of NAS-Bench-201 without a connection are 16 of
them below the lower quartile after 200 epochs, and are no accidents."""

LARGEST = 1e150
"""Largest absolute value of a score that models can use: beyond it, variances in squared units
would overflow."""


def scores_of(observations: Sequence[Observation]) -> NDArray[np.float64]:
    """Return the scores of n observations: (n,) float64."""
    return np.array([observation.score for observation in observations], np.float64)


def is_score(value: float) -> bool:
    """Return whether models can use a value.

    NaN, infinity and values beyond `LARGEST` count as failures.
    """
    return abs(value) <= LARGEST


def fences(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the least usual score of each column, -inf where nothing is an outlier.

    There is at least one row, and no NaN.
    """
    lower, upper = np.quantile(scores, [0.25, 0.75], axis=0)
    least: NDArray[np.float64] = np.where(upper > lower, lower - FENCE * (upper - lower), -np.inf)
    return least


def usual(scores: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which scores are no outliers, in the shape of the scores; at least one row, no NaN."""
    mask: NDArray[np.bool_] = scores >= fences(scores)
    return mask


def is_noisy(observations: Sequence[Observation]) -> bool:
    """Return whether the scores have noise, by the table at the head of this module."""
    if len({observation.architecture.functional_key for observation in observations}) == len(
        observations
    ):
        # No network has two evaluations: groups of a hundred thousand take three times as long as
        # their keys.
        return any(observation.seed is not None for observation in observations)

    first: dict[Replicates, Observation] = {}
    seeds_differ = False
    for observation in observations:
        other = first.setdefault(evaluation_key(observation), observation)
        if observation.score != other.score:
            return True

        seeds_differ = seeds_differ or observation.seed != other.seed

    return not seeds_differ and any(observation.seed is not None for observation in observations)


def has_replicates(observations: Sequence[Observation]) -> bool:
    """Return whether a network has two evaluations with equal hyperparameters."""
    return len({evaluation_key(observation) for observation in observations}) < len(observations)


def replicates(observations: Iterable[Observation]) -> list[list[Observation]]:
    """Return the observations grouped by network and hyperparameters, in order."""
    groups: dict[Replicates, list[Observation]] = {}
    for observation in observations:
        groups.setdefault(evaluation_key(observation), []).append(observation)

    return list(groups.values())


def replicate_rows(observations: Sequence[Observation]) -> list[list[int]]:
    """Return the positions of observations in the groups of `replicates`."""
    groups: dict[Replicates, list[int]] = {}
    for row, observation in enumerate(observations):
        groups.setdefault(evaluation_key(observation), []).append(row)

    return list(groups.values())


def evaluation_key(evaluation: Observation | Evaluation) -> Replicates:
    """Return the key of the replicates that an evaluation belongs to."""
    return replicate_key(evaluation.architecture.functional_key, evaluation.hyperparameters)

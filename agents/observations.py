"""Entries of a history: finished evaluations, pending proposals, and the results of other
studies.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from archive.architecture.graph import Architecture


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
    """One proposal that waits for a trainer or is in training;

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

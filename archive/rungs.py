"""Rungs: numbers of epochs at which the trainings of a study pause.

    rung 1 (2 epochs)    o o o o o o o o o      every proposal is trained to the first rung
    rung 2 (6 epochs)    o o o                  the best third of those continue
    rung 3 (18 epochs)   o                      the top rung is the whole training

| module                             | use                                                         |
|------------------------------------|-------------------------------------------------------------|
| `archive.searches.request`         | the rungs that a search asks for, checked against the task  |
| `archive.queue.successive_halving` | rule of promotion                                           |
| `archive.queue.promotions`         | promotions in the transaction of a result                   |
| `archive.trainer.daemon`           | trainings that pause at a rung, and continue from it        |
| `archive.agents.rungs`             | scores of partial trainings, projected to whole ones        |
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from archive.errors import UsageError

REDUCTION = 3
"""Default reduction: one of this many proposals is promoted."""

_MOST_RUNGS = 64
"""Largest number of rungs: each is at least twice as long as the one below, and no training is long
enough for more."""
_LARGEST_SHOWN = 10**9


@dataclass(frozen=True)
class LengthGain:
    """Mean gain of trainings between two lengths.

    Attributes:
        begin: Epochs of the shorter length.
        end: Epochs of the longer one.
        trainings: Number of trainings with a value at both.
        mean: Mean gain in the objective, positive where the longer training is better.
        low: Lower end of its 95 % interval; null of one training.
        high: Upper end.
    """

    begin: int
    end: int
    trainings: int
    mean: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Rungs:
    """The rungs of a study.

    Attributes:
        epochs: Increasing epoch counts at which trainings pause; the last is the whole
            protocol's.
        reduction: One of this many proposals is promoted from each rung.
    """

    epochs: tuple[int, ...]
    reduction: int = REDUCTION

    def __post_init__(self) -> None:
        """Validate the rungs."""
        increasing = list(self.epochs) == sorted(set(self.epochs))
        if len(self.epochs) < 2 or self.epochs[0] < 1 or not increasing:
            shown = ", ".join(map(str, self.epochs))
            raise UsageError(
                f"rungs must be at least two increasing numbers of epochs, got {shown}"
            )

        if self.reduction < 2:
            raise UsageError(f"the reduction of rungs must be at least 2, got {self.reduction}")

    @classmethod
    def below(cls, whole: int, epochs: Sequence[int], reduction: int = REDUCTION) -> Rungs:
        """Return rungs at these epochs and at the end of a training of `whole` epochs.

        Raises:
            UsageError: They do not increase, or reach beyond the whole.
        """
        if epochs and epochs[-1] > whole:
            raise UsageError(
                f"rungs must not reach beyond the protocol's {whole} epochs, got {epochs[-1]}"
            )

        if not epochs or epochs[-1] < whole:
            epochs = (*epochs, whole)

        return cls(tuple(epochs), reduction)

    @classmethod
    def geometric(cls, whole: int, count: int, reduction: int = REDUCTION) -> Rungs:
        """Return `count` rungs up to `whole` epochs, each `reduction` times as long as the last.

        Raises:
            UsageError: There are fewer than two, or the training is too short for this many.
        """
        if count < 2:
            raise UsageError(
                "there must be at least 2 rungs, or epochs in increasing order "
                f"such as 2,6, got {count}"
            )

        # A power with thousands of digits is not computed.
        shortest = reduction ** (count - 1) if count <= _MOST_RUNGS else math.inf
        if whole < shortest:
            needed = f"{reduction}^{count - 1}" if shortest > _LARGEST_SHOWN else str(shortest)
            smaller = "a smaller reduction, " if reduction > 2 else ""
            raise UsageError(
                f"{count} rungs, reduced by {reduction} each, need {needed} epochs, got {whole}: "
                f"choose fewer rungs, {smaller}or a protocol of more epochs"
            )

        lengths = [round(whole / reduction**below) for below in range(count)]
        return cls(tuple(reversed(lengths)), reduction)

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Rungs | None:
        """Return the rungs of a study's configuration; None for a study without rungs.

        Raises:
            UsageError: The configuration holds no valid rungs.
        """
        rungs = config.get("rungs")
        if rungs is None:
            return None

        try:
            return cls(tuple(map(int, rungs["epochs"])), int(rungs["reduction"]))
        except (TypeError, KeyError, ValueError):
            raise UsageError(
                f"the study's rungs must be epochs and a reduction, got {rungs!r}"
            ) from None

    def as_config(self) -> dict[str, Any]:
        """Return the entry `rungs` of a study's configuration."""
        return {"epochs": list(self.epochs), "reduction": self.reduction}

    def describe(self) -> str:
        """Return a description of the rungs."""
        return f"{', '.join(map(str, self.epochs))} epochs, one of {self.reduction} continues"


def epochs_of(config: Mapping[str, Any], rung: int) -> int | None:
    """Return the number of epochs up to a rung of a study; None means the whole training."""
    rungs = Rungs.of(config)
    return None if rungs is None or rung >= len(rungs.epochs) - 1 else rungs.epochs[rung]

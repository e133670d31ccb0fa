"""Scaling of a task's data: how its numbers were standardised before a network saw them.

    x = (raw - mean) / deviation        of each channel of an image, or each feature

Means and deviations are those of the training part. A standardised target y of a regression is y *
deviation + mean in the data set's own unit.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scaling:
    """Standardisation of a task's data.

    Attributes:
        mean: Mean of each channel, or each feature; one number stands for all of them.
        deviation: Standard deviation likewise.
        target: Mean and deviation of the target of a regression.
    """

    mean: tuple[float, ...]
    deviation: tuple[float, ...]
    target: tuple[float, float] | None = None

"""The contract of recipes: what `fit` returns, and the reasons for which a trial stops.

A recipe is a function of a `TrialContext` (`archive.trainer.recipes.context`). It builds or
receives the network, trains it, reports metrics once an epoch, and returns its result. It runs in a
separate process, in the main thread, and may start threads and processes: they end with the trial.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from archive.trainer.recipes.context import TrialContext


class Stop(StrEnum):
    """Reason for which a trial must stop.

    EPOCHS: all epochs of the protocol are reported. RUNG: the training pauses here, and may
    continue later from its last checkpoint. INTERRUPTED: the trainer is stopping, or the proposal
    was cancelled; save a checkpoint and return within seconds.
    """

    EPOCHS = "epochs"
    RUNG = "rung"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class FitResult:
    """Result of a recipe.

    Attributes:
        metrics: Final metrics by name, the study's objective among them. A metric that was reported
            and is missing here has its last reported value.
        weights: Trained weights by name, as tensors or arrays, to be kept; empty keeps none.
        ended: Why the training ended, where the recipe has its own rule (`patience`). Without
            it, the result of a trial that was told to stop is not a final one, and the trial is
            resumed later.
        environment: What the result may depend on besides the architecture and the protocol, as
            JSON values.
    """

    metrics: Mapping[str, float] = field(default_factory=dict)
    weights: Mapping[str, Any] = field(default_factory=dict, repr=False)
    ended: str = ""
    environment: Mapping[str, Any] = field(default_factory=dict)


Fit = Callable[["TrialContext"], "FitResult | Mapping[str, float] | None"]
"""A recipe. A mapping stands for `FitResult(metrics)`, and None for `FitResult()`."""


@dataclass(frozen=True, slots=True)
class Resources:
    """Resources of one trial.

    Attributes:
        devices: Devices in torch's notation, the first one is the default.
        threads: Number of CPU threads; None leaves it to OMP_NUM_THREADS.
        seconds: Time limit of the trial, after which it is killed; None for no limit.
        scratch_bytes: Limit of the files in the scratch folder; None for no limit.
        memory_bytes: Limit of the memory of all processes of the trial, without memory of GPUs;
            None for no limit.
    """

    devices: tuple[str, ...] = ("cpu",)
    threads: int | None = None
    seconds: float | None = None
    scratch_bytes: int | None = None
    memory_bytes: int | None = None

"""What a trial is asked for, and what it answers: all that passes between a daemon and the process of a trial.

Neither end needs torch to read it, and the daemon never loads it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archive.architecture.graph import Architecture
from archive.store.records import Result
from archive.trainer.tasks.base import Task
from archive.trainer.tasks.protocol import Protocol

if TYPE_CHECKING:
    from torch import Tensor

CHECKPOINT_SECONDS = 60.0
"""Time between two saves of a trial's state: most that a killed trial loses."""


@dataclass(frozen=True, slots=True)
class Job:
    """What a trial needs to know.

    Attributes:
        architecture: The network.
        task: What it learns.
        protocol: By which rules.
        seed: Of weights and batches.
        device: As torch names it.
        threads: Of the CPU; None leaves it to torch, which goes by OMP_NUM_THREADS.
        folder: Where the weights are saved: a folder, or an fsspec URL.
        about: What is saved with them.
        hyperparameters: What differs from the protocol (`archive.trainer.fit.hyperparameters`).
        proposal: Id of the proposal, by which its state is found again.
        resume_folder: Where states are kept (`archive.trainer.storage.checkpoints`), for all workers that may go on
        with the trial;
            None keeps none.
        checkpoint_seconds: Least time between two saves of the state.
        epochs: Train up to this epoch of the protocol's, and keep the state for whoever asks for more; None means all.
        initial: Returns the weights to start from, by the names of `Network.state_dict`. It is called in the trial's
            process, unless a state is resumed. A CheckpointError from it starts the trial from its seed.
        inherited: What goes on record of `initial`, as JSON values.
        log: File that takes what the trial prints (`archive.trainer.trial.log`); None leaves it where the daemon's
        goes.
        precision: `auto`, `float32`, `bf16` or `tf32` (`archive.trainer.fit.precision`).
    """

    architecture: Architecture
    task: Task
    protocol: Protocol
    seed: int
    device: str
    threads: int | None
    folder: Path | str
    about: dict[str, Any] = field(default_factory=dict)
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)
    proposal: str = ""
    resume_folder: Path | None = None
    checkpoint_seconds: float = CHECKPOINT_SECONDS
    epochs: int | None = None
    initial: Callable[[], Mapping[str, Tensor]] | None = None
    inherited: Mapping[str, Any] = field(default_factory=dict)
    log: Path | None = None
    precision: str = "auto"


@dataclass(frozen=True, slots=True)
class Epoch:
    """One epoch is done; `metrics` are its entries of the curve. `resumed`: it was, before the trial was resumed."""

    metrics: dict[str, float]
    resumed: bool = False


@dataclass(frozen=True, slots=True)
class Finished:
    """Training ended as it should, and the weights are on the disk."""

    result: Result


@dataclass(frozen=True, slots=True)
class Failed:
    """There is no result.

    Attributes:
        reason: Why.
        retry: Whether another attempt may fare better.
        log_tail: The last lines of the trial's log, if it has one.
    """

    reason: str
    retry: bool = False
    log_tail: str = ""


@dataclass(frozen=True, slots=True)
class Interrupted:
    """The trial left because it was asked to.

    Attributes:
        saved: Whether there is a state to go on from.
        epoch: Number of epochs that were done.
    """

    saved: bool
    epoch: int


@dataclass(frozen=True, slots=True)
class Beat:
    """Steps are being taken: a sign of life amid an epoch that takes long. It stays with `Trial`."""


Message = Epoch | Finished | Failed | Interrupted
"""What a trial says; the last is never an `Epoch`, and the only one that is not."""

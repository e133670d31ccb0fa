"""How a trainer daemon works, and what it did."""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """How a daemon works.

    Attributes:
        study: Serve this study alone; None means any.
        slots: How many trials run at a time.
        device: As torch names it, or `auto`: a GPU where there is one.
        threads: CPU threads of each trial; None goes by OMP_NUM_THREADS, else shares the cores out among the slots.
        poll_seconds: Pause between two looks for work.
        lease_seconds: How long a proposal stays this worker's without a word from it.
        stall_seconds: A trial that is silent for so long is taken to hang, and ended.
        checkpoint_seconds: Time between two saves of a trial's state, which is most that a kill loses of it.
        precision: Training precision: `auto`, `float32`, `bf16` or `tf32` (`archive.trainer.fit.precision`).
        parting_seconds: How long trials may take to save their state when the trainer is told to stop.
        wait_seconds: How long to wait for an archive that is away at the start; None means until it answers.
        scale: A table's answer takes its recorded cost times this; 0 answers at once.
        parent: Leave when the process of this id is gone.
        idle_seconds: Leave after so long without work; None means never.
        once: Leave after one trial, or when there is nothing to do.
        weights_from: Folders and fsspec URLs whose weights networks may begin with, beside the trainer's own.
        data_folders: Files of users below these may be opened for studies, beside those of
        `archive.trainer.tasks.file_access`.
        drain: Let SIGTERM and SIGINT wait for running trials; a second signal hands them back.
    """

    study: str | None = None
    slots: int = 1
    device: str = "auto"
    threads: int | None = None
    poll_seconds: float = 0.25
    lease_seconds: float = 15.0
    stall_seconds: float = 1800.0
    checkpoint_seconds: float = 60.0
    precision: str = "auto"
    parting_seconds: float = 8.0
    wait_seconds: float | None = None
    scale: float = 0.0
    parent: int | None = None
    idle_seconds: float | None = None
    once: bool = False
    drain: bool = False
    weights_from: tuple[str, ...] = ()
    data_folders: tuple[str | os.PathLike[str], ...] = ()


@dataclass
class Tally:
    """What a daemon did: trials with a result on record, without one, handed back or taken away."""

    complete: int = 0
    failed: int = 0
    returned: int = 0

    @property
    def all(self) -> int:
        """Proposals that it is done with."""
        return self.complete + self.failed + self.returned

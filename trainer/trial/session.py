"""What stands around a training: where its state is kept, and who may ask it to leave.

    training ── after each step ──> due()      seldom true: one look at the clock
             ── state ────────────> pause()    kept; a training that was asked to leave ends here

A training that nobody stands around has a `Session()`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from archive.errors import CheckpointError
from archive.trainer.storage import checkpoints
from archive.trainer.storage.checkpoints import State
from archive.trainer.trial.job import CHECKPOINT_SECONDS

log = logging.getLogger("archive.trainer")

BEAT_SECONDS = 2.0
"""Time between two signs of life amid an epoch."""

Metrics = dict[str, float]


class Left(Exception):  # noqa: N818 - internal to the process of a trial: no error, and nobody else sees it
    """The training was asked to leave, and did; `saved` says whether its state was kept."""

    def __init__(self, saved: bool, epoch: int) -> None:
        """Keep what is told of it."""
        super().__init__()
        self.saved, self.epoch = saved, epoch


class Session:
    """Keeps a training's state, and passes on what others want of it.

    Args:
        path: File of the state; None keeps none.
        checkpoint_seconds: Least time between two saves.
        on_resumed: Told, once, the entries of the curve that a resumed training begins with.
        on_beat: Called every few seconds amid the steps.

    Attributes:
        stepping: Whether steps are being taken: from then on a wish to leave is heard.
        save_seconds: How long the last save took.
    """

    def __init__(
        self,
        path: Path | None = None,
        checkpoint_seconds: float = CHECKPOINT_SECONDS,
        on_resumed: Callable[[list[Metrics]], None] | None = None,
        on_beat: Callable[[], None] | None = None,
    ) -> None:
        self.path, self.checkpoint_seconds = path, checkpoint_seconds
        self.on_resumed, self.on_beat = on_resumed, on_beat
        self.stepping = False
        self.save_seconds = 0.0
        self._leaving = threading.Event()
        self._job: Mapping[str, Any] = {}
        self._saved_at = self._beat_at = time.monotonic()

    def leave(self) -> None:
        """Ask the training to leave after the step it is in; from any thread."""
        self._leaving.set()

    def resume(self, job: Mapping[str, Any]) -> State | None:
        """Return the state to go on from, if there is one of this job.

        Args:
            job: What is trained, and how, as JSON values.
        """
        self._job = job
        try:
            return None if self.path is None else checkpoints.load(self.path, job)
        except CheckpointError as error:
            log.warning("begins anew reason=%r", error.reason)
            return None

    def start(self, curve: list[Metrics]) -> None:
        """Begin with the steps, after the epochs of a curve."""
        self.stepping = True
        self._saved_at = self._beat_at = time.monotonic()
        if curve and self.on_resumed is not None:
            self.on_resumed(curve)

    def due(self) -> bool:
        """Whether the training must pause: its state was not saved for long, or it should leave."""
        now = time.monotonic()
        if now - self._beat_at > BEAT_SECONDS:
            self._beat_at = now
            if self.on_beat is not None:
                self.on_beat()
        return self._leaving.is_set() or (self.path is not None and now - self._saved_at >= self.checkpoint_seconds)

    def pause(self, state: State, epoch: int) -> None:
        """Keep the state after so many whole epochs.

        Raises:
            Left: The training was asked to leave.
        """
        saved = self.save(state, epoch)
        if self._leaving.is_set():
            raise Left(saved, epoch)

    def save(self, state: State, epoch: int) -> bool:
        """Keep a state; False, and a line in the log, where it cannot be: that costs no result."""
        if self.path is None:
            return False
        began = time.monotonic()
        try:
            size = checkpoints.save(self.path, self._job, state)
        except CheckpointError as error:
            log.warning("state not saved reason=%r", error.reason)
            return False
        finally:
            self._saved_at = time.monotonic()
            self.save_seconds = self._saved_at - began
        log.info("state saved epoch=%d bytes=%d seconds=%.4f", epoch, size, self.save_seconds)
        return True

"""Context of a training: its checkpoints, its heartbeats and its cancellation.

    training ── after each step ──> should_pause()    seldom true; costs one look at the clock
             ── checkpoint ───────> pause()           saved; a cancelled training ends here

A bare `TrialContext()` saves nothing and is never cancelled.
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
from archive.trainer.storage.checkpoints import TrainingCheckpoint

log = logging.getLogger("archive.trainer")

CHECKPOINT_SECONDS = 60.0
"""Time between two checkpoints of a trial: the most training that a kill loses."""
HEARTBEAT_SECONDS = 2.0
"""Time between two heartbeats during an epoch."""

Metrics = dict[str, float]


class Cancelled(Exception):  # noqa: N818 - no error, and never seen outside the process of a trial
    """The training was cancelled; `saved` tells whether there is a checkpoint, `epoch` the number of whole epochs."""

    def __init__(self, saved: bool, epoch: int) -> None:
        """Keep the attributes."""
        super().__init__()
        self.saved, self.epoch = saved, epoch


class TrialContext:
    """Saves the checkpoints of a training, and cancels it.

    Args:
        path: File of the checkpoint; None saves none.
        checkpoint_seconds: Least time between two checkpoints.
        on_resumed: Receives, once, the entries of the curve that a resumed training begins with.
        on_heartbeat: Called every few seconds between steps.

    Attributes:
        stepping: Whether the steps have begun: from then on `cancel` has an effect.
        save_seconds: Duration of the last save.
    """

    def __init__(
        self,
        path: Path | None = None,
        checkpoint_seconds: float = CHECKPOINT_SECONDS,
        on_resumed: Callable[[list[Metrics]], None] | None = None,
        on_heartbeat: Callable[[], None] | None = None,
    ) -> None:
        self.path, self.checkpoint_seconds = path, checkpoint_seconds
        self.on_resumed, self.on_heartbeat = on_resumed, on_heartbeat
        self.stepping = False
        self.save_seconds = 0.0
        self._cancelled = threading.Event()
        self._identity: Mapping[str, Any] = {}
        self._saved_at = self._heartbeat_at = time.monotonic()

    def cancel(self) -> None:
        """End the training after the present step; from any thread."""
        self._cancelled.set()

    def resume(self, identity: Mapping[str, Any]) -> TrainingCheckpoint | None:
        """Return the checkpoint to resume from, if there is one of this training.

        Args:
            identity: What is trained, and how, as JSON values.
        """
        self._identity = identity
        try:
            return None if self.path is None else checkpoints.load(self.path, identity)
        except CheckpointError as error:
            log.warning("starts from scratch reason=%r", error.reason)
            return None

    def start(self, curve: list[Metrics]) -> None:
        """Begin with the steps, after the epochs of a curve."""
        self.stepping = True
        self._saved_at = self._heartbeat_at = time.monotonic()
        if curve and self.on_resumed is not None:
            self.on_resumed(curve)

    def should_pause(self) -> bool:
        """Whether the training must call `pause`: a checkpoint is due, or it was cancelled."""
        now = time.monotonic()
        if now - self._heartbeat_at > HEARTBEAT_SECONDS:
            self._heartbeat_at = now
            if self.on_heartbeat is not None:
                self.on_heartbeat()
        return self._cancelled.is_set() or (self.path is not None and now - self._saved_at >= self.checkpoint_seconds)

    def pause(self, checkpoint: TrainingCheckpoint, epoch: int) -> None:
        """Save a checkpoint after so many whole epochs.

        Raises:
            Cancelled: The training was cancelled.
        """
        saved = self.save(checkpoint, epoch)
        if self._cancelled.is_set():
            raise Cancelled(saved, epoch)

    def save(self, checkpoint: TrainingCheckpoint, epoch: int) -> bool:
        """Save a checkpoint; False, and a line in the log, if that fails, which costs no result."""
        if self.path is None:
            return False
        began = time.monotonic()
        try:
            size = checkpoints.save(self.path, self._identity, checkpoint)
        except CheckpointError as error:
            log.warning("checkpoint not saved reason=%r", error.reason)
            return False
        finally:
            self._saved_at = time.monotonic()
            self.save_seconds = self._saved_at - began
        log.info("checkpoint saved epoch=%d bytes=%d seconds=%.4f", epoch, size, self.save_seconds)
        return True

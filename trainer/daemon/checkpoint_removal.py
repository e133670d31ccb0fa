"""Removal of checkpoints that no attempt will resume; at remote locations in a thread beside the
daemon's loop.
"""

from __future__ import annotations

import queue
import threading
import time
from pathlib import Path

from archive.trainer.storage import checkpoints
from archive.trainer.storage.timeouts import ANSWER_SECONDS


class CheckpointRemoval:
    """Removes checkpoints from one location. A location that does not answer delays no lease.

    Args:
        location: A folder, or an fsspec URL.
    """

    def __init__(self, location: Path | str) -> None:
        self.location = location
        self._requests: queue.Queue[str] = queue.Queue()
        self._thread: threading.Thread | None = None

    def remove(self, proposal: str) -> None:
        """Remove the checkpoint of a proposal: at once from a folder, in the background from a
        URL.
        """
        if isinstance(self.location, Path):
            checkpoints.remove(self.location, proposal)
            return

        self._requests.put(proposal)
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._run, daemon=True, name="checkpoint removal"
            )
            self._thread.start()

    def close(self, seconds: float = ANSWER_SECONDS) -> None:
        """Wait at most so many seconds for the requested removals: a checkpoint that stays only
        costs space.
        """
        deadline = time.monotonic() + seconds
        while self._requests.unfinished_tasks and time.monotonic() < deadline:
            time.sleep(0.02)

    def _run(self) -> None:
        while True:
            checkpoints.remove(self.location, self._requests.get())
            self._requests.task_done()

"""Upload of a checkpoint while the training continues."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from archive.errors import CheckpointError
from archive.trainer.storage import checkpoints
from archive.trainer.storage.timeouts import WAIT_SECONDS

log = logging.getLogger("archive.trainer")


class Upload(threading.Thread):
    """One upload. If the process ends before, the former checkpoint stays intact.

    Args:
        uri: Address of the checkpoint.
        content: The whole file.
        on_success: Called with the seconds that it took.

    Attributes:
        succeeded: Whether the checkpoint is stored.
    """

    def __init__(self, uri: str, content: bytes, on_success: Callable[[float], None]) -> None:
        """Prepare the thread."""
        super().__init__(daemon=True, name="upload")
        self.succeeded = False
        self._uri = uri
        self._content = content
        self._on_success = on_success

    def run(self) -> None:
        """Write the file."""
        began = time.monotonic()
        try:
            checkpoints.write(self._uri, self._content)
        except CheckpointError as error:
            log.warning("checkpoint not saved reason=%r", error.reason)
            return
        finally:
            self._content = b""

        self.succeeded = True
        self._on_success(time.monotonic() - began)

    def wait(self, seconds: float, on_wait: Callable[[], object]) -> bool:
        """Wait for the end, and return whether it came in time.

        Args:
            seconds: Longest wait.
            on_wait: Called at intervals meanwhile.
        """
        deadline = time.monotonic() + seconds
        while self.is_alive() and (left := deadline - time.monotonic()) > 0:
            self.join(min(left, WAIT_SECONDS))
            on_wait()

        return not self.is_alive()

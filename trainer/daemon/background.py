"""Work beside the daemon's loop, in which claims, reports and results would wait for it."""

from __future__ import annotations

import threading
from collections.abc import Callable


def in_background(work: Callable[[], object], name: str) -> None:
    """Do work in a thread of its own, which does not delay the end of the process.

    Args:
        work: A function that may end half done.
        name: Name of the thread.
    """
    try:
        threading.Thread(target=work, daemon=True, name=name).start()
    except RuntimeError:  # The system starts no further thread.
        work()

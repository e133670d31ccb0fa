"""Work in the background: slow tasks that would otherwise delay claims, reports and results in the
daemon's loop.
"""

from __future__ import annotations

import threading
from collections.abc import Callable


def in_background(work: Callable[[], object], name: str) -> None:
    """Do work in a separate thread, which does not delay the end of the process.

    Args:
        work: A function; it may be cut off at any point when the process ends.
        name: Name of the thread.
    """
    try:
        threading.Thread(target=work, daemon=True, name=name).start()
    except RuntimeError:  # The system starts no further thread.
        work()

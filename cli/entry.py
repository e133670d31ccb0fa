"""The console script: Ctrl-C ends the process quietly while modules load, which may take a second."""

from __future__ import annotations

import os
import signal
from types import FrameType

INTERRUPTED = "interrupted: finished results are kept; the same command continues"


def main() -> None:
    """Load and run the command line."""
    # A shell may have started the process in the background, where Ctrl-C is ignored.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)
    from archive.cli.main import main as run

    run()


def loaded() -> None:
    """Let Ctrl-C raise KeyboardInterrupt from here on: a command that has been loaded may have to clean up."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(number: int, frame: FrameType | None) -> None:
    """End the process: an exception would be lost in callbacks of the import system, or become a RuntimeError."""
    try:
        os.write(2, f"{INTERRUPTED}\n".encode())
    finally:
        os._exit(128 + number)

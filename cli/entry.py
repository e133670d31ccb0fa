"""The console script: signals end the process quietly while modules load, and interrupt a command
that runs.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from archive.searches.interruption import InterruptedBySignal

INTERRUPTED = "interrupted: finished results are kept; the same command continues"


def main() -> None:
    """Load and run the command line."""
    # A shell may have started the process in the background, where Ctrl-C is ignored.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)

    from archive.cli.main import main as run

    run()


def loaded() -> None:
    """Let Ctrl-C raise KeyboardInterrupt from here on: a command that has been loaded may have to
    clean up.
    """
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP interrupt the block as Ctrl-C does, so that it ends its servers and
    removes its folders.

    A signal that the process ignores, as SIGHUP after `nohup`, stays ignored.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    replaced = [
        number
        for number in (signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(number) is signal.SIG_DFL
    ]
    owner = os.getpid()

    def interrupt(number: int, frame: FrameType | None) -> None:
        if os.getpid() != owner:
            # A forked child ends as if nothing had been installed.
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            return

        raise InterruptedBySignal(number)

    for number in replaced:
        signal.signal(number, interrupt)

    try:
        yield
    finally:
        for number in replaced:
            if signal.getsignal(number) is interrupt:
                signal.signal(number, signal.SIG_DFL)


def _end(number: int, frame: FrameType | None) -> None:
    """End the process: an exception would be lost in callbacks of the import system, or become a
    RuntimeError.
    """
    try:
        os.write(2, f"{INTERRUPTED}\n".encode())
    finally:
        os._exit(128 + number)

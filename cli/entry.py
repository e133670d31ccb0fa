"""The console script: signals and garbage collection at the start, streams that are not UTF-8."""

from __future__ import annotations

import atexit
import codecs
import gc
import io
import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from archive.searches.interruption import InterruptedBySignal

INTERRUPTED = "interrupted: finished results are kept; the same command continues"


GARBAGE = 10_000
"""Number of new objects after which young ones are collected, where Python's default is 700."""

ERRORS = "archive.plain"
"""Name of the error handler for a stream that is not UTF-8: it writes ASCII in place of signs."""

_PLAIN = {
    **dict(zip("─━│┃┤├┴┬┼╇", "--||++++++", strict=True)),
    **dict(zip("╯╰└╮╭┌", "'''...", strict=True)),
    **dict(zip("●○◆", "*o@", strict=True)),
    **dict(zip("−–—·×’", "----x'", strict=True)),
    **dict(zip("…→←≤≥±", ("...", "->", "<-", "<=", ">=", "+-"), strict=True)),
}


def main() -> None:
    """Load and run the command line."""
    # A shell may have started the process in the background, where Ctrl-C is ignored.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _exit_at_signal)

    collect_later()
    from archive.cli.main import main as run

    run()


def collect_later() -> None:
    """Collect no garbage until a command is loaded, and none at the end of the process.

    Modules make none while they load, and what is left at the end need not be freed.
    """
    gc.disable()
    atexit.register(_leave_garbage)


def _leave_garbage() -> None:
    # The bindings of triton, which torch loads, print each object that is left as a leak.
    if "triton" not in sys.modules:
        gc.freeze()


def begin_command() -> None:
    """Collect garbage again, and let Ctrl-C raise KeyboardInterrupt: commands clean up."""
    gc.enable()
    # Commands import more as they run; most end long before a collection would free anything.
    gc.set_threshold(GARBAGE)
    if signal.getsignal(signal.SIGINT) is _exit_at_signal:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP interrupt the block as Ctrl-C does, so that it cleans up.

    A signal that the process ignores, as SIGHUP after `nohup`, stays ignored.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    replaced = []
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            replaced.append(number)

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


def _exit_at_signal(number: int, frame: FrameType | None) -> None:
    """End the process: the import system would lose an exception, or change its type."""
    try:
        os.write(2, f"{INTERRUPTED}\n".encode())
    finally:
        os._exit(128 + number)


def tolerate_other_encodings() -> None:
    """Let stdout replace what its encoding lacks instead of failing, as stderr does."""
    out = sys.stdout
    if isinstance(out, io.TextIOWrapper) and codecs.lookup(out.encoding).name != "utf-8":
        codecs.register_error(ERRORS, _replacement)
        out.reconfigure(errors=ERRORS)


def _replacement(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error

    replacement = ""
    for letter in error.object[error.start : error.end]:
        replacement += _PLAIN.get(letter) or json.dumps(letter)[1:-1]

    return replacement, error.end

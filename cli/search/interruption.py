"""Ctrl-C, SIGTERM and SIGHUP, deferred to a moment at which no database call is half done."""

from __future__ import annotations

import signal
import threading
from contextlib import suppress
from types import FrameType, TracebackType

from archive.cli.entry import InterruptedBySignal as InterruptedBySignal
from archive.cli.render import print_message

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C, the end that a job manager asks for, and the end of the terminal."""


class Interruption:
    """A block in which a first Ctrl-C, SIGTERM or SIGHUP is remembered until `check`; a second one interrupts at once.

    An exception within a call of the database driver would leave the connection in a state in which the next calls
    fail.

    Args:
        message: Shown when the first signal arrives; None shows nothing.
    """

    def __init__(self, message: str | None = "stopping: trainers return unfinished proposals …") -> None:
        self.message = message
        self._asked = threading.Event()
        self._signal: int = signal.SIGINT
        self._before: dict[int, object] = {}

    def __enter__(self) -> Interruption:
        """Install the handlers of the signals; SIGHUP stays ignored where `nohup` has it ignored."""
        for number in SIGNALS:
            if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._ask)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Restore the handlers of the signals."""
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def wait(self, seconds: float) -> None:
        """Sleep, at most until a signal arrives."""
        self._asked.wait(seconds)

    def check(self) -> None:
        """Raise the interruption that a signal asked for, if one has arrived.

        Raises:
            InterruptedBySignal: A signal has arrived.
        """
        if self._asked.is_set():
            raise InterruptedBySignal(self._signal)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self._asked.is_set():
            raise InterruptedBySignal(number)
        self._signal = number
        self._asked.set()
        if self.message is not None:
            # The terminal may be gone with the signal.
            with suppress(OSError):
                print_message(self.message)


def caused(error: BaseException) -> KeyboardInterrupt | None:
    """Return the interruption during which an error arose; None if there was none."""
    context = error.__context__
    if context is None or isinstance(context, KeyboardInterrupt):
        return context
    return caused(context)

"""Ctrl-C, SIGTERM and SIGHUP, deferred to a moment at which no database call is half done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from types import FrameType, TracebackType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C, the end that a job manager asks for, and the end of the terminal."""


class InterruptedBySignal(KeyboardInterrupt):
    """An interruption by a signal.

    Attributes:
        signal: Number of the signal.
        message: What the interruption leaves, where it is not what most commands leave; empty
            otherwise.
    """

    def __init__(self, signal: int, message: str = "") -> None:
        super().__init__()
        self.signal = signal
        self.message = message


class Interruption:
    """A block in which a first signal is remembered until `check`; a second one interrupts.

    An exception within a call of the database driver would leave the connection in a state in which
    the next calls fail.

    In another thread than the main one, signals have no handlers, and the block changes nothing.

    Args:
        notify: Called when the first signal arrives; None calls nothing.
    """

    def __init__(self, notify: Callable[[], object] | None = None) -> None:
        self._notify = notify
        self._asked = threading.Event()
        self._signal: int = signal.SIGINT
        self._before: dict[int, object] = {}

    def __enter__(self) -> Interruption:
        """Install the handlers of the signals.

        SIGHUP stays ignored where `nohup` has it ignored.
        """
        if threading.current_thread() is not threading.main_thread():
            return self

        for number in SIGNALS:
            if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._ask)

        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
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
        if self._notify is not None:
            # The terminal may be gone with the signal.
            with suppress(OSError):
                self._notify()


def caused(error: BaseException) -> KeyboardInterrupt | None:
    """Return the interruption during which an error arose; None if there was none."""
    context = error.__context__
    if context is None or isinstance(context, KeyboardInterrupt):
        return context

    return caused(context)

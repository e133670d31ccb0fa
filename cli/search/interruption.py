"""Ctrl-C and SIGTERM, taken at a moment when nothing is half done."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType

from archive.cli.render import print_message


class Interrupted(KeyboardInterrupt):
    """An interruption by a signal.

    Attributes:
        signal: Its number.
    """

    def __init__(self, signal: int) -> None:
        super().__init__()
        self.signal = signal


class Interruption:
    """Within its block, a first Ctrl-C or SIGTERM is remembered; a second one interrupts at once.

    An exception in the middle of a call of the database driver would leave its connection in a state that the
    following calls stumble over.

    Args:
        message: What is said when it is asked for.
    """

    def __init__(self, message: str = "stopping: trainers hand back what they have not finished …") -> None:
        self.message = message
        self._asked = threading.Event()
        self._signal: int = signal.SIGINT
        self._before: dict[int, object] = {}

    def __enter__(self) -> Interruption:
        """Take the signals over."""
        self._before = {number: signal.signal(number, self._ask) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give the signals back."""
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def wait(self, seconds: float) -> None:
        """Sleep, unless and until an interruption is asked for."""
        self._asked.wait(seconds)

    def check(self) -> None:
        """Raise the interruption that was asked for, if one was.

        Raises:
            Interrupted: One was.
        """
        if self._asked.is_set():
            raise Interrupted(self._signal)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self._asked.is_set():
            raise Interrupted(number)
        self._signal = number
        self._asked.set()
        print_message(self.message)


def caused(error: BaseException) -> KeyboardInterrupt | None:
    """Return the interruption that was on its way when an error came up; None where there was none."""
    context = error.__context__
    if context is None or isinstance(context, KeyboardInterrupt):
        return context
    return caused(context)

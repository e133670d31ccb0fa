"""Ctrl-C and SIGTERM, taken at a moment when nothing is half done."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType

from archive.cli.render import print_message


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
            KeyboardInterrupt: One was.
        """
        if self._asked.is_set():
            raise KeyboardInterrupt

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self._asked.is_set():
            raise KeyboardInterrupt
        self._asked.set()
        print_message(self.message)


def caused(error: BaseException) -> bool:
    """Return whether an error came up while an interruption was on its way."""
    context = error.__context__
    return context is not None and (isinstance(context, KeyboardInterrupt) or caused(context))

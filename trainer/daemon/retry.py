"""Waiting for an archive that is away when a trainer starts; `archive.trainer.daemon.store_client` does so later.

    ask ──> answer                          most often, at once
     └──> away ── pause ──> ask ──> …       said at first, and every minute; until it answers, time is up, or a stop

What is wrong with the login, the name of the database or the release is no outage, and said at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from archive.errors import StoreUnavailableError

T = TypeVar("T")

PAUSE = 2.0
"""Seconds between two questions."""
SAY_SECONDS = 60.0
"""Seconds between two lines about one outage."""


def until_it_answers(
    ask: Callable[[], T],
    seconds: float | None,
    say: Callable[[str], None],
    stopped: Callable[[], bool] = lambda: False,
) -> T | None:
    """Ask the archive until it answers, and return the answer; None if told to stop before.

    Args:
        ask: Asks; it may be called many times.
        seconds: Most that is waited; None waits without an end, 0 asks once.
        say: Is told, in one line, what is waited for.
        stopped: Whether to wait no longer.

    Raises:
        StoreUnavailableError: Time is up; the last reason.
        ArchiveError: Whatever else `ask` raises.
    """
    began = time.monotonic()
    said: float | None = None
    while not stopped():
        try:
            return ask()
        except StoreUnavailableError as error:
            waited = time.monotonic() - began
            if seconds is not None and waited + PAUSE > seconds:
                raise
            if said is None or waited - said > SAY_SECONDS:
                end = "until it answers" if seconds is None else f"for {seconds - waited:.0f} s"
                say(f"waiting {end}: {error}")
                said = waited
        _sleep(PAUSE, stopped)
    return None


def _sleep(seconds: float, stopped: Callable[[], bool]) -> None:
    until = time.monotonic() + seconds
    while not stopped() and (left := until - time.monotonic()) > 0:
        time.sleep(min(left, 0.1))

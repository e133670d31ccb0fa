"""Idle actors: each waits for the next trial, and may still delete the files of the last one."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

IDLE_SECONDS = 30.0
"""Time after which an actor without a trial is ended, so that the cluster can shrink."""


class _IdleActor(NamedTuple):
    """An actor without a trial.

    Attributes:
        actor: The actor.
        deletion: Reference of its answer when the files of the last trial are deleted.
        since: Time of the trial's end, by `time.monotonic`.
    """

    actor: Any
    deletion: Any
    since: float


class IdleActors:
    """The idle actors of one daemon."""

    def __init__(self) -> None:
        self._actors: list[_IdleActor] = []

    def add(self, actor: Any, deletion: Any) -> None:
        """Add an actor, with the reference of its last answer."""
        self._actors.append(_IdleActor(actor, deletion, time.monotonic()))

    def take(self) -> Any | None:
        """Return the actor that was added last, which is idle no more; None if there is none."""
        return self._actors.pop().actor if self._actors else None

    def discard_old(self) -> None:
        """End the actors that have been idle for long and have nothing to delete."""
        import ray

        latest = time.monotonic() - IDLE_SECONDS
        old = [
            each
            for each in self._actors
            if each.since < latest and ray.wait([each.deletion], timeout=0)[0]
        ]
        self._actors = [each for each in self._actors if not any(each is one for one in old)]
        for each in old:
            discard(each.actor)

    def discard_all(self, seconds: float) -> None:
        """End all actors.

        Args:
            seconds: Longest wait for their deletions.
        """
        import ray

        if self._actors:
            ray.wait(
                [each.deletion for each in self._actors],
                num_returns=len(self._actors),
                timeout=seconds,
            )

        while self._actors:
            discard(self._actors.pop().actor)


def discard(actor: Any) -> None:
    """End an actor, with a trial that it runs."""
    import ray

    ray.kill(actor, no_restart=True)

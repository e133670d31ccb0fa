"""All processes of a trial: what a recipe starts ends with its trial, however it was started.

    trial ── lead_session, adopt ──> leader of a session of its own; orphans of its descendants
    become its children
          ── offer_memory ─────────> where memory runs out, the kernel ends the largest trial rather
          than the daemon
    end_all ── stop, until nobody new appears ── kill ──> the trial, its descendants, the session,
    its late orphans

A process may leave its parents by forking twice, and its session by `setsid`. On Linux, the kernel
then gives it to the nearest ancestor that adopts: the trial, or the fork server once the trial is
gone. Elsewhere such processes escape; descendants and members of the session do not.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import NamedTuple

import psutil

_SET_CHILD_SUBREAPER = 36
"""`PR_SET_CHILD_SUBREAPER` of prctl(2)."""
_ROUNDS = 100
"""Looks for new processes while they are stopped: a fork bomb needs several."""


class ProcessRow(NamedTuple):
    """A process with its parent and the leader of its session."""

    pid: int
    parent: int
    session: int


def adopt() -> None:
    """Make this process the parent of its descendants' orphans, where the system can."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def lead_session() -> None:
    """Make this process the leader of a session of its own."""
    with contextlib.suppress(OSError):  # It is one already.
        os.setsid()


def offer_memory() -> None:
    """Let the system end this process and all that it will start first where memory runs out,
    before any other.
    """
    with contextlib.suppress(OSError):  # Not Linux.
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def members(trial: int) -> set[int]:
    """Return the processes of a running trial: its own, the members of its session, and all their
    descendants.
    """
    rows = list(_processes())
    return _descendants(rows, _own(rows, trial, lives=True))


def end_all(trial: int, lives: bool, server: int, living: Collection[int]) -> None:
    """Kill the process of a trial, if it lives, and all that it has started.

    Args:
        trial: Id of the process.
        lives: Whether this process has the id; another one may have it by now.
        server: Id of the fork server, which adopts the orphans of dead trials.
        living: Ids of the trials whose processes must live on.
    """

    def members(rows: Collection[ProcessRow]) -> set[int]:
        return _descendants(rows, _own(rows, trial, lives) | _orphans(rows, server, living))

    _kill(members, {os.getpid(), server, *living})


def end_children() -> None:
    """Kill all that this process, the leader of its session, has started."""
    own = os.getpid()
    _kill(lambda rows: _descendants(rows, _own(rows, own, lives=True)), {own})


def _kill(members: Callable[[Collection[ProcessRow]], set[int]], spared: set[int]) -> None:
    stopped: set[int] = set()
    for _ in range(_ROUNDS):
        new = members(list(_processes())) - stopped - spared
        if not new:
            break

        for pid in new:
            _send(pid, signal.SIGSTOP)

        stopped |= new

    for pid in stopped:
        _send(pid, signal.SIGKILL)


def _own(rows: Collection[ProcessRow], trial: int, lives: bool) -> set[int]:
    """Return the process of a trial, if it lives, and the members of its session."""
    if not lives and any(row.pid == trial for row in rows):
        # The system gives an id away again only when its session has no members.
        return set()

    return {trial, *(row.pid for row in rows if row.session == trial)}


def _orphans(rows: Collection[ProcessRow], server: int, living: Collection[int]) -> set[int]:
    """Return the children of the fork server that came from trials: each of these left the server's
    session.
    """
    own = next((row.session for row in rows if row.pid == server), None)
    if own is None:
        return set()

    return {
        row.pid
        for row in rows
        if row.parent == server and row.session != own and row.pid not in living
    }


def _descendants(rows: Collection[ProcessRow], roots: set[int]) -> set[int]:
    """Return the roots that exist, with all their descendants."""
    children: dict[int, list[int]] = {}
    for row in rows:
        children.setdefault(row.parent, []).append(row.pid)

    reached = {row.pid for row in rows} & roots
    waiting = list(roots)
    while waiting:
        for child in children.get(waiting.pop(), ()):
            if child not in reached:
                reached.add(child)
                waiting.append(child)

    return reached


def _send(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(OSError):  # It is gone.
        os.kill(pid, number)


def _processes() -> Iterator[ProcessRow]:
    if sys.platform != "linux":
        for process in psutil.process_iter(["ppid"]):
            with contextlib.suppress(OSError):
                yield ProcessRow(process.pid, process.info["ppid"] or 0, os.getsid(process.pid))

        return

    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                # PID (NAME) STATE PARENT GROUP SESSION: the name may hold any character.
                fields = Path("/proc", entry, "stat").read_bytes().rpartition(b")")[2].split()
                yield ProcessRow(int(entry), int(fields[1]), int(fields[3]))

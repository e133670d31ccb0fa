"""All processes of a trial: what a recipe starts ends with its trial, however it was started.

    separate    leads a session; adopts its descendants' orphans; where memory runs out, the kernel
                ends the largest trial rather than the daemon
    end_all     stops the trial, its descendants, its session and its late orphans until no further
                process appears, and kills them

A process may leave its parents by forking twice, and its session by `setsid`. On Linux, the kernel
then gives it to the nearest ancestor that adopts: the trial, or the fork server once the trial is
gone. Elsewhere such processes escape; descendants and members of the session do not.
"""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Collection, Iterator
from multiprocessing.connection import Connection, wait
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
    """Make this process the leader of a new session."""
    with contextlib.suppress(OSError):  # It is one already.
        os.setsid()


def offer_memory() -> None:
    """Let the system end this process and its children before any other if memory runs out."""
    with contextlib.suppress(OSError):  # Not Linux.
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def end_with_parent() -> None:
    """End this process as soon as its parent has ended, however that ends."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_await, args=(parent.sentinel,), daemon=True).start()


def _await(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)


def separate(daemon: Connection) -> None:
    """Make this process and its children independent of the terminal and of other trials."""
    lead_session()
    adopt()
    offer_memory()
    # Ctrl-C, or a service manager's signal, may reach all processes; the daemon decides how its
    # trials end. Functions, because a program that the recipe starts would inherit ignored signals.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)

    # A pool of multiprocessing ends its processes by SIGTERM, and waits for them.
    os.register_at_fork(after_in_child=_end_on_request)
    os.set_inheritable(daemon.fileno(), False)
    # A recipe may start processes, such as the workers of a data loader. multiprocessing forbids
    # that in daemonic processes; trials are daemonic, or the daemon would wait for them at its end.
    multiprocessing.current_process()._config["daemon"] = False  # type: ignore[attr-defined]


def _end_on_request() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def members(trial: int) -> set[int]:
    """Return the processes of a running trial: its session, and all descendants."""
    rows = list(_processes())
    return _descendants(rows, _session(rows, trial, lives=True))


def end_all(trial: int, lives: bool, server: int, living: Collection[int]) -> None:
    """Kill the process of a trial, if it lives, and all that it has started.

    Args:
        trial: Id of the process.
        lives: Whether this process has the id; another one may have it by now.
        server: Id of the fork server, which adopts the orphans of dead trials.
        living: Ids of the trials that continue.
    """

    def members(rows: Collection[ProcessRow]) -> set[int]:
        return _descendants(rows, _session(rows, trial, lives) | _orphans(rows, server, living))

    _kill(members, {os.getpid(), server, *living})


def end_children() -> None:
    """Kill all that this process, the leader of its session, has started."""
    leader = os.getpid()
    _kill(lambda rows: _descendants(rows, _session(rows, leader, lives=True)), {leader})


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


def _session(rows: Collection[ProcessRow], trial: int, lives: bool) -> set[int]:
    """Return the process of a trial, if it lives, and the members of its session."""
    if not lives and any(row.pid == trial for row in rows):
        # The system gives an id away again only when its session has no members.
        return set()

    return {trial, *(row.pid for row in rows if row.session == trial)}


def _orphans(rows: Collection[ProcessRow], server: int, living: Collection[int]) -> set[int]:
    """Return the fork server's adopted children: only they are outside of its session."""
    sessions = {row.pid: row.session for row in rows}
    if server not in sessions:
        return set()

    orphans: set[int] = set()
    for row in rows:
        if row.parent == server and row.session != sessions[server] and row.pid not in living:
            orphans.add(row.pid)

    return orphans


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

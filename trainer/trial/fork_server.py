"""Processes that a daemon starts: forked from a server that has imported torch, and told no more than they need.

    start(target, argument) ──> fork server ── fork ──> target(argument, pipe)

The login of the database stays with the daemon: trials run tasks of other packages, and never ask the database. The
fork server is started without it, so that no environment of a trial has it, not even the one that the system shows
(`/proc/PID/environ`).
"""

from __future__ import annotations

import io
import multiprocessing
import os
import pickle
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import forkserver, spawn
from multiprocessing.connection import Connection
from typing import Any

from archive.errors import TrainingError
from archive.settings import LOGIN

_PRELOADED = ["archive.trainer.trial.fork_server_preload"]
_SPINS = "1000"


def start(target: Callable[[Any, Connection], None], argument: Any) -> tuple[Connection, Any]:
    """Run a function in a process of its own, and return the pipe to it, and the process.

    Args:
        target: Called with the argument and its end of the pipe.
        argument: Pickled, and unpickled in the new process.

    Raises:
        TrainingError: No process could be started.
        pickle.PicklingError: The argument cannot be taken there.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    # Threads that wait for each other spin before they sleep. On a core that another process wants, too, they spin away
    # its time: on a busy machine of two cores a trial took fifteen times as long. GNU's OpenMP reads this once.
    os.environ.setdefault("GOMP_SPINCOUNT", _SPINS)
    content = _pickled(argument)
    ours, theirs = context.Pipe()
    process = context.Process(target=_enter, args=(target, content, theirs), daemon=True)
    try:
        with _without_login():
            forkserver.ensure_running()
        with _without_main_module():
            process.start()
    except (OSError, EOFError) as error:
        ours.close()
        raise TrainingError(f"no process could be started for the trial: {error}") from error
    finally:
        theirs.close()
    return ours, process


_environment = threading.Lock()


@contextmanager
def _without_login() -> Iterator[None]:
    """Take the login out of this process's environment for a moment."""
    with _environment:
        held = {name: os.environ.pop(name) for name in LOGIN if name in os.environ}
        try:
            yield
        finally:
            os.environ.update(held)


_starting = threading.local()
_preparation = spawn.get_preparation_data


def _told(name: str) -> dict[str, Any]:
    """Return what a new process is told of this one: to a process that is started here, nothing of `__main__`."""
    data: dict[str, Any] = _preparation(name)
    if getattr(_starting, "here", False):
        data.pop("init_main_from_name", None)
        data.pop("init_main_from_path", None)
    return data


spawn.get_preparation_data = _told


@contextmanager
def _without_main_module() -> Iterator[None]:
    """Keep the new process from importing `__main__`: the whole command line, or a user's script once more.

    By thread: another thread may start a process of the user's own meanwhile, or look at `__main__`.
    """
    _starting.here = True
    try:
        yield
    finally:
        _starting.here = False


class _Pickler(pickle.Pickler):
    """Refuses what only `__main__` has, which the new process does not import."""

    def reducer_override(self, value: Any) -> Any:
        if callable(value) and getattr(value, "__module__", None) == "__main__" and hasattr(value, "__qualname__"):
            raise pickle.PicklingError(f"{value.__qualname__} is of the script itself: put it into a module")
        return NotImplemented


def _pickled(argument: Any) -> bytes:
    buffer = io.BytesIO()
    _Pickler(buffer, pickle.HIGHEST_PROTOCOL).dump(argument)
    return buffer.getvalue()


# What follows runs in a process of its own.


def _enter(target: Callable[[Any, Connection], None], content: bytes, daemon: Connection) -> None:
    # The server may have been started by other code of the daemon's process, with all of its environment. Unpickling
    # imports the task's package.
    for name in LOGIN:
        os.environ.pop(name, None)
    target(pickle.loads(content), daemon)

"""The fork server of a daemon: new processes with torch loaded, without the database login.

    start(target, argument) ──> fork server ── fork ──> target(argument, pipe)

Trials run tasks of other packages and never query the database, so they do not receive its login.
The fork server itself starts without the login, which therefore appears in no environment of a
trial, not even in the one that the system shows (`/proc/PID/environ`).
"""

from __future__ import annotations

import io
import multiprocessing
import os
import pickle
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import forkserver, spawn, util
from multiprocessing.connection import Connection
from typing import Any

from archive.errors import TrainingError
from archive.settings import LOGIN

_PRELOADED = ["archive.trainer.trial.fork_server_preload"]
_SPINS = "1000"
_ENV = os.fsencode(shutil.which("env") or "/usr/bin/env")


def start(target: Callable[[Any, Connection], None], argument: Any) -> tuple[Connection, Any]:
    """Run a function in a separate process, and return the pipe to the process, and the process.

    Args:
        target: Function; receives the argument and the child's end of the pipe.
        argument: Pickled, and unpickled in the new process.

    Raises:
        TrainingError: No process could be started.
        pickle.PicklingError: The argument cannot be pickled.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    # Waiting threads spin before they sleep, and take the time of other processes on the same core:
    # on a busy machine of two cores a trial took fifteen times as long. GNU's OpenMP reads this
    # once.
    os.environ.setdefault("GOMP_SPINCOUNT", _SPINS)
    content = pickle_argument(argument)
    ours, theirs = context.Pipe()
    process = context.Process(target=_enter, args=(target, content, theirs), daemon=True)
    try:
        with _separately():
            forkserver.ensure_running()
            process.start()
    except (OSError, EOFError) as error:
        ours.close()
        raise TrainingError(f"no process could be started for the trial: {error}") from error
    finally:
        theirs.close()

    return ours, process


def pid() -> int:
    """Return the id of the fork server; 0 where none has started."""
    return getattr(forkserver._forkserver, "_forkserver_pid", None) or 0


_starting = threading.local()
_preparation = spawn.get_preparation_data


def _preparation_data(name: str) -> dict[str, Any]:
    """Return multiprocessing's data for a new process, without `__main__` in `start`."""
    data: dict[str, Any] = _preparation(name)
    if getattr(_starting, "here", False):
        data.pop("init_main_from_name", None)
        data.pop("init_main_from_path", None)

    return data


spawn.get_preparation_data = _preparation_data

_spawn = util.spawnv_passfds


def _spawn_without_login(path: bytes, args: Sequence[Any], passfds: Sequence[int]) -> int:
    """Start a program as multiprocessing does, in `start` without the login.

    The environment of this process stays as it is: other threads may read the login meanwhile.
    """
    if getattr(_starting, "here", False):
        command: list[Any] = [_ENV]
        for name in LOGIN:
            command += ["-u", name]

        return _spawn(_ENV, [*command, path, *args[1:]], passfds)

    return _spawn(path, args, passfds)


util.spawnv_passfds = _spawn_without_login


@contextmanager
def _separately() -> Iterator[None]:
    """Keep new processes from the login, and from `__main__`: a command line, or a user's script.

    The flag is per thread: another thread may start a process of the user's own meanwhile, or use
    `__main__`.
    """
    _starting.here = True
    try:
        yield
    finally:
        _starting.here = False


class _Pickler(pickle.Pickler):
    """Refuses functions and classes of `__main__`, which the new process does not import."""

    def reducer_override(self, value: Any) -> Any:
        if (
            callable(value)
            and getattr(value, "__module__", None) == "__main__"
            and hasattr(value, "__qualname__")
        ):
            raise pickle.PicklingError(
                f"{value.__qualname__} is defined in the script itself: put it into a module"
            )

        return NotImplemented


def pickle_argument(argument: Any) -> bytes:
    """Return an argument as bytes.

    Raises:
        pickle.PicklingError: It cannot be pickled.
    """
    buffer = io.BytesIO()
    _Pickler(buffer, pickle.HIGHEST_PROTOCOL).dump(argument)
    return buffer.getvalue()


# The function below runs in a separate process.


def _enter(target: Callable[[Any, Connection], None], content: bytes, daemon: Connection) -> None:
    # Other code of the daemon's process may have started the server with its whole environment. The
    # login must go before the argument is unpickled, which imports the task's package.
    for name in LOGIN:
        os.environ.pop(name, None)

    target(pickle.loads(content), daemon)

"""Processes of the embedded server: spawn a supervisor, wait for it, reap it, explain its failure.

Internal to `archive.server`; callers use `archive.server.embedded`.

The words about the death of a database process are in `ServerRun.error`, beside the state of the
process that replaced the dead one.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shlex
import socket
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from archive.errors import ArchiveError, ServerStartError, SettingsError
from archive.files import closing, try_lock
from archive.server.access import too_few_files
from archive.server.run_file import SUPERVISOR, Folder, ServerRun, read_run
from archive.settings import Settings

POLL_SECONDS = 0.02

_spawned: set[int] = set()  # supervisors started by this process, to be reaped when they end


def spawn(folder: Folder, settings: Settings) -> int:
    """Start a supervisor in a separate session, and return its process id.

    No signal of a terminal reaches this session.
    """
    package = Path(__file__).resolve().parents[2]
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("ARCHIVE_")
    }
    paths = [str(package), *filter(None, [environment.get("PYTHONPATH")])]
    environment["PYTHONPATH"] = os.pathsep.join(paths)
    command = [sys.executable, "-P", "-m", SUPERVISOR]
    command += [str(folder.home), str(settings.heap_mb), str(settings.idle_seconds)]
    command.append(f"{settings.dump_seconds},{settings.dumps_kept},{settings.dumps_share}")
    command += shlex.split(settings.java_options)
    console = os.open(folder.console, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    with closing(console):
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, console, 1),
            (os.POSIX_SPAWN_DUP2, console, 2),
        ]
        pid = os.posix_spawn(
            sys.executable, command, environment, file_actions=actions, setsid=True
        )

    _spawned.add(pid)
    return pid


@contextlib.contextmanager
def turn_to_start(folder: Folder, deadline: float) -> Iterator[None]:
    """Hold the start lock, so that one of several concurrent clients starts a supervisor."""
    while (lock := try_lock(folder.start_lock)) is None:
        if past(deadline):
            raise ServerStartError(
                failure(
                    folder,
                    f"another process has been starting the server over {folder.home} for too long",
                )
            )

        time.sleep(POLL_SECONDS)

    with closing(lock):
        yield


@contextlib.contextmanager
def clear_errors(folder: Folder) -> Iterator[None]:
    """Turn errors of the file system into errors that name the problem and the remedy."""
    try:
        yield
    except ArchiveError:
        raise
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise ServerStartError(
                f"the disk that holds {folder.home} is full: free some space, try again"
            ) from None

        if error.errno in (errno.EMFILE, errno.ENFILE):
            raise ServerStartError(too_few_files()) from None

        raise SettingsError(
            f"cannot write to the archive's folder {folder.home}: {error.strerror or error}; "
            "set ARCHIVE_HOME to a folder of your own"
        ) from None


def failure(folder: Folder, message: str) -> str:
    """Return the message with the recorded reason, or the last lines of the log, as one line."""
    run = read_run(folder)
    reason = run.error if run is not None and run.state == "failed" else ""
    if not reason:
        with contextlib.suppress(OSError):
            reason = folder.console.read_text(encoding="utf-8", errors="replace")

    lines = [line.strip() for line in reason.splitlines() if line.strip()]
    return f"{message} (log: {folder.log})" + (f": {'; '.join(lines[-8:])}" if lines else "")


def whereabouts(run: ServerRun | None) -> str:
    """Return the end of a message about a folder in use: the machine, if it is another one."""
    if run is not None and runs_elsewhere(run):
        return f": it is in use on the machine {run.host}, and this is {socket.gethostname()}"

    return ""


def runs_elsewhere(run: ServerRun) -> bool:
    """Whether the server of a locked folder is on another machine.

    The folder is then on a shared file system.
    """
    return run.state in ("starting", "ready") and run.host not in ("", socket.gethostname())


def end_orphan(run: ServerRun | None) -> None:
    """Kill a database that outlived its supervisor. On Linux the kernel does this."""
    if run is None or not run.java or run.host != socket.gethostname() or run.alive:
        return

    import psutil

    with contextlib.suppress(psutil.Error):
        orphan = psutil.Process(run.java)
        if "arcadedb" in " ".join(orphan.cmdline()):
            orphan.kill()


def exit_code(pid: int) -> int | None:
    """Return the exit status of a supervisor that this process started; None while it runs."""
    try:
        ended, result = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        import psutil

        _spawned.discard(pid)
        return 0 if not psutil.pid_exists(pid) else None

    if ended == 0:
        return None

    _spawned.discard(pid)
    return os.waitstatus_to_exitcode(result)


def reap() -> None:
    """Reap the ended supervisors that this process started.

    The kernel keeps them as zombies until then.
    """
    for pid in tuple(_spawned):
        exit_code(pid)


def wait(condition: Callable[[], bool], deadline: float) -> bool:
    """Wait for a condition until the deadline; return whether it was met."""
    while not (met := condition()) and not past(deadline):
        time.sleep(POLL_SECONDS)

    return met


def past(deadline: float) -> bool:
    """Return whether a deadline, in terms of `time.monotonic`, has passed."""
    return time.monotonic() > deadline


OUT_OF_MEMORY_STATUS = 3
"""Exit status of Java with the option `ExitOnOutOfMemoryError`."""

_OUT_OF_MEMORY = "the database needed more memory than its heap has"


@dataclass(frozen=True)
class Death:
    """Unrequested end of a server.

    Attributes:
        reason: Words of the supervisor; empty if it died, too.
    """

    reason: str = ""

    @property
    def out_of_memory(self) -> bool:
        """Whether the heap was full."""
        return _OUT_OF_MEMORY in self.reason

    @property
    def heap(self) -> str:
        """Size of the full heap, as ` (512 MiB)`; empty if it is unknown."""
        _, _, rest = self.reason.partition(_OUT_OF_MEMORY)
        return rest.partition(")")[0] + ")" if ")" in rest else ""


def describe_death(status: int, heap_mb: int) -> str:
    """Return why the database died.

    Args:
        status: Exit status of its process.
        heap_mb: Bound on its heap, in MiB.
    """
    if status == OUT_OF_MEMORY_STATUS:
        return f"{_OUT_OF_MEMORY} ({heap_mb} MiB), and was started again"

    ended = f"signal {-status}" if status < 0 else f"status {status}"
    return f"the database died with {ended}, and was started again"

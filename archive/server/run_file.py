"""What the supervisor of the embedded server and its clients share: the folder, its lock, the run file.

    HOME/server/lock       locked (flock) by the supervisor and inherited by the database process: it is
                           free only when both are dead, so that no folder ever has two servers
    HOME/server/start.lock held by the one client that starts a supervisor; others wait for its outcome
    HOME/server/run.json   where the server is; replaced in one step, kept after the end for its port
    HOME/server/password   password of the server, mode 0600, made once
    HOME/server/log/       console.log (supervisor) and the database's own log
    HOME/server/config/    users of the database
    HOME/database/         the data

This module and `archive.server.supervisor` import almost nothing: the supervisor stays resident.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import socket
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import psutil

HOST = "127.0.0.1"
USER = "root"
DATABASE = "archive"
ALREADY_RUNNING = 75  # exit status of a supervisor that found the folder locked (EX_TEMPFAIL)


@dataclass(frozen=True)
class Folder:
    """The paths below one archive's home."""

    home: Path

    @property
    def server(self) -> Path:
        """Everything of the server that is no data."""
        return self.home / "server"

    @property
    def database(self) -> Path:
        """The data."""
        return self.home / "database"

    @property
    def lock(self) -> Path:
        """Held by the server for as long as it lives."""
        return self.server / "lock"

    @property
    def start_lock(self) -> Path:
        """Held by the client that is starting the server."""
        return self.server / "start.lock"

    @property
    def run(self) -> Path:
        """The run file."""
        return self.server / "run.json"

    @property
    def password(self) -> Path:
        """The server's password, readable by its owner only."""
        return self.server / "password"

    @property
    def config(self) -> Path:
        """The server's configuration and users."""
        return self.server / "config"

    @property
    def logging(self) -> Path:
        """How much the server logs."""
        return self.config / "logging.properties"

    @property
    def log(self) -> Path:
        """The server's logs."""
        return self.server / "log"

    @property
    def console(self) -> Path:
        """What the supervisor and the server print."""
        return self.log / "console.log"

    def create(self) -> None:
        """Make the folders, closed to others.

        Raises:
            OSError: They cannot be made or written to.
        """
        self.home.mkdir(parents=True, exist_ok=True)
        for folder in (self.server, self.database, self.config, self.log):
            folder.mkdir(mode=0o700, exist_ok=True)


@dataclass(frozen=True)
class ServerRun:
    """The run file: one server process, where it listens and how it is.

    Attributes:
        state: `starting`, `ready`, `stopping`, `stopped` or `failed`.
        pid: Process id of the supervisor.
        created: When the supervisor's process began, in seconds since the epoch: tells it from a later
            process of the same id.
        java: Process id of the database process; 0 while there is none.
        port: Bolt port on the loopback interface.
        host: Name of the machine.
        started: When the supervisor took the folder, in seconds since the epoch.
        restarts: How often the database process died and was started again.
        error: Why it failed.
    """

    state: str
    pid: int
    created: float
    java: int = 0
    port: int = 0
    host: str = ""
    started: float = 0.0
    restarts: int = 0
    error: str = ""

    @property
    def alive(self) -> bool:
        """Whether the supervisor that wrote this still runs on this machine."""
        return self.host == socket.gethostname() and process_alive(self.pid, self.created)


def read_run(folder: Folder) -> ServerRun | None:
    """The run file, or None when there is none or it makes no sense (a stale or half-written one)."""
    try:
        return ServerRun(**json.loads(folder.run.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def write_run(folder: Folder, run: ServerRun) -> None:
    """Replace the run file in one step, readable by its owner only."""
    write_private(folder.run, json.dumps(asdict(run)))


def write_private(path: Path, text: str) -> None:
    """Write a file of mode 0600 in one step: a reader finds the old content or the new."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def try_lock(path: Path) -> int | None:
    """Take a lock file at once: its descriptor, or None when another process holds it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def locked(path: Path) -> bool:
    """Whether another process holds a lock file."""
    lock = try_lock(path)
    if lock is None:
        return True
    os.close(lock)
    return False


@contextlib.contextmanager
def holding(descriptor: int) -> Iterator[None]:
    """Free a lock at the end of the block."""
    try:
        yield
    finally:
        os.close(descriptor)


def process_alive(pid: int, created: float) -> bool:
    """Whether the process of this id is the one that began at `created`, and not a zombie."""
    try:
        process = psutil.Process(pid)
        # The kernel's boot time, which psutil adds, may move by a second when the clock is corrected.
        same = abs(float(process.create_time()) - created) < 2.0
        return same and bool(process.status() != psutil.STATUS_ZOMBIE)
    except (psutil.Error, ValueError):
        return False


def accepts(port: int) -> bool:
    """Whether something on this machine accepts connections on a port."""
    try:
        with socket.create_connection((HOST, port), timeout=1.0):
            return True
    except OSError:
        return False


def with_state(run: ServerRun, state: str, *, java: int = 0, error: str = "") -> ServerRun:
    """The same server in another state."""
    return replace(run, state=state, java=java, error=error)

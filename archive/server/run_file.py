"""Run file, lock and paths of the embedded server, shared by its supervisor and its clients.

    HOME/server/lock       locked (flock) by the supervisor and inherited by the database process: it is
                           free only when both are dead, so that no folder ever has two servers
    HOME/server/start.lock held by the one client that starts a supervisor; others wait for its
    outcome
    HOME/server/run.json   address and state of the server; replaced atomically, kept afterwards for its port
    HOME/server/password   password of the server, mode 0600, created once
    HOME/server/reader-password  of the user `reader`, likewise
    HOME/server/log/       console.log (supervisor) and the database's own log
    HOME/server/config/    users of the database
    HOME/database/         the data
    HOME/dumps/            automatic dumps
    HOME/copies/           copies of the data from before an upgrade of the engine or a repair

This module and `archive.server.supervisor` import little, because the supervisor stays resident.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Collection
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from archive.files import is_locked, write_atomically

HOST = "127.0.0.1"
USER = "root"
READER = "reader"
"""User that may only read."""
DATABASE = "archive"
SUPERVISOR = "archive.server.supervisor"
"""Module that a supervisor runs; a word of its command line."""
ANSWER_SECONDS = 2.0
"""Longest time of a Bolt server for its answer to a handshake."""
_HANDSHAKE = bytes.fromhex("6060b017 00000404 00000004 00000003 00000000")
"""The signature of Bolt, and the versions that the client takes."""
ALREADY_RUNNING = 75
"""Exit status of a supervisor that found the folder locked (EX_TEMPFAIL)."""


@dataclass(frozen=True)
class Folder:
    """The paths below one archive's home."""

    home: Path

    @property
    def server(self) -> Path:
        """All files of the server except the data."""
        return self.home / "server"

    @property
    def database(self) -> Path:
        """The data."""
        return self.home / "database"

    @property
    def dumps(self) -> Path:
        """Automatic dumps."""
        return self.home / "dumps"

    @property
    def copies(self) -> Path:
        """Copies of the data from before an upgrade of the engine or a repair."""
        return self.home / "copies"

    @property
    def upgrade(self) -> Path:
        """Record of an upgrade of the engine, until the database is checked."""
        return self.database / "upgrade.json"

    @property
    def lock(self) -> Path:
        """Lock file, held by the server while it lives."""
        return self.server / "lock"

    @property
    def start_lock(self) -> Path:
        """Lock file, held by the client that starts the server."""
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
    def reader_password(self) -> Path:
        """Password of the user that may only read, readable by the owner of the archive only."""
        return self.server / "reader-password"

    @property
    def config(self) -> Path:
        """The server's configuration and users."""
        return self.server / "config"

    @property
    def logging(self) -> Path:
        """Log configuration of the server."""
        return self.config / "logging.properties"

    @property
    def log(self) -> Path:
        """The server's logs."""
        return self.server / "log"

    @property
    def console(self) -> Path:
        """Output of the supervisor and the server."""
        return self.log / "console.log"

    def create(self) -> None:
        """Create the folders, accessible to their owner only.

        Raises:
            OSError: They cannot be created or written to.
        """
        self.home.mkdir(parents=True, exist_ok=True)
        for folder in (self.server, self.database, self.config, self.log):
            folder.mkdir(mode=0o700, exist_ok=True)


@dataclass(frozen=True)
class ServerRun:
    """Content of the run file: one server process, its address and its state.

    Attributes:
        state: `starting`, `ready`, `stopping`, `stopped` or `failed`.
        pid: Process id of the supervisor.
        created: Start of the supervisor's process, in seconds since the epoch; a later process with
            the same id has another.
        java: Process id of the database process; 0 while there is none.
        port: Bolt port on the loopback interface.
        host: Name of the machine.
        started: When the supervisor locked the folder, in seconds since the epoch.
        restarts: Number of times the database process died and was started again.
        error: Reason of a failure, or of the death of an earlier database (`archive.server.process`).
        lock: Inode of the lock file, which tells a folder from a copy of it; 0 if unknown.
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
    lock: int = 0

    def serves(self, folder: Folder) -> bool:
        """Return whether clients can connect to the server; `alive` costs more, and loads psutil.

        The supervisor holds the lock of the folder as long as it lives.
        """
        return (
            self.state == "ready"
            and self.host == socket.gethostname()
            and _is_held(folder.lock)
            and _exists(self.pid)
            and accepts(self.port)
        )

    @property
    def alive(self) -> bool:
        """Whether the supervisor that wrote the file still runs on this machine."""
        return self.host == socket.gethostname() and process_alive(
            self.pid, self.created, (SUPERVISOR,)
        )


def read_run(folder: Folder) -> ServerRun | None:
    """Return the content of the run file.

    None if it is missing, invalid, or came with a copy of another folder.
    """
    try:
        content = json.loads(folder.run.read_text(encoding="utf-8"))
        names = {field.name for field in fields(ServerRun)}
        # A server of a later release may write further fields.
        run = ServerRun(**{name: value for name, value in content.items() if name in names})
        ended = run.state in ("stopped", "failed")
        # Another machine may number the files of a shared folder differently.
        local = run.lock != 0 and run.host == socket.gethostname()
        return None if local and not ended and folder.lock.stat().st_ino != run.lock else run
    except (OSError, ValueError, TypeError, AttributeError):
        return None


def write_run(folder: Folder, run: ServerRun) -> None:
    """Replace the run file atomically, readable by its owner only."""
    write_atomically(folder.run, json.dumps(asdict(run)))


def _is_held(lock: Path) -> bool:
    try:
        return is_locked(lock)
    except OSError:
        # The files belong to another user; reading the password reports that.
        return True


def _exists(pid: int) -> bool:
    """Return whether there is a process with this id, of any user."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False

    return pid > 0


def process_alive(pid: int, created: float, words: Collection[str] = ()) -> bool:
    """Return whether the process with this id is the one that started at `created`, and no zombie.

    Args:
        pid: The process id.
        created: Start of the process by the clock of that time, in seconds since the epoch.
        words: Words of its command line, by which it is known after the clock was set; none: by its
            start only.
    """
    import psutil

    try:
        process = psutil.Process(pid)
        # The kernel's boot time, which psutil adds, moves when the clock is set, and a little when
        # it is corrected.
        same = abs(float(process.create_time()) - created) < 2.0
        same = same or (bool(words) and set(words) <= set(process.cmdline()))
        return same and bool(process.status() != psutil.STATUS_ZOMBIE)
    except (psutil.Error, ValueError):
        return False


def accepts(port: int) -> bool:
    """Return whether a port of this machine accepts connections."""
    try:
        with socket.create_connection((HOST, port), timeout=1.0):
            return True
    except OSError:
        return False


def answers(port: int) -> bool:
    """Return whether a Bolt server answers at a port of this machine.

    A server that stands still only accepts the connection.
    """
    try:
        with socket.create_connection((HOST, port), timeout=1.0) as connection:
            connection.settimeout(ANSWER_SECONDS)
            connection.sendall(_HANDSHAKE)
            return len(connection.recv(4)) > 0
    except OSError:
        return False


def with_state(run: ServerRun, state: str, *, java: int = 0, error: str = "") -> ServerRun:
    """Return the same server in another state."""
    return replace(run, state=state, java=java, error=error)

"""Client side of the embedded server: find, start, stop, status.

Ownership and concurrency: any number of processes may call these functions at any time. The server
belongs to the folder, not to the process that started it. It runs in a separate session, so that
neither Ctrl-C nor the end of that process reaches it. One client at a time starts a server
(`start.lock`). The server's own lock excludes a second server, even if the starting client is
killed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path

from archive.errors import DamagedError, ServerStartError, SettingsError, StoreError
from archive.files import check_obeyed, is_locked, try_lock
from archive.server.access import (
    access_fault,
    check_access,
    is_stopped,
    require_open_files,
    way_to_neo4j,
)
from archive.server.engine import DamagedFiles, StartRefused
from archive.server.process import (
    POLL_SECONDS,
    Death,
    clear_errors,
    end_orphan,
    exit_code,
    failure,
    past,
    reap,
    runs_elsewhere,
    spawn,
    turn_to_start,
    wait,
    whereabouts,
)
from archive.server.run_file import (
    ALREADY_RUNNING,
    DATABASE,
    HOST,
    USER,
    Folder,
    ServerRun,
    accepts,
    answers,
    read_run,
)
from archive.settings import Settings

START_SECONDS = 60.0
STOP_SECONDS = 30.0
TAKEOVER_SECONDS = 3.0
"""Time in which a server that has locked a folder writes its run file over the last server's
file."""
NOTICE_SECONDS = 2.0
"""Longest time until a supervisor has written that its database died."""
MINIMUM_FREE_BYTES = 32 * 2**20


@dataclass(frozen=True)
class Server:
    """Address and credentials of a running embedded server.

    `instance` differs for a later one on the same port.
    """

    port: int
    instance: str
    password: str = field(repr=False)
    user: str = USER
    database: str = DATABASE

    @property
    def uri(self) -> str:
        """Its Bolt address."""
        return f"bolt://{HOST}:{self.port}"


@dataclass(frozen=True)
class Status:
    """State of the embedded server over a folder.

    Attributes:
        running: Whether clients can connect.
        folder: The archive's home.
        state: `ready`, `not answering` (a process stands still, or is too busy), `starting`,
            `stopping`, `stopped`, `failed`, `none` (never started) or `foreign` (of another user).
        pid: Process id of the supervisor, 0 without one.
        java_pid: Process id of the database, 0 without one.
        port: Bolt port, 0 without one.
        uptime_seconds: Time since the supervisor locked the folder.
        rss_bytes: Resident memory of both processes.
        disk_bytes: Size of the data on disk.
        restarts: Number of times the database died and was started again.
        error: Reason of a failure.
    """

    running: bool
    folder: Path
    state: str = "none"
    pid: int = 0
    java_pid: int = 0
    port: int = 0
    uptime_seconds: float = 0.0
    rss_bytes: int = 0
    disk_bytes: int = 0
    restarts: int = 0
    error: str = ""


def ensure_running(settings: Settings, timeout: float = START_SECONDS) -> Server:
    """Return the embedded server over `settings.home`, started if it is not running.

    Raises:
        SettingsError: The folder cannot be created or written to, or belongs to another user.
        ServerStartError: The server did not start, or runs on another machine that shares the
            folder.
        DamagedError: The files of the database are damaged.
    """
    folder = Folder(settings.home)
    deadline = time.monotonic() + timeout
    if (server := _find(folder)) is not None:
        return server

    check_access(folder)
    if "${" in str(folder.home):
        # ArcadeDB replaces such a name in its settings: with the password in one folder, it would
        # look in another.
        raise SettingsError(
            f"the archive's folder {folder.home} has ${{ in its name: write out what it stands for"
        )

    with clear_errors(folder):
        folder.create()
        _check_space(settings)
        check_obeyed(folder.server, "the folder")
        check_obeyed(folder.config, "the folder")
        require_open_files()
        with turn_to_start(folder, deadline):
            return _start(folder, settings, deadline)


def find(settings: Settings) -> Server | None:
    """Return the embedded server over `settings.home` if it accepts connections now.

    Nothing is started.
    """
    return _find(Folder(settings.home))


def is_running(settings: Settings, instance: str) -> bool:
    """Whether the embedded server over `settings.home` is still this instance."""
    server = find(settings)
    return server is not None and server.instance == instance


def has_server(settings: Settings) -> bool:
    """Whether a server runs or starts over `settings.home`, also one that does not answer."""
    run = read_run(Folder(settings.home))
    return run is not None and run.alive


def instance_of(settings: Settings) -> str:
    """Return the instance of the embedded server over `settings.home`.

    Empty if none has started.
    """
    run = read_run(Folder(settings.home))
    return _instance(run) if run is not None else ""


def death_of(settings: Settings, instance: str, *, wait: bool) -> Death | None:
    """Return how an instance of the embedded server died; None if it runs, or was stopped.

    Args:
        settings: Location of the archive.
        instance: The instance (`Server.instance`).
        wait: Whether the supervisor may not have noticed the death yet.
    """
    folder = Folder(settings.home)
    deadline = time.monotonic() + (NOTICE_SECONDS if wait else 0.0)
    while True:
        run = read_run(folder)
        same_supervisor = run is not None and instance.partition(".")[0] == str(run.pid)
        if run is None or not same_supervisor:
            # The last supervisor is gone, and with it the reason.
            return Death()

        if run.state in ("stopping", "stopped"):
            return None

        if run.state == "failed" or _instance(run) != instance:
            return Death(run.error.partition("\n")[0])

        if past(deadline):
            return None if run.alive and accepts(run.port) else Death()

        time.sleep(POLL_SECONDS)


def require_space(settings: Settings) -> None:
    """Refuse to write while the disk of the embedded server is nearly full.

    ArcadeDB may lose acknowledged transactions when its disk fills up.

    Raises:
        StoreError: Less than `MINIMUM_FREE_BYTES` are free.
    """
    free = shutil.disk_usage(settings.home).free
    if free < MINIMUM_FREE_BYTES:
        raise StoreError(
            f"the disk that holds {settings.home} is full ({free / 2**20:.1f} MiB free, "
            f"{MINIMUM_FREE_BYTES // 2**20} needed): free some space and try again"
        )


def start(settings: Settings, timeout: float = START_SECONDS) -> Status:
    """Start the embedded server unless it runs, and return its status."""
    ensure_running(settings, timeout)
    return status(settings)


def stop(settings: Settings, timeout: float = STOP_SECONDS) -> bool:
    """Stop the embedded server, and wait until its folder is unlocked.

    Return whether there was a server.

    Raises:
        SettingsError: The server belongs to another user.
        ServerStartError: The server does not end in time, or runs on another machine.
    """
    folder = Folder(settings.home)
    deadline = time.monotonic() + timeout
    check_access(folder)
    if not folder.lock.exists():
        return False

    with clear_errors(folder):
        stopped = False
        while (lock := try_lock(folder.lock)) is None:
            stopped = True
            run = read_run(folder)
            if run is not None and run.alive:
                _signal(run.pid, signal.SIGTERM)
            else:
                end_orphan(run)

            if not wait(
                lambda: not is_locked(folder.lock), min(deadline, time.monotonic() + 1.0)
            ) and past(deadline):
                raise ServerStartError(
                    f"the server over {folder.home} does not end{whereabouts(run)}"
                )

        os.close(lock)
        reap()
        return stopped


def status(settings: Settings) -> Status:
    """Return the status of the embedded server over `settings.home`; start nothing."""
    folder = Folder(settings.home)
    reap()
    if (fault := access_fault(folder)) is not None:
        return Status(running=False, folder=folder.home, state="foreign", error=fault)

    run = read_run(folder)
    disk = (
        sum(_size(path) for path in folder.database.rglob("*")) if folder.database.is_dir() else 0
    )
    if run is None:
        return Status(running=False, folder=folder.home, disk_bytes=disk)

    if not run.alive:
        state = "failed" if run.state == "failed" else "stopped"
        return Status(
            running=False, folder=folder.home, state=state, disk_bytes=disk, error=run.error
        )

    answering = run.state == "ready" and answers(run.port) and not is_stopped(run.pid)
    return Status(
        running=answering,
        folder=folder.home,
        state="not answering" if run.state == "ready" and not answering else run.state,
        pid=run.pid,
        java_pid=run.java,
        port=run.port,
        uptime_seconds=max(0.0, time.time() - run.started),
        rss_bytes=_rss(run.pid) + _rss(run.java),
        disk_bytes=disk,
        restarts=run.restarts,
        error=run.error,
    )


def _find(folder: Folder) -> Server | None:
    """Return the server that accepts connections over this folder now."""
    run = read_run(folder)
    if run is None or not run.serves(folder):
        return None

    try:
        return Server(run.port, _instance(run), folder.password.read_text(encoding="utf-8").strip())
    except OSError as error:
        raise SettingsError(
            f"the server over {folder.home} runs, but its password cannot be read: "
            f"{error.strerror} ({folder.password})"
        ) from None


def _instance(run: ServerRun) -> str:
    return f"{run.pid}.{run.java}.{run.created}"


def _start(folder: Folder, settings: Settings, deadline: float) -> Server:
    """Start a supervisor and wait until a server accepts connections.

    It is this one, or one that another process started.
    """
    supervisor = 0
    takeover = time.monotonic() + TAKEOVER_SECONDS
    while True:
        if (server := _find(folder)) is not None:
            return server

        run = read_run(folder)
        if supervisor == 0 and not is_locked(folder.lock):
            supervisor = spawn(folder, settings)
        elif supervisor == 0:
            if run is not None and runs_elsewhere(run) and past(min(takeover, deadline)):
                raise _used_elsewhere(folder, run)

            end_orphan(run)
        elif (code := exit_code(supervisor)) is not None:
            supervisor = 0
            run = read_run(folder)
            if code == DamagedFiles.status and run is not None:
                raise DamagedError(run.error)

            if code == StartRefused.status and run is not None:
                raise ServerStartError(run.error)

            if code != ALREADY_RUNNING:
                raise ServerStartError(
                    failure(folder, f"the embedded server ended with status {code}")
                )

        if past(deadline):
            if run is not None and runs_elsewhere(run):
                raise _used_elsewhere(folder, run)

            message = f"the embedded server over {folder.home} is not ready in time"
            raise ServerStartError(failure(folder, message))

        time.sleep(POLL_SECONDS)


def _used_elsewhere(folder: Folder, run: ServerRun) -> ServerStartError:
    """Return the error of a folder that a server on another machine has open."""
    return ServerStartError(
        f"the embedded archive over {folder.home} serves one machine{whereabouts(run)}. "
        f"For both, {way_to_neo4j(folder.home)}"
    )


def _check_space(settings: Settings) -> None:
    try:
        require_space(settings)
    except StoreError as error:
        raise ServerStartError(str(error)) from None


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _rss(pid: int) -> int:
    import psutil

    try:
        return int(psutil.Process(pid).memory_info().rss) if pid else 0
    except psutil.Error:
        return 0


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0

"""The supervisor of the embedded server.

    python -m archive.server.supervisor HOME HEAP_MB IDLE_SECONDS DUMP_SECONDS,KEPT,SHARE
    [JAVA_OPTION ...]

One small process per folder. It holds the folder's lock, runs the database (ArcadeDB, on the Java
runtime inside its package) as its child, writes the run file, restarts a dead child on the same
port, and ends both after a time without clients. It opens no database whose files are damaged
(`archive.server.data_files`) or were written by a newer engine (`archive.server.engine_change`),
and has the archive dumped from time to time (`archive.server.dump_schedule`).
`archive.server.embedded` starts it; there is no need to call it by hand.

Lifetime of the two processes: the child inherits the lock, so the folder stays locked while either
lives. On Linux the kernel kills the child when the supervisor dies. A process that gets the lock
therefore finds no server at work.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import psutil

from archive.files import try_lock
from archive.server import data_files, engine, engine_change
from archive.server.access import allow_open_files
from archive.server.dump_schedule import DumpSchedule, dumps
from archive.server.engine import (
    READY_LINE,
    DamagedFiles,
    StartFailed,
    ensure_users,
    write_configuration,
)
from archive.server.process import OUT_OF_MEMORY_STATUS, describe_death
from archive.server.run_file import (
    ALREADY_RUNNING,
    HOST,
    Folder,
    ServerRun,
    read_run,
    with_state,
    write_run,
)

READY_SECONDS = 60.0
STOP_SECONDS = 15.0
LOCK_SECONDS = 1.0
MAX_RESTARTS = 5
"""Number of restarts within `RESTART_WINDOW` after which the supervisor gives up."""
RESTART_WINDOW = 60.0
"""Time within which restarts are counted, in seconds."""
RECORD_SECONDS = 60.0
"""Time between two records of the sizes of the database's files."""
MAX_CONSOLE_BYTES = 1_000_000
"""Largest size of the console log."""

_LINUX_PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> int:
    """Lock the folder and run its server.

    It ends at a stop signal, or when no client has connected for a while.
    """
    home = Path(arguments[0])
    heap_mb = int(arguments[1])
    idle_seconds = float(arguments[2])
    os.umask(0o077)
    allow_open_files()
    folder = Folder(home)
    folder.create()
    lock = _take_lock(folder)
    if lock is None:
        return ALREADY_RUNNING

    schedule = DumpSchedule.parse(folder, arguments[3])
    supervisor = Supervisor(folder, lock, heap_mb, idle_seconds, schedule, arguments[4:])
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)

    signal.signal(signal.SIGTERM, supervisor.request_stop)
    return supervisor.run()


def _take_lock(folder: Folder) -> int | None:
    # A client that probes the lock holds it for an instant, an ending server a little longer.
    deadline = time.monotonic() + LOCK_SECONDS
    while (lock := try_lock(folder.lock)) is None and time.monotonic() < deadline:
        time.sleep(0.02)

    return lock


class Supervisor:
    """Keeps one database process alive over one folder.

    Args:
        folder: The archive's folder.
        lock: Descriptor of its lock, held by this process.
        heap_mb: Bound on the database's heap, in MiB.
        idle_seconds: End after this long without clients.
        schedule: Schedule of automatic dumps.
        java_options: Further options of the Java runtime.
    """

    def __init__(
        self,
        folder: Folder,
        lock: int,
        heap_mb: int,
        idle_seconds: float,
        schedule: DumpSchedule,
        java_options: Sequence[str] = (),
    ) -> None:
        """Take over the port of the last server, which its clients still know."""
        self.folder = folder
        self.lock = lock
        self.heap_mb = heap_mb
        self.idle_seconds = idle_seconds
        self.schedule = schedule
        self.version = ""
        self.java_options = java_options
        self.stopping = False
        last = read_run(folder)
        self.run_file = ServerRun(
            state="starting",
            pid=os.getpid(),
            created=psutil.Process().create_time(),
            port=last.port if last else 0,
            host=socket.gethostname(),
            started=time.time(),
            lock=os.fstat(lock).st_ino,
        )
        self.output: deque[str] = deque(maxlen=40)
        self.death = ""  # why the last database died, for the clients that it left

    def request_stop(self, *_: object) -> None:
        """Signal handler: end at the next iteration."""
        self.stopping = True

    def run(self) -> int:
        """Start the database, and restart it whenever it dies."""
        deaths: deque[float] = deque(maxlen=MAX_RESTARTS)
        try:
            ensure_users(self.folder)
            write_configuration(self.folder)
            self._prepare()
            while True:
                java = self._start()
                if self.stopping or self._watch(java) == "leave":
                    self._write("stopping", java=java.pid)
                    self.schedule.end()
                    self._stop(java)
                    with contextlib.suppress(OSError):
                        data_files.record_stop(self.folder, self.version)

                    self._write("stopped")
                    return 0

                self._say(f"the database died with status {java.returncode}: starting it again")
                self.death = describe_death(java.returncode, self.heap_mb)
                if java.returncode != OUT_OF_MEMORY_STATUS:
                    # A query fills the heap; the next start is as good as the last, and clients
                    # wait for it.
                    deaths.append(time.monotonic())

                if len(deaths) == MAX_RESTARTS and deaths[-1] - deaths[0] < RESTART_WINDOW:
                    raise StartFailed(
                        f"the database died {MAX_RESTARTS} times in a minute\n" + self._tail()
                    )

                self.run_file = replace(self.run_file, restarts=self.run_file.restarts + 1)
        except (StartFailed, OSError) as error:
            self._say(f"giving up: {error}")
            with contextlib.suppress(OSError):
                self._write("failed", error=str(error))

            return error.status if isinstance(error, StartFailed) else 1

    def _prepare(self) -> None:
        """Check the files of the database before it is opened.

        Raises:
            StartFailed: There is no engine, it is too old, or the files are damaged.
        """
        self.version = engine.installed().version
        if faults := data_files.damage(self.folder):
            more = f", and {len(faults) - 1} more files" if len(faults) > 1 else ""
            made = dumps(self.folder)
            last = f"the last automatic dump is {made[0]}" if made else "there is no automatic dump"
            raise DamagedFiles(
                f"the database in {self.folder.database} is damaged ({faults[0]}{more}): "
                f"run archive db repair, which keeps a copy of it; {last}"
            )

        engine_change.prepare(self.folder, self.version)
        data_files.record_use(self.folder, self.version)

    def _start(self) -> subprocess.Popen[bytes]:
        """Start a database and return it when it is ready for clients."""
        for attempt in range(3):
            port = _free_port(self.run_file.port if attempt == 0 else 0)
            self.run_file = replace(self.run_file, port=port)
            self._write("starting", error=self.death)
            java = self._launch(port)
            if self._wait_ready(java):
                self._write("ready", java=java.pid, error=self.death)
                return java

            self._stop(java)
            if self.stopping:
                return java

            # Another process may have bound the port between the probe and the server's bind.
            if not any("BindException" in line or "already in use" in line for line in self.output):
                break

        raise StartFailed(self._tail())

    def _launch(self, port: int) -> subprocess.Popen[bytes]:
        self.output.clear()
        return subprocess.Popen(
            engine.java_command(self.folder, port, self.heap_mb, self.java_options),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=self.folder.server,
            env=engine.java_environment(os.environ),
            pass_fds=(self.lock,),
            preexec_fn=_die_with_parent(os.getpid()),
        )

    def _wait_ready(self, java: subprocess.Popen[bytes]) -> bool:
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline and not self.stopping:
            open_still = self._drain(java, 0.05)
            if any(READY_LINE in line for line in self.output):
                return True

            if not open_still:
                return False

        return False

    def _watch(self, java: subprocess.Popen[bytes]) -> str:
        """Wait until the database dies (`died`) or must be stopped (`leave`)."""
        look_every = min(2.0, self.idle_seconds / 4)
        now = time.monotonic()
        last_client = now
        next_look = now + look_every
        next_record = now + RECORD_SECONDS
        while not self.stopping:
            if not self._drain(java, min(0.25, look_every)):
                java.wait()
                return "died"

            now = time.monotonic()
            if now < next_look:
                continue

            next_look = now + look_every
            if _has_clients(java.pid, self.run_file.port):
                last_client = now
            elif now - last_client >= self.idle_seconds:
                if self.schedule.start(leaving=True):
                    last_client = now
                    continue

                self._say(f"no client for {self.idle_seconds:g} seconds: leaving")
                return "leave"

            if not self._folder_is_ours():
                return "leave"

            if now >= next_record:
                next_record = now + RECORD_SECONDS
                with contextlib.suppress(OSError):
                    data_files.record_use(self.folder, self.version)

            self.schedule.start()
            if read_run(self.folder) != self.run_file:
                # Restore a damaged or removed run file: without it no client finds this server, and
                # no other can start.
                write_run(self.folder, self.run_file)

        return "leave"

    def _folder_is_ours(self) -> bool:
        # A server must not outlive its folder, even if a new folder has the same path.
        try:
            return self.folder.lock.stat().st_ino == os.fstat(self.lock).st_ino
        except OSError:
            return False

    def _stop(self, java: subprocess.Popen[bytes]) -> None:
        java.terminate()
        deadline = time.monotonic() + STOP_SECONDS
        # Read its remaining output: a full pipe would keep it from ending.
        while self._drain(java, 0.05) and time.monotonic() < deadline:
            pass

        java.kill()
        java.wait()

    def _drain(self, java: subprocess.Popen[bytes], seconds: float) -> bool:
        """Collect the child's output for up to `seconds`.

        Return False at the end of the output, when the child is dead.
        """
        assert java.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(java.stdout, selectors.EVENT_READ)
            if not selector.select(seconds):
                return True

        chunk = os.read(java.stdout.fileno(), 65536)
        self.output.extend(chunk.decode(errors="replace").splitlines())
        return bool(chunk)

    def _write(self, state: str, *, java: int = 0, error: str = "") -> None:
        self.run_file = with_state(self.run_file, state, java=java, error=error)
        if self._folder_is_ours():
            write_run(self.folder, self.run_file)

    def _tail(self) -> str:
        return "\n".join(engine.telling(self.output, self.heap_mb, self.java_options))

    def _say(self, message: str) -> None:
        with contextlib.suppress(OSError):
            if os.fstat(2).st_size > MAX_CONSOLE_BYTES:
                os.ftruncate(2, 0)

            print(time.strftime("%Y-%m-%d %H:%M:%S"), message, file=sys.stderr, flush=True)


def _free_port(preferred: int) -> int:
    for port in (preferred, 0):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError:
                continue

            return int(probe.getsockname()[1])

    raise StartFailed(f"no port is free on {HOST}")


def _die_with_parent(parent: int) -> Callable[[], None] | None:
    """Return the child's first action, before it becomes the database.

    It asks the kernel to kill the child with its parent.
    """
    if not sys.platform.startswith("linux"):
        return None

    libc = ctypes.CDLL(None, use_errno=True)

    def ask() -> None:
        libc.prctl(_LINUX_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # the parent died before the request
            os._exit(1)

    return ask


def _has_clients(pid: int, port: int) -> bool:
    try:
        connections = psutil.Process(pid).net_connections(kind="tcp")
    except psutil.Error:
        return True  # unknown: stay; a dead child is noticed elsewhere

    return any(
        connection.status == psutil.CONN_ESTABLISHED
        and connection.laddr
        and connection.laddr.port == port
        for connection in connections
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

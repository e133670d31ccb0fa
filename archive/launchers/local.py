"""Trainers on this machine: processes in separate sessions."""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import psutil

from archive import runtime
from archive.errors import LaunchError
from archive.files import write_atomically
from archive.launchers.base import LaunchedTrainer, Launcher, TrainerFailure, describe_log
from archive.launchers.options import launch_option
from archive.launchers.records import TrainerFleet, shell_script
from archive.server.run_file import process_alive
from archive.trainer.storage.file_names import file_name, trainer_logs

RESERVE_SECONDS = 2.0
"""Time beyond a fleet's grace after which a trainer is killed."""
MOST_FAILURES = 1000
"""Number of failures of each fleet that a process remembers, the last ones."""
MOST_BYTES = 1 << 20
"""Size of a log above which the next trainer begins a new one; one older log is kept."""


@dataclass
class LocalLauncher(Launcher):
    """This machine: processes that survive the command, with their logs in HOME/logs/trainers.

    Each trainer has a place, the lowest that is free: the number of its log, and of the file in the
    fleet's folder that identifies its process by id and start time.
    """

    name: ClassVar[str] = "local"
    where: ClassVar[str] = "this machine"
    poll_seconds: ClassVar[float] = 0.0
    grace_seconds: ClassVar[float] = 8.0

    threads: int | None = launch_option(
        "CPU threads of each trainer.", "positive", shown="cores / trainers"
    )

    def elsewhere(self) -> bool:
        """No: all run here."""
        return False

    def start(self, fleet: TrainerFleet, count: int) -> None:
        """Start processes."""
        taken = {number for number, _, _ in self._alive(fleet)}
        for number in [index for index in range(len(taken) + count) if index not in taken][:count]:
            self._start(fleet, number)

    def running(self, fleet: TrainerFleet) -> list[LaunchedTrainer]:
        """Return the processes that have not ended."""
        return [
            LaunchedTrainer(id_, "running", platform.node()) for _, id_, _ in self._alive(fleet)
        ]

    def stop(self, fleet: TrainerFleet, ids: Sequence[str]) -> None:
        """End processes, and wait for them."""
        _end(fleet, [process for _, id_, process in self._alive(fleet) if id_ in set(ids)])
        # Removes the files of those that have ended.
        list(self._alive(fleet))

    def preview(self, fleet: TrainerFleet, count: int) -> str:
        """Return a shell script."""
        command = self._command(fleet)
        return shell_script(
            fleet, f"for place in $(seq {count}); do", command, "done", background=True
        )

    def failures(self, fleet: TrainerFleet, ids: Collection[str]) -> list[TrainerFailure]:
        """Return the failures of children of this process."""
        _reap()
        return [failure for failure in _FAILURES.get(fleet.id, ()) if failure.id in ids]

    def has_ended(self, fleet: TrainerFleet) -> bool:
        """Whether no machine with this home has a trainer of the fleet on record."""
        return not list(self._alive(fleet)) and not list(_records(fleet))

    def has_unlisted(self, fleet: TrainerFleet) -> bool:
        """See `Launcher.has_unlisted`."""
        return not self.has_ended(fleet)

    def _start(self, fleet: TrainerFleet, number: int) -> None:
        path = self._log(fleet, number)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists() and path.stat().st_size > MOST_BYTES:
                path.replace(path.with_name(f"{path.name}.1"))

            with path.open("ab") as log:
                # Not in this process's session: Ctrl-C reaches only this process, which then stops
                # the trainers.
                child = subprocess.Popen(
                    self._command(fleet),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=fleet.environment_from(os.environ),
                    start_new_session=True,
                )
        except OSError as error:
            raise LaunchError(f"a trainer cannot be started: {error}") from None

        process = psutil.Process(child.pid)
        record = fleet.folder / "local" / f"{number}.json"
        content = {"pid": child.pid, "created": process.create_time(), "host": platform.node()}
        try:
            record.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(record, json.dumps(content))
        except BaseException as error:
            # Without its record, no command would find it to stop it.
            _end(fleet, [process])
            child.poll()
            if isinstance(error, OSError):
                raise LaunchError(
                    f"a trainer was ended, as its record {record} cannot be written: {error}"
                ) from None

            raise

        _CHILDREN[child.pid] = _Child(fleet.id, path, child)

    def _command(self, fleet: TrainerFleet) -> list[str]:
        threads = self.threads
        if threads is None and fleet.upper > 1:
            threads = max(1, runtime.count_cores() // fleet.upper)

        command = fleet.command()
        # Before the user's options, of which the last one counts.
        position = command.index("trainer") + 1
        return (
            command[:position]
            + ([] if threads is None else ["--threads", str(threads)])
            + command[position:]
        )

    def _alive(self, fleet: TrainerFleet) -> Iterator[tuple[int, str, psutil.Process]]:
        """Yield place, id and process of the trainers that have not ended; forget the others."""
        _reap()
        places = sorted((int(path.stem), path) for path in _records(fleet))
        for number, path in places:
            try:
                text = path.read_text(encoding="utf-8")
            except OSError:
                # Another command may have removed the record; one that cannot be read stays.
                continue

            try:
                content = json.loads(text)
                if content["host"] != platform.node():
                    continue

                if process_alive(content["pid"], content["created"], ("trainer", *fleet.arguments)):
                    yield number, str(content["pid"]), psutil.Process(content["pid"])
                    continue
            except (psutil.NoSuchProcess, ValueError, KeyError):
                pass

            path.unlink(missing_ok=True)

    @staticmethod
    def _log(fleet: TrainerFleet, number: int) -> Path:
        return (
            trainer_logs(fleet.settings.home)
            / f"{file_name(fleet.study or fleet.name)}-{number}.log"
        )


@dataclass(frozen=True)
class _Child:
    """A trainer that this process has started, for any launcher in it."""

    fleet: str
    log: Path
    process: subprocess.Popen[bytes]


def _records(fleet: TrainerFleet) -> Iterator[Path]:
    return (fleet.folder / "local").glob("*.json")


_CHILDREN: dict[int, _Child] = {}
_FAILURES: dict[str, deque[TrainerFailure]] = {}


def _reap() -> None:
    """Collect the exit codes of children that have ended."""
    for pid, child in list(_CHILDREN.items()):
        if child.process.poll() is not None:
            del _CHILDREN[pid]
            if code := child.process.returncode:
                failures = _FAILURES.setdefault(child.fleet, deque(maxlen=MOST_FAILURES))
                failures.append(TrainerFailure(str(pid), code, describe_log(child.log, code)))


def _end(fleet: TrainerFleet, processes: Sequence[psutil.Process]) -> None:
    """End trainers of a fleet in order, and kill those that do not end in time."""
    for process in processes:
        _signal(process, signal.SIGTERM)

    _, late = psutil.wait_procs(processes, timeout=fleet.grace_seconds + RESERVE_SECONDS)
    for process in late:
        _signal(process, signal.SIGKILL)

    psutil.wait_procs(late, timeout=RESERVE_SECONDS)


def _signal(process: psutil.Process, number: int) -> None:
    try:
        process.send_signal(number)
    except psutil.NoSuchProcess:
        pass

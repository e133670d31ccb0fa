"""The folder of one run: all that is known of it, on disk, until the archive has it.

    HOME/runs/ID/run.json        the run (`RunRecord`), written as a whole at its start and its end
    HOME/runs/ID/log.*           its output (`archive.runs.run_log`)
    HOME/runs/ID/metrics.jsonl   metrics that `archive.record` has logged
    HOME/runs/ID/network.json    the network that `archive.record` has captured
    HOME/runs/ID/processes       ids of the program's processes, while it runs and after
    HOME/runs/ID/kept/           copies of the files that the user asked to keep
    HOME/runs/ID/lock            an empty file, which the recorder locks while it lives
    HOME/runs/blobs/             source files that git does not have (`code_state.BlobFolder`)
    HOME/runs/pending/ID         an empty file, until the archive has the run

A run without an end whose lock is free was killed. The kernel releases a lock with its process, on
another machine or in another container as well where they share the folder.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from archive.errors import StoreError
from archive.files import is_locked, try_lock, write_atomically
from archive.runs.code_state import BlobFolder

RUN = "run.json"
PENDING = "pending"
NETWORK = "network.json"
LOGGED = "metrics.jsonl"
LOCK = "lock"
PROCESSES = "processes"
RECORDER = "record"
"""Kind of the agent that makes the proposals of recorded runs."""


@dataclass
class RunRecord:
    """What is known of one run.

    Attributes:
        id: Its id, which begins with the time of its start; with `told` for a run that is told.
        study: Name of its study.
        program: Name of the program.
        command: Program and arguments, masked; empty for `archive.record` within a program.
        values: Values by name.
        folder: Folder in which it ran.
        seed: Its seed; None where none is known.
        motivation: Reason for the run in words; None without one.
        parent: Id of the proposal that it is a change of; None without one.
        objective: Metric that it is judged by; None leaves it to the study, or to its metrics.
        direction: `maximise` or `minimise`; None likewise.
        task: Name of the task; None for the study's.
        pattern: Regular expression for lines with metrics; None for `name: value`.
        code: State of its source files, as `CodeState.json` gives it; None where there is none.
        host: Name of its machine.
        started: Start of the run, in milliseconds since 1970.
        finished: Its end; None while it runs.
        status: Exit status, negative for a signal; None while it runs, and where it is unknown.
        reason: Why it failed; None where it did not.
        cause: Kind of that reason, as `archive.queue.causes` lists them.
        metrics: Its last metrics.
        curve: Its metrics by step.
        environment: Packages, devices and settings that its value may depend on.
        kept: Files that were kept, as names in the folder `kept`.
        diff: Difference of its source files from the parent's, masked, of a run that is told; None
            where `code` has them.
        recorder: Kind of the agent on record that makes its proposal: `RECORDER`, or the kind of a
            program that tells of a run of its own.
        model: Name of the language model that tells of it; None for any other.
        proposal: Id of the proposal that it became; None before its delivery.
    """

    id: str
    study: str
    program: str
    command: list[str] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)
    folder: str = ""
    seed: int | None = None
    motivation: str | None = None
    parent: str | None = None
    objective: str | None = None
    direction: str | None = None
    task: str | None = None
    pattern: str | None = None
    code: dict[str, Any] | None = None
    host: str = ""
    started: int = 0
    finished: int | None = None
    status: int | None = None
    reason: str | None = None
    cause: str | None = None
    metrics: dict[str, float] = field(default_factory=dict)
    curve: dict[str, list[float]] = field(default_factory=dict)
    environment: dict[str, Any] = field(default_factory=dict)
    kept: list[str] = field(default_factory=list)
    diff: str | None = None
    recorder: str = RECORDER
    model: str | None = None
    proposal: str | None = None

    @property
    def is_told(self) -> bool:
        """Whether it was told by the program that made it, and not recorded."""
        return self.recorder != RECORDER


class RunFolder:
    """The folder of one run.

    Attributes:
        path: The folder.
    """

    def __init__(self, path: Path) -> None:
        """Keep the path."""
        self.path = path
        self._lock: int | None = None

    @classmethod
    def create(cls, runs: Path, identifier: str | None = None) -> RunFolder:
        """Make the folder of a new run, which its owner alone may read.

        Args:
            runs: Folder of all runs.
            identifier: Id of the run; None takes a new one.
        """
        path = runs / (identifier or _new_identifier())
        try:
            runs.mkdir(parents=True, mode=0o700, exist_ok=True)
            (runs / PENDING).mkdir(mode=0o700, exist_ok=True)
            path.mkdir(mode=0o700)
            folder = cls(path)
            # Before anybody looks for runs without a recorder.
            folder._lock = try_lock(path / LOCK)
            (runs / PENDING / path.name).touch()
        except OSError as error:
            raise StoreError(f"the run cannot be kept in {path}: {error.strerror}") from error

        return folder

    @property
    def id(self) -> str:
        """Id of the run."""
        return self.path.name

    @property
    def blobs(self) -> BlobFolder:
        """Source files of all runs."""
        return BlobFolder(self.path.parent / "blobs")

    def write(self, record: RunRecord) -> None:
        """Write the run, as a whole or not at all."""
        text = json.dumps(asdict(record), indent=1, default=str, ensure_ascii=False) + "\n"
        # Names of files and arguments need be no text, which no server holds.
        write_atomically(self.path / RUN, text.encode(errors="replace"))

    def read(self) -> RunRecord | None:
        """Return the run; None where there is no readable one."""
        with suppress(OSError, ValueError, TypeError):
            document = json.loads((self.path / RUN).read_text(encoding="utf-8"))
            names = {field.name for field in fields(RunRecord)}
            # Another version of the archive may have written further ones.
            return RunRecord(**{name: document[name] for name in document if name in names})

        return None

    def is_recording(self) -> bool:
        """Return whether the recorder of the run lives."""
        return self._lock is not None or is_locked(self.path / LOCK)

    def release(self) -> None:
        """Give the lock back: the run has its end."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def write_processes(self, processes: Collection[int]) -> None:
        """Keep the ids of the processes of the program, for a run whose recorder is killed."""
        with suppress(OSError):
            write_atomically(self.path / PROCESSES, " ".join(map(str, sorted(processes))))

    def processes(self) -> frozenset[int] | None:
        """Return the ids of the processes of the program; None where they are unknown."""
        with suppress(OSError, ValueError):
            return frozenset(map(int, (self.path / PROCESSES).read_text().split())) or None

        return None

    def set_delivered(self) -> None:
        """Note that the archive has the run, or that there is none."""
        (self.path.parent / PENDING / self.id).unlink(missing_ok=True)

    def network(self) -> dict[str, Any] | None:
        """Return the captured network as a JSON object; None without one."""
        with suppress(OSError, ValueError):
            document = json.loads((self.path / NETWORK).read_text(encoding="utf-8"))
            return document if isinstance(document, dict) else None

        return None

    def write_network(self, document: Mapping[str, Any]) -> None:
        """Keep the captured network."""
        write_atomically(self.path / NETWORK, json.dumps(document))


def _new_identifier() -> str:
    seconds, rest = divmod(time.time_ns(), 1_000_000_000)
    moment = time.strftime("%Y%m%d-%H%M%S", time.gmtime(seconds))
    return f"{moment}-{rest // 1000:06d}-{secrets.token_hex(2)}"


def runs_of(home: Path) -> Path:
    """Return the folder of the runs of an archive's home."""
    return home / "runs"


def pending_runs(runs: Path) -> Iterator[RunFolder]:
    """Yield the folders of the runs that the archive does not have, oldest first."""
    with suppress(FileNotFoundError):
        for path in sorted((runs / PENDING).iterdir()):
            yield RunFolder(runs / path.name)


def now() -> int:
    """Return the time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000

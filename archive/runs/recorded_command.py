"""A command that is recorded: `archive record -- COMMAND`."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from archive.errors import UsageError
from archive.queue.causes import Cause
from archive.runs import known_runs
from archive.runs.arguments import read_command
from archive.runs.known_runs import KnownRun
from archive.runs.life_cycle import (
    RunRequest,
    begin,
    check_request,
    end,
    fingerprint,
    masked,
    say,
    take_told,
)
from archive.runs.measurements import OF_PROCESS, Measurements, compile_pattern
from archive.runs.program import OUTPUT, RUN_VARIABLE, OutputReader, ProgramEnd, run_program
from archive.runs.run_folder import RunFolder, RunRecord, now, runs_of
from archive.runs.run_log import RunLog, read_end
from archive.runs.secrets import Secrets
from archive.runs.surroundings import describe
from archive.runs.tracker_files import read_program_files

if TYPE_CHECKING:
    from archive.settings import Settings

MOST_KEPT_BYTES = 1 << 30
"""Size of all files of one run that are kept."""


@dataclass(frozen=True)
class Recorded:
    """A run that ended.

    Attributes:
        record: The run.
        folder: Its folder.
        earlier: Runs of the same program with the same source files and values.
    """

    record: RunRecord
    folder: RunFolder
    earlier: list[KnownRun] = field(default_factory=list)


class PreparedRun:
    """A run of a program that is about to start.

    Args:
        command: Program and arguments.
        request: What the user says of it.
        configuration: Settings of the archive.

    Attributes:
        record: What is known of it.
        earlier: Runs of the same program with the same source files and values.

    Raises:
        UsageError: The pattern of the metrics or of files to keep, the study or the parent is
            invalid.
        StoreError: The folder of the run cannot be made.
    """

    def __init__(
        self, command: Sequence[str], request: RunRequest, configuration: Settings
    ) -> None:
        """Read arguments and source files, and make the folder of the run."""
        self._command = list(command)
        self._request = request
        self._configuration = configuration
        _check_keep(request.keep)
        check_request(request, runs_of(configuration.home))
        pattern = None if request.pattern is None else compile_pattern(request.pattern)
        self._measurements = Measurements(pattern)
        self._secrets = Secrets.find(os.environ, command)
        invocation = read_command(command)
        self._folder = RunFolder.create(runs_of(configuration.home))
        self.record = begin(self._folder, request, invocation.program)
        self.record.command = [self._secrets.mask(word) for word in command]
        self.record.values = masked(invocation.values, self._secrets)
        self.record.seed = invocation.seed
        self._fingerprint = fingerprint(self.record)
        self.earlier = known_runs.find(self._runs, fingerprint=self._fingerprint)

    @property
    def _runs(self) -> Path:
        return self._folder.path.parent

    def folder_of(self, run: str) -> RunFolder:
        """Return the folder of another run of this home, by its id."""
        return RunFolder(self._runs / run)

    def discard(self) -> None:
        """Delete the folder of the run, which does not start."""
        shutil.rmtree(self._folder.path, ignore_errors=True)
        self._folder.set_delivered()
        self._folder.release()

    def run(self, output: int = OUTPUT) -> Recorded:
        """Run the program to its end, and keep what is known of it.

        Args:
            output: Descriptor to which its output is passed on.

        Raises:
            UsageError: The program cannot be started.
        """
        self._folder.write(self.record)
        describing = threading.Thread(target=self._describe)
        describing.start()
        environment = {**os.environ, RUN_VARIABLE: str(self._folder.path)}
        # Lines of a Python program appear when they are printed.
        environment.setdefault("PYTHONUNBUFFERED", "1")
        try:
            with RunLog(self._folder.path) as log:
                reader = OutputReader(log, self._secrets, self._measurements)
                ended = run_program(
                    self._command,
                    environment,
                    reader,
                    limit=self._request.limit,
                    output=output,
                    keep_processes=self._folder.write_processes,
                )
        except UsageError:
            describing.join()
            self.discard()
            raise

        if log.error is not None:
            say(f"the log of the run has an end: {log.error.strerror}")

        describing.join()
        self._finish(ended)
        return Recorded(self.record, self._folder, self.earlier)

    def _describe(self) -> None:
        interpreter = self._command[0] if "python" in Path(self._command[0]).name else None
        self.record.environment = describe(interpreter, os.environ)

    def _finish(self, ended: ProgramEnd) -> None:
        record = self.record
        record.finished = now()
        record.status = ended.status
        if ended.status:
            record.reason = _reason(ended.status, self._folder)
            record.cause = (Cause.CRASH if ended.status < 0 else Cause.TRAINING).value

        limit = self._request.limit
        if ended.status and limit is not None and ended.seconds >= limit:
            record.reason = f"ended after its limit of {limit:g} s"
            record.cause = Cause.LIMIT.value

        read_program_files(record, ended.processes, self._measurements)
        take_told(self._folder, record, self._measurements, self._secrets)
        measured = (ended.cpu_seconds, float(ended.peak_memory_bytes))
        record.metrics |= dict(zip(OF_PROCESS, measured, strict=True))
        record.kept = _keep(self._request.keep, self._folder.path / "kept")
        end(self._folder, record, self._fingerprint)


def _keep(patterns: Sequence[str], target: Path) -> list[str]:
    """Copy the files that patterns name into a folder, and return their names there."""
    paths: dict[Path, None] = {}
    for pattern in patterns:
        paths |= dict.fromkeys(sorted(Path().glob(pattern)))

    kept: list[str] = []
    size = 0
    for path in paths:
        copy = target / path
        if not copy.resolve().is_relative_to(target.resolve()):
            continue

        try:
            about = path.lstat()
            if not stat.S_ISREG(about.st_mode):
                continue

            size += about.st_size
            if size > MOST_KEPT_BYTES:
                say(f"{path} is not kept: the files of a run have at most 1 GiB")
                break

            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
            kept.append(path.as_posix())
        except OSError as error:
            say(f"{path} is not kept: {error.strerror}")

    return kept


def _check_keep(patterns: Sequence[str]) -> None:
    """Check the patterns of files to keep.

    Raises:
        UsageError: One is empty, or names a place outside of the folder.
    """
    for pattern in patterns:
        if not PurePath(pattern).parts or PurePath(pattern).is_absolute() or "\0" in pattern:
            raise UsageError(f"--keep takes a pattern within the folder, got {pattern!r:.80}")

        if any("**" in part and part != "**" for part in PurePath(pattern).parts):
            raise UsageError(f"--keep takes ** as a whole folder, got {pattern!r:.80}")


def _reason(status: int, folder: RunFolder) -> str:
    """Return why a program failed: its status, and the last line of its output."""
    if status < 0:
        name = signal.Signals(-status).name if -status in set(signal.Signals) else f"{-status}"
        ended = f"ended by signal {name}"
    else:
        ended = f"ended with status {status}"

    lines = [line for line in read_end(folder.path, 2000).splitlines() if line.strip()]
    return f"{ended}: {lines[-1].strip()[:500]}" if lines else ended

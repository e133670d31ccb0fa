"""Local trainers of a search: separate processes, restarted when they die."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from archive import cpu_count
from archive.cli import trial_limits
from archive.errors import SettingsError, TrainingError, UsageError
from archive.settings import Settings, environment
from archive.trainer.storage.file_names import file_name
from archive.trainer.storage.history_gc import trainer_logs

GRACE_SECONDS, OBSERVED_SECONDS = 10.0, 30.0
"""Seconds that trainers get to end: without observers, and with observers, which may have to reach a server."""
RESTART_LIMIT = 5
"""Number of deaths without an evaluation in between after which trainers are no longer restarted."""
MOST_BYTES = 1 << 20
"""Size of a log above which the next trainer begins a new one; one older log is kept."""


class LocalTrainers:
    """A number of `archive trainer` processes that serve one study and end with this process.

    They run in separate sessions: Ctrl-C reaches only the search, which then lets each trainer return its proposal.
    The password is passed in the environment, never in the arguments.

    Args:
        count: Number of trainers.
        study: Study that they serve.
        settings: Settings of the archive; logs go to `home/logs/trainers`.
        device: Device of the trainings; None lets the trainers choose.
        limits: Limits of a trial, by the parameters of `archive.cli.trial_limits`.
        observe: Observers of the trials, as `--observe` takes them.
    """

    def __init__(
        self,
        count: int,
        study: str,
        settings: Settings,
        *,
        device: str | None = None,
        limits: Mapping[str, float | None] | None = None,
        observe: Sequence[str] = (),
    ) -> None:
        self.study, self.settings, self.device, self.observe = study, settings, device, observe
        self.limits = limits or {}
        self.logs = trainer_logs(settings.home)
        self.processes: list[subprocess.Popen[bytes] | None] = [None] * count
        self.deaths = 0
        self.evaluations = 0

    def __enter__(self) -> LocalTrainers:
        """Start the trainers."""
        if self.processes:
            self.logs.mkdir(parents=True, exist_ok=True)
        self.keep_alive(0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the trainers; each first returns the proposals that it has not finished."""
        running = [process for process in self.processes if process and process.poll() is None]
        for process in running:
            process.terminate()
        # Their own limit must pass first.
        deadline = time.monotonic() + (OBSERVED_SECONDS + 5 if self.observe else GRACE_SECONDS)
        for process in running:
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def keep_alive(self, evaluations: int) -> None:
        """Restart the trainers that have died.

        Args:
            evaluations: Number of evaluations of the study; progress resets the count of deaths.

        Raises:
            SettingsError: A trainer refused its settings, such as a missing device.
            TrainingError: Trainers die one after another; the message ends with the last lines of the log.
        """
        if evaluations > self.evaluations:
            self.evaluations, self.deaths = evaluations, 0
        for slot, process in enumerate(self.processes):
            if process is not None and process.poll() is None:
                continue
            if process is not None:
                if process.returncode == UsageError.exit_code:
                    raise SettingsError(f"a trainer cannot run on this machine; {self._log_tail(slot)}")
                self.deaths += 1
                if self.deaths > RESTART_LIMIT:
                    raise TrainingError(f"trainers end as soon as they start; {self._log_tail(slot)}")
            self.processes[slot] = self._start(slot)

    def _start(self, slot: int) -> subprocess.Popen[bytes]:
        # Not from the current folder: one named `archive` in it would hide an editable installation.
        command = [sys.executable, "-P", "-m", "archive.cli.main"]
        command += ["trainer", "--study", self.study, "--parent", str(os.getpid())]
        if self.device:
            command += ["--device", self.device]
        command += trial_limits.arguments(self.limits)
        if self.observe:
            command += ["--grace", f"{OBSERVED_SECONDS:g}s"]
        for observer in self.observe:
            command += ["--observe", observer]
        if len(self.processes) > 1:
            command += ["--threads", str(max(1, cpu_count.available() // len(self.processes)))]
        path = self._log(slot)
        if path.exists() and path.stat().st_size > MOST_BYTES:
            path.replace(path.with_name(f"{path.name}.1"))
        with path.open("ab") as log:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **environment(self.settings)},
                start_new_session=True,
            )

    def _log(self, slot: int) -> Path:
        return self.logs / f"{file_name(self.study)}-{slot}.log"

    def _log_tail(self, slot: int) -> str:
        path = self._log(slot)
        lines = path.read_text(errors="replace").splitlines()[-3:] if path.exists() else []
        return f"see {path}: " + " | ".join(lines)

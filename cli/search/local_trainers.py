"""Trainers that a search starts beside itself: processes of their own, restarted when they die."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType

from archive import cpu_count
from archive.errors import SettingsError, TrainingError, UsageError
from archive.settings import Settings, environment
from archive.trainer.storage.file_names import file_name
from archive.trainer.storage.history_gc import trainer_logs

RESTART_LIMIT = 5
"""A trainer that dies this often without an evaluation in between is not started again."""


MOST_BYTES = 1 << 20
"""Size of a log beyond which the next trainer begins another one; one older log is kept."""


class LocalTrainers:
    """A number of `archive trainer` processes that serve one study and end with this process.

    They run in process groups of their own: Ctrl-C reaches the search only, which then lets each of them hand its
    proposal back. The password travels in the environment, never in the arguments.

    Args:
        count: How many trainers.
        study: The study they serve.
        settings: Where the archive is; logs go to `home/logs/trainers`.
        device: Where they train; None lets them choose.
    """

    def __init__(self, count: int, study: str, settings: Settings, *, device: str | None = None) -> None:
        self.study, self.settings, self.device = study, settings, device
        self.logs = trainer_logs(settings.home)
        self.processes: list[subprocess.Popen[bytes] | None] = [None] * count
        self.deaths = 0
        self.evaluations = 0

    def __enter__(self) -> LocalTrainers:
        """Start them."""
        if self.processes:
            self.logs.mkdir(parents=True, exist_ok=True)
        self.keep_alive(0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let each hand back what it has not finished, then end it."""
        running = [process for process in self.processes if process and process.poll() is None]
        for process in running:
            process.terminate()
        deadline = time.monotonic() + 10
        for process in running:
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def keep_alive(self, evaluations: int) -> None:
        """Start again what has died.

        Args:
            evaluations: How many evaluations the study has; progress forgives earlier deaths.

        Raises:
            SettingsError: A trainer refused its settings, such as a device that is not there.
            TrainingError: Trainers die one after the other; the message ends with the log's last lines.
        """
        if evaluations > self.evaluations:
            self.evaluations, self.deaths = evaluations, 0
        for slot, process in enumerate(self.processes):
            if process is not None and process.poll() is None:
                continue
            if process is not None:
                if process.returncode == UsageError.exit_code:
                    raise SettingsError(f"no trainer can work here; {self._log_tail(slot)}")
                self.deaths += 1
                if self.deaths > RESTART_LIMIT:
                    raise TrainingError(f"trainers die as soon as they start; {self._log_tail(slot)}")
            self.processes[slot] = self._start(slot)

    def _start(self, slot: int) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "archive.cli.main"]
        command += ["trainer", "--study", self.study, "--parent", str(os.getpid())]
        if self.device:
            command += ["--device", self.device]
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

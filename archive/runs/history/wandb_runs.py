"""Runs in the folders that Weights & Biases writes: `wandb/offline-run-*/run-*.wandb`.

Folders of runs that were sent to the service (`wandb/run-*`) have the same files. A run that was
resumed has several folders. A run without an end whose file is `SILENT_SECONDS` old has crashed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

from archive.errors import UnusableFileError, UsageError, first_line
from archive.queue.causes import Cause
from archive.runs.arguments import split_seed
from archive.runs.code_state import MOST_DIFF
from archive.runs.history.external_run import (
    ExternalHistory,
    ExternalRun,
    Omissions,
    check_path,
    code_of,
    describe,
    end_of,
    find_files,
    flat_values,
    last_line,
    sorted_runs,
)
from archive.runs.history.wandb_log import read_records
from archive.runs.measurements import Measurements
from archive.runs.run_log import END_LETTERS
from archive.runs.texts.difference_files import list_changed_files
from archive.values import as_float, is_number

PATTERN = "run-*.wandb"

SILENT_SECONDS = 300.0
"""Time without a record after which the service, too, takes a run for crashed."""

_OWN = ("_wandb", "wandb_version")
"""Settings of the package itself."""


def read_wandb(path: Path) -> ExternalHistory:
    """Return the runs of a folder that holds folders of runs, at any depth.

    Args:
        path: The folder `wandb`, one above it, the folder of a run, or its file.

    Raises:
        SettingsError: wandb is not installed.
        UsageError: There is no such folder, or no run in it.
    """
    check_path(path)
    left_out = Omissions()
    logs: dict[tuple[str, str], _RunLog] = {}
    files = sorted(find_files(path, is_log), key=_age)
    if not files:
        raise UsageError(f"{path} has no files of Weights & Biases ({PATTERN})")

    for file in files:
        log = _RunLog()
        try:
            log.read(file)
        except (UnusableFileError, OSError) as error:
            left_out.add("files that cannot be read", first_line(error, 200))
            continue

        if not log.run_id:
            left_out.add("files without a run", file.name)
            continue

        earlier = logs.setdefault((log.project, log.run_id), log)
        if earlier is not log:
            # A run that was resumed has a folder for each time.
            earlier.read(file)

    runs = []
    for log in logs.values():
        if log.is_running():
            left_out.add("runs that still run", log.run_id)
        else:
            runs.append(log.run())

        for name in log.media:
            left_out.add("media and tables", name)

        if log.has_system_metrics:
            left_out.add("metrics of the machine, of runs", log.run_id)

    return ExternalHistory(sorted_runs(runs), left_out.texts())


def is_log(name: str) -> bool:
    """Return whether a file of this name has the records of a run."""
    return PurePath(name).match(PATTERN)


def _age(file: Path) -> tuple[str, Path]:
    # The name of a folder has the time of its start.
    return file.parent.name.removeprefix("offline-"), file


def read_metrics(path: Path, measurements: Measurements) -> None:
    """Take the metrics of one file."""
    log = _RunLog(measurements)
    log.read(path)
    measurements.add(None, log.final_metrics())


@dataclass
class _RunLog:
    """What the files of one run say."""

    measurements: Measurements = field(default_factory=Measurements)
    run_id: str = ""
    project: str = ""
    parent: str | None = None
    name: str = ""
    notes: str = ""
    group: str = ""
    tags: list[str] = field(default_factory=list)
    config: dict[str, Any] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)
    started: float | None = None
    ended: float | None = None
    exit_code: int | None = None
    commit: str | None = None
    program: str | None = None
    command: list[str] = field(default_factory=list)
    folder: str | None = None
    environment: dict[str, Any] = field(default_factory=dict)
    hardware: str | None = None
    output: str = ""
    diff: str | None = None
    media: dict[str, None] = field(default_factory=dict)
    has_system_metrics: bool = False
    modified: float = 0.0

    def read(self, path: Path) -> None:
        """Take the records of a file, and the files beside it."""
        self.exit_code = None
        self.modified = path.stat().st_mtime
        for record in read_records(path):
            self._take(record)

        files = path.parent / "files"
        self.output = end_of(files / "output.log") or self.output
        with suppress(OSError), (files / "diff.patch").open(errors="replace") as file:
            self.diff = file.read(4 * MOST_DIFF)

        self._take_metadata(files / "wandb-metadata.json")

    def is_running(self) -> bool:
        """Return whether the run has no end, and was written a short time ago."""
        return self.exit_code is None and time.time() - self.modified < SILENT_SECONDS

    def final_metrics(self) -> dict[str, float]:
        """Return the numbers of the summary, by name."""
        metrics = {}
        for name, value in _flat_metrics(self.summary):
            number = as_float(value) if _is_metric(value) else None
            if number is not None:
                metrics[name] = number

        return metrics

    def run(self) -> ExternalRun:
        """Return the run."""
        self.measurements.add(None, self.final_metrics())
        values, seed = split_seed(flat_values(self.config, _OWN))
        finished = self.ended or self.modified
        if self.started is not None:
            finished = max(finished, self.started)

        return ExternalRun(
            identity=f"wandb/{self.run_id}",
            values=values,
            metrics=self.measurements.latest,
            curve=self.measurements.curve(),
            parent=None if self.parent is None else f"wandb/{self.parent}",
            project=self.project or None,
            motivation=describe(self.name, self.notes, self.tags, self.group),
            started=None if self.started is None else int(self.started * 1000),
            finished=int(finished * 1000),
            seed=seed,
            reason=self._reason(),
            cause=self._cause(),
            program=self.program,
            command=self.command,
            folder=self.folder,
            code=code_of(self.commit, self.diff),
            commit=self.commit,
            diff=self.diff,
            changed=list_changed_files(self.diff),
            log_end=self.output or None,
            environment=self.environment,
            hardware=self.hardware,
        )

    def _reason(self) -> str | None:
        if self.exit_code is None:
            return "crashed: its record has no end"

        if self.exit_code == 0:
            return None

        line = last_line(self.output)
        ended = f"ended with status {self.exit_code}"
        return ended if line is None else f"{ended}: {line}"

    def _cause(self) -> str | None:
        if self.exit_code is None:
            return Cause.CRASH.value

        return Cause.TRAINING.value if self.exit_code else None

    def _take(self, record: Any) -> None:
        kind = record.WhichOneof("record_type")
        match kind:
            case "run":
                self._take_run(record.run)
            case "config":
                self._take_config(record.config)
            case "history":
                self._take_history(record.history)
            case "summary":
                self._take_summary(record.summary)
            case "output_raw":
                self.output = (self.output + record.output_raw.line)[-END_LETTERS:]
            case "environment":
                self._take_environment(record.environment)
            case "stats":
                self.has_system_metrics = True
            case "exit":
                self.exit_code = record.exit.exit_code

    def _take_run(self, run: Any) -> None:
        self.run_id = run.run_id
        self.project = run.project
        self.name = run.display_name
        self.notes = run.notes
        self.group = run.run_group
        self.tags = list(run.tags)
        self.commit = run.git.commit or self.commit
        if run.HasField("branch_point") and run.branch_point.run != run.run_id:
            self.parent = run.branch_point.run or None

        if self.started is None and run.HasField("start_time"):
            self.started = _seconds(run.start_time)

        self._take_config(run.config)

    def _take_config(self, config: Any) -> None:
        for item in config.update:
            _put(self.config, _path(item), _json(item.value_json))

        for item in config.remove:
            _remove(self.config, _path(item))

    def _take_summary(self, summary: Any) -> None:
        for item in summary.update:
            _put(self.summary, _path(item), _json(item.value_json))

        for item in summary.remove:
            _remove(self.summary, _path(item))

    def _take_history(self, history: Any) -> None:
        row: dict[str, Any] = {}
        for item in history.item:
            _put(row, _path(item), _json(item.value_json))

        moment = as_float(row.get("_timestamp"))
        if moment is not None:
            self.ended = max(self.ended or 0.0, moment)

        step = as_float(row.get("_step", history.step.num if history.HasField("step") else None))
        metrics = {}
        for name, value in _flat_metrics(row):
            number = as_float(value) if _is_metric(value) else None
            if number is not None:
                metrics[name] = number
            elif _is_medium(value):
                self.media[name] = None

        is_step = step is not None and step.is_integer()
        self.measurements.add(int(step or 0) if is_step else None, metrics)

    def _take_environment(self, environment: Any) -> None:
        self.folder = environment.root or self.folder
        self.commit = environment.git.commit or self.commit
        program = environment.code_path or environment.program
        if program:
            self._take_command(program, list(environment.args))

        for name in ("python", "os", "host"):
            text = getattr(environment, name)
            if text:
                self.environment[name] = text

        names = [gpu.name for gpu in environment.gpu_nvidia if gpu.name]
        names += [environment.gpu_type] if environment.gpu_type and not names else []
        if names:
            self.environment["gpus"] = names
            self.hardware = names[0]

    def _take_metadata(self, path: Path) -> None:
        """Take what releases before 0.19 keep in a file alone."""
        with suppress(OSError, ValueError, RecursionError):
            document = json.loads(path.read_text(encoding="utf-8", errors="replace"))
            if not isinstance(document, dict):
                return

            git = document.get("git")
            if self.commit is None and isinstance(git, dict) and git.get("commit"):
                self.commit = str(git["commit"])

            program = document.get("codePath") or document.get("program")
            arguments = document.get("args")
            if self.program is None and program:
                words = arguments if isinstance(arguments, list) else []
                self._take_command(str(program), list(map(str, words)))

            if self.hardware is None and isinstance(document.get("gpu"), str):
                self.hardware = document["gpu"]

    def _take_command(self, program: str, arguments: list[str]) -> None:
        # `<python with no main file>`
        if program.startswith("<"):
            return

        self.program = PurePath(program).name
        self.command = [program, *arguments]


def _path(item: Any) -> list[str]:
    return list(item.nested_key) or [item.key]


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _put(document: dict[str, Any], path: list[str], value: Any) -> None:
    """Set a value in nested objects."""
    for name in path[:-1]:
        inner = document.get(name)
        if not isinstance(inner, dict):
            inner = document[name] = {}

        document = inner

    document[path[-1]] = value


def _remove(document: Any, path: list[str]) -> None:
    """Delete a value in nested objects, if it is there."""
    for name in path[:-1]:
        document = document.get(name)
        if not isinstance(document, dict):
            return

    document.pop(path[-1], None)


def _flat_metrics(document: dict[str, Any], group: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of a row by names as the service shows them: `val.acc`.

    Names that begin with `_` are of the package itself. Media are one value.
    """
    for key, value in document.items():
        if not group and key.startswith("_"):
            continue

        if isinstance(value, dict) and not _is_medium(value):
            yield from _flat_metrics(value, f"{group}{key}.")
        else:
            yield group + key, value


def _is_metric(value: Any) -> bool:
    # JSON of the package has numbers without an end as texts.
    return is_number(value) or value in ("NaN", "Infinity", "-Infinity")


def _is_medium(value: Any) -> bool:
    """Return whether a value is an image, a histogram, a table or another object of the package."""
    return isinstance(value, dict) and "_type" in value


def _seconds(moment: Any) -> float:
    return float(moment.seconds + moment.nanos / 1e9)

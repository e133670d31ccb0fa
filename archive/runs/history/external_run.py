"""A run of another tool, as every source of a history gives it."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from archive.architecture.graph import Architecture
from archive.errors import SettingsError, UsageError
from archive.queue.causes import Cause
from archive.runs.measurements import choose_objective
from archive.runs.run_log import END_LETTERS
from archive.values import counted, in_line

MOST_EXAMPLES = 3
"""Names of what is left out that are shown."""

MOST_VALUES = 1_000
"""Values that a run was given; those beyond are left out."""

MOST_FILES = 100_000
"""Files of a source that are read."""


_FAILED_STATES = {
    "crash": Cause.CRASH,
    "crashed": Cause.CRASH,
    "killed": Cause.CRASH,
    "preempted": Cause.CRASH,
    "fail": Cause.TRAINING,
    "failed": Cause.TRAINING,
    "error": Cause.TRAINING,
    "diverged": Cause.TRAINING,
    "oom": Cause.OUT_OF_MEMORY,
    "timeout": Cause.LIMIT,
}

_FAILED_WORDS = {
    "nan": Cause.TRAINING,
    "diverged": Cause.TRAINING,
    "diverges": Cause.TRAINING,
    "crashed": Cause.CRASH,
    "oom": Cause.OUT_OF_MEMORY,
}

_SUCCESS = frozenset(["ok", "success", "succeeded", "done", "finished", "complete", "completed"])


@dataclass(frozen=True)
class ExternalRun:
    """A run of another tool.

    Attributes:
        identity: Its id, unique in its history and equal at each reading.
        values: JSON values that it was given, by name.
        metrics: Its last metrics, also those that are no numbers.
        curve: Its metrics by step as parallel lists, `epoch` among them.
        parent: Id of the run that it is a change of; None without one.
        project: Its project or experiment; None where the source has none.
        motivation: Reason for it in words; None without one.
        started: Its start, in milliseconds since 1970; None where it is unknown.
        finished: Its end, likewise.
        seed: Its seed; None where it is unknown.
        reason: Why it failed; None where it did not.
        cause: Kind of that reason, as `archive.queue.causes` lists them.
        program: Name of its program; None where it is unknown.
        command: Program and arguments; empty where they are unknown.
        folder: Folder in which it ran; None where it is unknown.
        code: Digest that tells its source files from others; None where they are unknown.
        commit: Commit of its source files; None where it is unknown.
        branch: Branch of that commit; None where it is unknown.
        diff: How its source files differ from the commit, as text; None where it is unknown.
        changed: Source files that it changes, as `train.py +3 -1`.
        log_end: End of its output; None where it is not kept.
        environment: Packages, devices and settings that its value may depend on.
        hardware: Name of its device's hardware; None where it is unknown.
        network: The network that it trained; None where it is unknown.
    """

    identity: str
    values: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    curve: Mapping[str, list[float]] = field(default_factory=dict)
    parent: str | None = None
    project: str | None = None
    motivation: str | None = None
    started: int | None = None
    finished: int | None = None
    seed: int | None = None
    reason: str | None = None
    cause: str | None = None
    program: str | None = None
    command: Sequence[str] = ()
    folder: str | None = None
    code: str | None = None
    commit: str | None = None
    branch: str | None = None
    diff: str | None = None
    changed: Sequence[str] = ()
    log_end: str | None = None
    environment: Mapping[str, Any] = field(default_factory=dict)
    hardware: str | None = None
    network: Architecture | None = None


class Omissions:
    """What a source leaves out, with a few names of each kind."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._names: dict[str, dict[str, None]] = {}

    def add(self, kind: str, name: str) -> None:
        """Count something that is left out.

        Args:
            kind: What it is and why, in the plural: `runs that still run`.
            name: Its name, which is counted once.
        """
        self._names.setdefault(kind, {})[in_line(name)] = None

    def texts(self) -> list[str]:
        """Return a text for each kind: `runs that still run: 2 (a, b)`."""
        texts = []
        for kind, names in self._names.items():
            examples = ", ".join(list(names)[:MOST_EXAMPLES])
            more = ", …" if len(names) > MOST_EXAMPLES else ""
            texts.append(f"{kind}: {len(names)} ({examples}{more})")

        return texts


@dataclass(frozen=True)
class ExternalHistory:
    """The runs of a source.

    Attributes:
        runs: The runs, oldest first.
        left_out: What else the source has, as `Omissions.texts` says it.
        name: Name for the study; None leaves it to the runs.
    """

    runs: list[ExternalRun]
    left_out: list[str]
    name: str | None = None


def sorted_runs(runs: Iterable[ExternalRun]) -> list[ExternalRun]:
    """Return runs by their start, those without one first."""
    return sorted(runs, key=lambda run: (run.started or 0, run.identity))


def check_path(path: Path) -> None:
    """Check that a file or folder is there.

    Raises:
        UsageError: It is not.
    """
    if not path.exists():
        raise UsageError(f"there is no {path}")


def find_files(path: Path, is_wanted: Callable[[str], bool]) -> list[Path]:
    """Return the files in a folder at any depth, or the file itself.

    Links to folders are not followed.

    Args:
        path: The folder or the file.
        is_wanted: Whether a file of this name is one of them.

    Raises:
        UsageError: There are more than `MOST_FILES`.
    """
    if path.is_file():
        return [path]

    paths: list[Path] = []
    for root, _, names in os.walk(path):
        paths += [Path(root, name) for name in names if is_wanted(name)]
        if len(paths) > MOST_FILES:
            raise UsageError(f"{path} has more than {MOST_FILES:,} files: name a folder in it")

    return sorted(paths)


def missing_package(what: str, extra: str) -> SettingsError:
    """Return the error for a package that is not installed."""
    return SettingsError(f"reading {what} needs it: pip install 'nas-archive[{extra}]'")


def flat_values(document: Mapping[str, Any], leave: Collection[str] = ()) -> dict[str, Any]:
    """Return the values of nested settings by names as `model_width`, those without a value left out.

    Args:
        document: The settings.
        leave: Names on top that are left out.
    """
    values: dict[str, Any] = {}
    _flatten(document, "", values, leave)
    return values


def _flatten(
    document: Mapping[str, Any], group: str, values: dict[str, Any], leave: Collection[str] = ()
) -> None:
    for key, value in document.items():
        name = group + re.sub(r"[^A-Za-z0-9_]", "_", str(key))
        if key in leave or value is None or len(values) >= MOST_VALUES:
            continue

        if isinstance(value, Mapping):
            _flatten(value, f"{name}_", values)
            continue

        while name in values:
            name += "_"

        values[name] = value


def code_of(commit: str | None, diff: str | None) -> str | None:
    """Return what tells the source files of a run from others.

    Args:
        commit: Their commit; None where it is unknown.
        diff: How they differ from it; None where that is unknown.
    """
    if commit is None or not diff:
        return None if commit is None else commit[:12]

    content = f"{commit}\0{diff}".encode(errors="replace")
    return hashlib.sha1(content, usedforsecurity=False).hexdigest()[:12]


def describe(
    name: str | None, notes: str | None, tags: Iterable[str] = (), group: str | None = None
) -> str | None:
    """Return the reason for a run in words: its name, its notes, its tags and its group."""
    parts = [part.strip() for part in (name, notes) if part and part.strip()]
    text = ": ".join(parts)
    marks = [tag for tag in tags if tag]
    if group:
        marks.append(f"group {group}")

    if marks:
        text = f"{text} [{', '.join(marks)}]".strip()

    return text or None


def cause_of(state: str) -> Cause | None:
    """Return why a run failed, from the word for its state; None for a word of no failure.

    Of several words, as in `loss is nan!`, those alone count that cannot belong to a success.
    """
    text = state.strip().lower()
    if text in _FAILED_STATES:
        return _FAILED_STATES[text]

    for word in re.findall(r"[a-z]+", text):
        if word in _FAILED_WORDS:
            return _FAILED_WORDS[word]

    return None


def is_success(state: str) -> bool:
    """Return whether a word for a state says no more than that the run has ended."""
    return state.strip().lower() in _SUCCESS


def end_of(path: Path, most: int = END_LETTERS) -> str | None:
    """Return the end of a text file; None where there is none."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - 4 * most))
            text = file.read().decode(errors="replace")
    except OSError:
        return None

    return text[-most:] or None


def last_line(text: str | None) -> str | None:
    """Return the last line of an output that is not blank."""
    lines = [line.strip() for line in (text or "").splitlines() if line.strip()]
    return lines[-1][:500] if lines else None


def choose_project(history: ExternalHistory, project: str | None, option: str) -> ExternalHistory:
    """Return the runs of one project of a history.

    Args:
        history: The history.
        project: Name of the project; None where the history has only one.
        option: The option that names it.

    Raises:
        UsageError: There are several, and none is named, or there is none of this name.
    """
    projects = sorted({run.project for run in history.runs if run.project is not None})
    if project is None:
        if len(projects) > 1:
            raise UsageError(
                f"the runs are of {counted(len(projects), option)}: --{option} names one of "
                f"{_listed(projects)}"
            )

        return ExternalHistory(history.runs, history.left_out, *projects)

    if project not in projects:
        raise UsageError(
            f"there is no {option} {project!r:.80}: there is {_listed(projects) or 'none'}"
        )

    runs = [run for run in history.runs if run.project == project]
    return ExternalHistory(runs, history.left_out, project)


def choose_metric(runs: Iterable[ExternalRun]) -> tuple[str, str]:
    """Return the metric that runs are judged by, and its direction, from the names they have.

    Raises:
        UsageError: No name says it; the message lists the metrics.
    """
    counts: dict[str, int] = {}
    for run in runs:
        for name in run.metrics:
            counts[name] = counts.get(name, 0) + 1

    names = sorted(counts, key=lambda name: (-counts[name], name))
    if not names:
        raise UsageError("no run has a metric to be judged by")

    # A metric that few runs have says little of the others.
    frequent = [name for name in names if 2 * counts[name] >= counts[names[0]]]
    choice = choose_objective(frequent)
    if choice is None:
        raise UsageError(
            "runs are judged by a metric: --minimise METRIC or --maximise METRIC, of "
            f"{_listed(names)}"
        )

    return choice


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(in_line, names[:20]))
    return f"{shown} and {len(names) - 20} more" if len(names) > 20 else shown

"""A run that a program tells of, and what it must be."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archive.architecture.graph import Architecture
from archive.errors import UsageError
from archive.runs.code_state import told_changes
from archive.runs.life_cycle import RunRequest, check_request
from archive.runs.measurements import (
    MOST_METRICS,
    MOST_NAME,
    MOST_STEP,
    STEPS,
    Measurements,
    choose_objective,
    is_metric_name,
)
from archive.runs.recording import whole_seed
from archive.store.records import Study
from archive.values import brief, check_length, is_duration, is_number

if TYPE_CHECKING:
    from archive.api import Archive

MOST_VALUES = 200
MOST_VALUE_LETTERS = 1 << 16
"""Values of one run, and the length of all of them as JSON."""

MOST_CURVE = 100_000
"""Points of a curve that is told; `measurements.MOST_POINTS` of them are kept."""

MOST_TOLD_DIFF = 1 << 24
"""Longest difference that is read, in letters; `code_state.MOST_DIFF` of them are kept."""


@dataclass(frozen=True)
class ToldRun:
    """A run that has ended, as the program that made it tells.

    Attributes:
        study: Name of its study.
        metrics: Its last metrics.
        reason: Why it failed; None where it did not.
        values: Values that it was given, by name.
        program: Name of the program; None takes the parent's.
        curve: Metrics by step, with the steps as `step` or `epoch`.
        motivation: Reason for the run in words; None without one.
        parent: The run that it is a change of: STUDY#NUMBER, a number in the study, `best` or
            `last`; None without one.
        network: The network that it trained; None where it is unknown.
        diff: Unified difference of its source files from the parent's, or else from the commit;
            None where they are the parent's.
        seed: Its seed; None where it has none.
        seconds: Its time; None where it is unknown.
        objective: Metric that a new study judges by; None leaves it to the names of the metrics.
        direction: `maximise` or `minimise` that metric; None with None.
        task: Name of the task of a new study; None for the study's name.
        model: Name of the language model that tells; None for another program.
        token: Text that identifies the run; None takes all that is told.
    """

    study: str
    metrics: Mapping[str, float] = field(default_factory=dict)
    reason: str | None = None
    values: Mapping[str, Any] = field(default_factory=dict)
    program: str | None = None
    curve: Mapping[str, Sequence[float | None]] = field(default_factory=dict)
    motivation: str | None = None
    parent: str | None = None
    network: Architecture | None = None
    diff: str | None = None
    seed: int | None = None
    seconds: float | None = None
    objective: str | None = None
    direction: str | None = None
    task: str | None = None
    model: str | None = None
    token: str | None = None


def measure(report: ToldRun) -> Measurements:
    """Return the metrics and the curve of a run.

    Raises:
        UsageError: A metric is no number, or the lists of the curve do not fit.
    """
    measured = Measurements()
    for name in [*report.metrics, *report.curve]:
        if not is_metric_name(name):
            raise UsageError(
                f"a metric needs a name of at most {MOST_NAME} letters, got {name!r:.80}"
            )

    if len({*report.metrics, *report.curve}) > MOST_METRICS:
        raise UsageError(f"a run has at most {MOST_METRICS} metrics")

    for name, value in report.metrics.items():
        if not is_number(value) or not math.isfinite(value):
            raise UsageError(
                f"the metric {name!r:.60} must be a finite number, got {value!r:.60}: "
                "a run that diverged has a reason instead"
            )

    lengths = {name: len(values) for name, values in report.curve.items()}
    if len(set(lengths.values())) > 1 or max(lengths.values(), default=0) > MOST_CURVE:
        described = ", ".join(f"{name} {length}" for name, length in list(lengths.items())[:8])
        raise UsageError(
            f"the lists of a curve have one length of at most {MOST_CURVE}, got {described}"
        )

    ordering = [name for name in STEPS if name in report.curve]
    for position in range(next(iter(lengths.values()), 0)):
        step = position + 1
        if ordering:
            step = _step(report.curve[ordering[0]][position])

        point = {}
        for name, values in report.curve.items():
            number = _point(name, values[position])
            if name not in STEPS and number is not None:
                point[name] = number

        measured.add(step, point)

    measured.add(None, report.metrics)
    return measured


def _point(name: str, value: Any) -> float | None:
    """Return a value of a curve; None where the step has none.

    Raises:
        UsageError: It is no number.
    """
    if value is None or is_number(value):
        return None if value is None else float(value)

    raise UsageError(f"the curve of {name!r:.60} has numbers and nulls, got {value!r:.60}")


def _step(value: Any) -> int:
    """Return a step of a curve.

    Raises:
        UsageError: It is no whole number from 0.
    """
    if is_number(value) and 0 <= value <= MOST_STEP and value == int(value):
        return int(value)

    raise UsageError(f"the steps of a curve are whole numbers from 0, got {value!r:.60}")


def check(report: ToldRun, runs: Path) -> None:
    """Check what is told of a run, as far as that needs no archive.

    Args:
        report: The run.
        runs: Folder of the runs, which may be the parent.

    Raises:
        UsageError: It is no run.
    """
    request = RunRequest(
        study=report.study, parent=report.parent, objective=report.objective, task=report.task
    )
    check_request(request, runs)
    for what, name in {
        "program": report.program,
        "model": report.model,
        "token": report.token,
    }.items():
        if name is not None:
            check_length(f"the name of the {what}", name)

    _check_values(report.values)
    if report.seed is not None:
        whole_seed(report.seed)

    if report.seconds is not None and not is_duration(report.seconds):
        raise UsageError(f"the seconds of a run are a number from 0, got {report.seconds!r:.60}")

    if report.diff is not None and len(report.diff) > MOST_TOLD_DIFF:
        raise UsageError(
            f"a difference has at most {MOST_TOLD_DIFF} letters, got {len(report.diff)}"
        )

    if report.diff and not told_changes(report.diff):
        raise UsageError(
            f"the difference has no changed line, as 'git diff' writes them: {brief(report.diff)}"
        )

    if report.reason is not None and not report.reason.strip():
        raise UsageError("the reason of a failure is empty")

    if report.reason is None and not report.metrics and not report.curve:
        raise UsageError("a run has metrics, or the reason why it failed")


def check_in_study(archive: Archive, report: ToldRun, metrics: Mapping[str, float]) -> Study | None:
    """Check that a run fits to its study, and return the study; None where there is none yet.

    Args:
        archive: The archive.
        report: The run.
        metrics: Its last metrics.

    Raises:
        UsageError: The study cannot have it.
    """
    if report.study not in archive.studies.names():
        if report.reason is None:
            _check_new(report, metrics)

        return None

    study = archive.studies.get(report.study)
    if report.objective not in (None, study.objective):
        raise UsageError(
            f"the study {study.name!r} judges by {study.objective}, got {report.objective!r:.80}"
        )

    if report.reason is None:
        _check_value(study.objective, metrics)

    return study


def _check_new(report: ToldRun, metrics: Mapping[str, float]) -> None:
    """Check that a new study knows which metric it judges by."""
    if report.objective is not None:
        _check_value(report.objective, metrics)
    elif not metrics or choose_objective(metrics) is None:
        names = ", ".join(list(metrics)[:8]) or "none"
        raise UsageError(
            f"the new study {report.study!r} needs the metric that it judges by, minimise or maximise; "
            f"metrics of the run: {names}"
        )


def _check_value(objective: str, metrics: Mapping[str, float]) -> None:
    if objective not in metrics:
        names = ", ".join(list(metrics)[:8]) or "none"
        raise UsageError(
            f"the run has no value of {objective!r}; its metrics: {names}: give it, or the reason "
            "why the run failed"
        )


def _check_values(values: Mapping[str, Any]) -> None:
    for name in values:
        if not is_metric_name(name):
            raise UsageError(
                f"a value needs a name of at most {MOST_NAME} letters, got {name!r:.80}"
            )

    if len(values) > MOST_VALUES:
        raise UsageError(f"a run has at most {MOST_VALUES} values, got {len(values)}")

    length = len(json.dumps(dict(values), default=str))
    if length > MOST_VALUE_LETTERS:
        raise UsageError(
            f"the values of a run have at most {MOST_VALUE_LETTERS} letters, got {length}"
        )

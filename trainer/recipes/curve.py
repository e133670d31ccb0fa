"""Learning curve of a trial: validated metrics, one row for each report."""

from __future__ import annotations

import math
import numbers
import operator
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from archive.errors import TrainingError

Metrics = dict[str, float]

STEP = "epoch"
SECONDS = "seconds"
"""Columns of every curve: the step of the report, and the time since the start of the trial."""
MOST_METRICS = 256
MOST_REPORTS = 100_000
MOST_VALUES = 1_000_000
"""Bounds of a curve, which is stored with the evaluation.

Reports are made once an epoch, not after each batch.

The embedded server writes a million values, 9 MB, in 15 seconds, and twice as many in a minute.
"""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_./@-]{0,63}")


class Curve:
    """Reported metrics of a trial.

    Attributes:
        columns: One list for each metric, `epoch` and `seconds`, with an entry for each report; NaN
            where a report has no value of the metric.
    """

    def __init__(self, columns: Mapping[str, list[float]] | None = None) -> None:
        self.columns: dict[str, list[float]] = {
            name: list(values) for name, values in (columns or {}).items()
        }

    def __len__(self) -> int:
        """Return the number of reports."""
        return len(self.columns.get(STEP, ()))

    def add(self, step: int, metrics: Mapping[str, Any], seconds: float) -> Metrics:
        """Add a report, and return its entries.

        Args:
            step: Number of the epoch, larger than in the report before.
            metrics: Values by name.
            seconds: Time since the start of the trial.

        Raises:
            TrainingError: A step, a name or a value cannot be recorded.
        """
        row = {
            STEP: self._step(step),
            **check_metrics(metrics, f" in step {step}"),
            SECONDS: seconds,
        }
        if len(self) >= MOST_REPORTS:
            raise TrainingError(
                f"a trial may report {MOST_REPORTS} times: report once an epoch, "
                "not after each batch"
            )

        width = len(self.columns.keys() | row.keys())
        if width > MOST_METRICS:
            raise TrainingError(
                f"a trial may report {MOST_METRICS} different metrics, got more in step {step}"
            )

        count = len(self)
        if width * (count + 1) > MOST_VALUES:
            raise TrainingError(
                f"a trial may report {MOST_VALUES} values, got {count + 1} reports "
                f"of {width} metrics: report once an epoch, not after each batch"
            )

        if new := [name for name in row if name not in self.columns]:
            every = self.columns | {name: [math.nan] * count for name in new}
            self.columns = {name: every[name] for name in _in_order(every)}

        for name, values in self.columns.items():
            values.append(row.get(name, math.nan))

        return row

    def rows(self) -> list[Metrics]:
        """Return the entries of each report."""
        rows = zip(*self.columns.values(), strict=True)
        named = (dict(zip(self.columns, row, strict=True)) for row in rows)
        return [
            {name: value for name, value in row.items() if not math.isnan(value)} for row in named
        ]

    def last(self) -> Metrics:
        """Return the last value of each metric."""
        reported = {}
        for name, values in self.columns.items():
            reported[name] = [value for value in values if not math.isnan(value)]

        return {
            name: values[-1]
            for name, values in reported.items()
            if values and name not in (STEP, SECONDS)
        }

    def _step(self, step: Any) -> float:
        if isinstance(step, bool) or not hasattr(step, "__index__"):
            raise TrainingError(f"the step of a report must be a whole number, got {step!r}")

        number = operator.index(step)
        before = self.columns[STEP][-1] if len(self) else -1.0
        if not before < number < 2**53:
            raise TrainingError(
                f"the steps of reports must increase, got {number} after {before:g}"
            )

        return float(number)


def check_metrics(metrics: Mapping[str, Any], where: str = "") -> Metrics:
    """Return metrics as floats.

    Args:
        metrics: Values by name: finite numbers, or arrays and tensors of one.
        where: End of the message on a value that is not finite.

    Raises:
        TrainingError: A name or a value cannot be recorded.
    """
    if not isinstance(metrics, Mapping):
        raise TrainingError(
            f"metrics must be a mapping of names to numbers, got {type(metrics).__name__}"
        )

    return {_name(name): _number(name, value, where) for name, value in metrics.items()}


def _name(name: Any) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise TrainingError(
            f"the name of a metric must be 1 to 64 letters, digits or ._/@-, got {str(name)[:80]!r}"
        )

    if name in (STEP, SECONDS):
        raise TrainingError(
            f"the metric {name!r} is recorded with every report: report another name"
        )

    return name


def _number(name: str, value: Any, where: str) -> float:
    number = value
    with suppress(ValueError, RuntimeError):  # An array or a tensor of several elements.
        number = value.item() if hasattr(value, "item") else value

    if isinstance(number, bool) or not isinstance(number, numbers.Real):
        raise TrainingError(f"the metric {name!r} must be a number, got {type(value).__name__}")

    try:
        number = float(number)
    except OverflowError as error:  # An integer or a fraction.
        raise TrainingError(f"the metric {name!r} is larger than a float{where}") from error

    if not math.isfinite(number):
        raise TrainingError(f"training diverged: {name} is {number}{where}")

    return number


def _in_order(columns: Mapping[str, Any]) -> list[str]:
    """Return the names of the columns: the step first, the seconds last."""
    return [STEP, *(name for name in columns if name not in (STEP, SECONDS)), SECONDS]

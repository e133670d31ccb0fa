"""Metrics that a program prints or writes to files.

Lines of output, in this order:

    {"step": 3, "val_loss": 0.52}               a JSON object: its numbers
    epoch 3 | val_loss: 0.52 | lr=0.001         `name: value` and `name=value`
    a line that the user's pattern matches      its groups `name` and `value`, or groups by name

A line with a step, an epoch or an iteration is a point of the curve; the last value of each metric
is the result's. Files that the program writes beside (`metrics.jsonl`, `metrics.json`) are read as
such lines. Curves keep about `MOST_POINTS` points: beyond, every second value is left out of the
metrics that have more than `MOST_SPARSE`, so that a validation every thousand steps stays whole.
"""

from __future__ import annotations

import json
import math
import re
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from archive.errors import UsageError
from archive.values import as_float, is_number, whole_number

STEPS = ("step", "global_step", "_step", "iter", "iteration", "epoch")
"""Names of the number that orders the points of a curve, the finest first."""

OF_PROCESS = ("cpu_seconds", "peak_memory_bytes")
"""Metrics of the process of a program; no run is judged by them unless the user says so."""

MOST_POINTS = 2_000
MOST_SPARSE = MOST_POINTS // 4
"""Values of a metric that are kept whole, whatever the other metrics have."""
MOST_METRICS = 200
MOST_NAME = 200
"""Longest name of a metric, in letters."""
MOST_STEP = 2**53 - 1
MOST_LINE = 1 << 16
"""Longest line that is searched, in letters."""
MOST_FILE_BYTES = 64 << 20
MOST_LINES_BYTES = 1 << 30
"""Bytes at the end of a file of lines that are read."""

FILES = ("metrics.jsonl", "metrics.json", "results.json", "log.jsonl")
"""Files with metrics that are read where the program has written them."""

_PAIR = re.compile(
    r"(?<![\w./-])([A-Za-z_][\w./]*)\s*[:=]\s*"
    r"([-+]?(?:\d++\.?\d*+|\.\d++)(?:[eE][-+]?\d++)?|[-+]?(?:nan|inf))(?![\w.%/:-])",
    re.ASCII | re.IGNORECASE,
)
"""Digits are taken once (`++`): a line of digits alone would else take minutes."""

_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_STEP = re.compile(r"\b(step|epoch|iter(?:ation)?)\s*[:=#]?\s*\[?(\d+)", re.IGNORECASE | re.ASCII)


@dataclass
class Measurements:
    """The metrics of one run so far.

    Attributes:
        pattern: A user's pattern for lines; None reads lines as the module says.
        latest: The last value of each metric.
        points: Metrics of each step.
    """

    pattern: re.Pattern[str] | None = None
    latest: dict[str, float] = field(default_factory=dict)
    points: dict[int, dict[str, float]] = field(default_factory=dict)
    _counts: dict[str, int] = field(default_factory=dict)
    _distance: int = 0
    _last: int = -1
    _limit: int = MOST_POINTS

    def read_line(self, line: str) -> None:
        """Take the metrics of a line, if it has any."""
        if len(line) > MOST_LINE:
            return

        # A progress bar writes over its line.
        for part in _COLOUR.sub("", line).split("\r"):
            text = part.strip()
            if text and _is_text(text):
                self._read_text(text)

    def _read_text(self, text: str) -> None:
        if self.pattern is not None:
            self._read_pattern(text)
        elif text.startswith("{'"):
            # A dictionary as Python prints it.
            self.read_object(text.replace("'", '"'))
        elif text.startswith("{"):
            self.read_object(text)
        elif ":" in text or "=" in text:
            self._read_pairs(text)

    def add(self, step: int | None, metrics: Mapping[str, float]) -> None:
        """Take metrics of a step; None where they belong to no step."""
        for name, value in metrics.items():
            is_new = name not in self.latest
            if not is_new or (len(self.latest) < MOST_METRICS and is_metric_name(name)):
                self.latest[name] = value

        if step is None or not 0 <= step <= MOST_STEP:
            return

        is_due = self._takes(step)
        kept = {}
        for name, value in metrics.items():
            if name in self.latest and (is_due or self._counts.get(name, 0) < MOST_SPARSE):
                kept[name] = value

        if not kept:
            return

        if is_due:
            self._last = max(self._last, step)

        point = self.points.setdefault(step, {})
        for name in kept.keys() - point.keys():
            self._counts[name] = self._counts.get(name, 0) + 1

        point.update(kept)
        if len(self.points) > self._limit:
            self._thin()

    def read_file(self, path: Path) -> None:
        """Take the metrics of a file of JSON objects, or of one object."""
        about = path.stat()
        if not stat.S_ISREG(about.st_mode):
            return

        if path.suffix == ".json":
            if about.st_size <= MOST_FILE_BYTES:
                self.read_object(path.read_text(encoding="utf-8", errors="replace"))

            return

        with path.open(encoding="utf-8", errors="replace") as file:
            # The end of a long file has the last values.
            file.seek(max(0, about.st_size - MOST_LINES_BYTES))
            while line := file.readline(MOST_LINE):
                self.read_object(line.strip())

    def result(self) -> dict[str, float]:
        """Return the last value of each metric that is a number."""
        return {name: value for name, value in self.latest.items() if math.isfinite(value)}

    def curve(self) -> dict[str, list[float]]:
        """Return the points as the lists of a curve, `epoch` among them; NaN where one lacks."""
        steps = sorted(self.points)
        names: dict[str, None] = {}
        for step in steps:
            names |= dict.fromkeys(self.points[step])

        if not names:
            return {}

        curve = {"epoch": [float(step) for step in steps]}
        for name in sorted(names):
            curve[name] = [self.points[step].get(name, math.nan) for step in steps]

        return curve

    def read_object(self, text: str) -> None:
        """Take the metrics of a JSON object, if the text is one."""
        try:
            document = json.loads(text)
            values = flat(document) if isinstance(document, dict) else []
        except (ValueError, RecursionError):
            return

        steps: dict[str, int] = {}
        metrics: dict[str, float] = {}
        for name, value in values:
            number = as_float(value) if is_number(value) else None
            if number is None:
                continue

            if name.lower() not in STEPS:
                metrics[name] = number
            elif number.is_integer():
                steps[name.lower()] = int(number)

        # A step comes before an epoch, which has many.
        step = next((steps[name] for name in STEPS if name in steps), None)
        if metrics:
            self.add(step, metrics)

    def _read_pairs(self, text: str) -> None:
        metrics = {}
        for name, number in _PAIR.findall(text):
            if name.lower() not in STEPS:
                metrics[name] = float(number)

        if not metrics:
            return

        step = _STEP.search(text)
        self.add(None if step is None else whole_number(step[2]), metrics)

    def _read_pattern(self, text: str) -> None:
        assert self.pattern is not None
        metrics = {}
        step = None
        for match in self.pattern.finditer(text):
            groups = match.groupdict()
            if "name" in groups:
                groups = {groups["name"] or "": groups.get("value"), "step": groups.get("step")}

            for name, number in groups.items():
                value = _number(number)
                if value is not None and name.lower() in STEPS:
                    step = int(value)
                elif value is not None and name:
                    metrics[name] = value

        if metrics:
            self.add(step, metrics)

    def _takes(self, step: int) -> bool:
        """Return whether a step is a point of the curve, as far from the last one as others are."""
        if step in self.points:
            return True

        return not self._distance or step >= self._last + self._distance

    def _thin(self) -> None:
        """Leave out every second value of the metrics with many."""
        most = MOST_SPARSE if len(self.points) <= 5 * MOST_POINTS else 0
        dense = {name for name, count in self._counts.items() if count > most}
        steps = [step for step in sorted(self.points) if not dense.isdisjoint(self.points[step])]
        for step in steps[1::2]:
            point = self.points[step]
            for name in dense.intersection(point):
                del point[name]
                self._counts[name] -= 1

            if not point:
                del self.points[step]

        if len(steps) > 2:
            self._distance = 2 * self._distance or steps[2] - steps[0]

        self._limit = max(MOST_POINTS, len(self.points) + MOST_POINTS // 2 - 1)


def compile_pattern(text: str, option: str = "--metrics") -> re.Pattern[str]:
    r"""Return a user's pattern for lines.

    Args:
        text: A regular expression with a group for each metric, `val=(?P<val_loss>\S+)`, or with
            the groups `name` and `value`; a group `step` orders the points.
        option: The option that has it, for the message.

    Raises:
        UsageError: It is no regular expression, or has no named group.
    """
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise UsageError(f"{option} is no regular expression: {error}, in {text!r:.80}") from None

    names = set(pattern.groupindex) - set(STEPS)
    if not names or (("name" in names) != ("value" in names)):
        raise UsageError(
            f"{option} needs a named group for each metric, as in 'val=(?P<val_loss>\\S+)', or the "
            f"groups name and value, got {text!r:.80}"
        )

    return pattern


def choose_objective(names: Iterable[str]) -> tuple[str, str] | None:
    """Return the metric that a run is judged by, and its direction, from the names it has.

    A metric of the validation comes before one of the training, a loss or an error is minimised, and
    an accuracy or a score maximised.

    Returns:
        Name and direction; None where no name says either.
    """
    ranked = []
    for position, name in enumerate(names):
        direction = direction_of(name)
        if direction is None:
            continue

        held_out = any(word in name.lower() for word in ("val", "test", "dev", "eval"))
        trained = "train" in name.lower()
        ranked.append((trained, not held_out, position, name, direction))

    if not ranked:
        return None

    best = min(ranked)
    return best[3], best[4]


def direction_of(name: str) -> str | None:
    """Return `minimise` or `maximise` for the name of a metric; None where it says neither."""
    lower = name.lower()
    for word in ("loss", "err", "perplexity", "ppl", "bpb", "bits", "mse", "mae", "rmse", "nll"):
        if word in lower:
            return "minimise"

    for word in ("acc", "score", "auc", "f1", "bleu", "reward", "r2", "iou", "map", "top1"):
        if word in lower:
            return "maximise"

    return None


def is_metric_name(text: str) -> bool:
    """Return whether a server can hold a metric of this name."""
    return 0 < len(text) <= MOST_NAME and text.isprintable()


def _is_text(line: str) -> bool:
    """Return whether a line is text: binary output holds names and numbers by chance."""
    return "\ufffd" not in line and line.replace("\t", " ").isprintable()


def flat(document: Mapping[str, Any], group: str = "") -> list[tuple[str, Any]]:
    """Return the values of an object, with inner objects as `group/name`."""
    values: list[tuple[str, Any]] = []
    for name, value in document.items():
        if isinstance(value, dict):
            values += flat(value, f"{group}{name}/")
        else:
            values.append((f"{group}{name}", value))

    return values


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None

    return value if math.isfinite(value) else None

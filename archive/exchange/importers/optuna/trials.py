"""Finished trials of Optuna as proposals: result or failure, constraints, times, attributes.

| symbol      | meaning                                                                                        |
|-------------|------------------------------------------------------------------------------------------------|
| c_1 … c_K   | constraints of a trial, which meets one where c <= 0                                           |
| `VIOLATION` | sum of max(0, c_k): 0 exactly where the trial meets all. A trial without constraints has none, |
|             | and is infeasible beside trials with a list of them; named constraints may be left out         |
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from archive.architecture.graph import Architecture
from archive.architecture.texts import from_text
from archive.errors import ArchiveError, UsageError
from archive.store.properties import EPOCH
from archive.store.records import Constraint, Objective, Result
from archive.values import MOST_NAME, is_duration, is_non_finite, mapped

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

    from archive.exchange.importers.optuna.study import Read
    from archive.spaces.base import Space


LISTED = "constraints"
"""System attribute in which samplers store the constraints of a trial as a list."""
NAMED = f"{LISTED}:"
"""Prefix of the system attributes in which Optuna 5 stores named constraints."""
PREFIX = "constraint_"
"""Prefix of the metrics for constraints."""
VIOLATION = f"{PREFIX}violation"
FEASIBLE = Constraint(VIOLATION, "<=", 0.0)

ATTRIBUTES = "user_attributes"
"""Key of the user attributes that are no metrics."""
DEEPEST = 20
"""Most levels of nested attributes; what lies deeper is stored as its JSON text."""


@dataclass(frozen=True)
class OptunaTrial:
    """Suggestion of a trial (`archive.queue.admission.SuggestionLike`).

    Attributes:
        architecture: The network.
        hyperparameters: Parameters that do not describe the network.
        created: Begin of the trial in milliseconds since 1970; None where it is unknown.
        started: The same.
        finished: End of the trial, likewise.
    """

    architecture: Architecture
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)
    created: int | None = None
    started: int | None = None
    finished: int | None = None


def outcome(trial: FrozenTrial, objectives: Sequence[Objective], *, named: bool) -> Result | str:
    """Return the result of a finished trial, or why it has none.

    Args:
        trial: The trial.
        objectives: Objectives of the study.
        named: Whether a trial of the study may leave out constraints without being infeasible.
    """
    curve = _curve(trial, objectives)
    if trial.state.name == "PRUNED":
        value = _last_value(trial)
        if value is None:
            return "pruned by Optuna before it reported a value"

        return _result(trial, [value], objectives, curve, named=named, partial=True)

    if trial.state.name != "COMPLETE" or not trial.values:
        return str(trial.system_attrs.get("fail_reason") or "failed in Optuna")

    for objective, value in zip(objectives, trial.values, strict=True):
        if not math.isfinite(value):
            of = "the value" if len(objectives) == 1 else f"the value of {objective.name}"
            return f"{of} is {value}"

    return _result(trial, trial.values, objectives, curve, named=named)


def is_constrained(trials: Sequence[FrozenTrial]) -> tuple[bool, bool]:
    """Return whether trials have constraints, and whether these have names."""
    names = set()
    for trial in trials:
        for name in trial.system_attrs:
            if name == LISTED or name.startswith(NAMED):
                names.add(name)

    return bool(names), bool(names - {LISTED})


def times(trial: FrozenTrial) -> dict[str, int | None]:
    """Return begin and end of a trial; nothing where the clock went back meanwhile."""
    begin = _milliseconds(trial.datetime_start)
    end = _milliseconds(trial.datetime_complete)
    if begin is not None and end is not None and end < begin:
        return {}

    return {"created": begin, "started": begin, "finished": end}


def is_returned(trial: FrozenTrial) -> bool:
    """Return whether the clock went back during a trial."""
    return trial.duration is not None and not is_duration(trial.duration.total_seconds())


def attributes(
    values: Mapping[str, Any], kept: Mapping[str, float] | None = None
) -> dict[str, Any]:
    """Return the user attributes that are neither metrics nor the network, as JSON values.

    Args:
        values: The attributes by name.
        kept: Metrics of the result.
    """
    left = {}
    for name, value in values.items():
        is_network = name == ATTRIBUTE and isinstance(value, str)
        is_metric = kept is not None and _is_metric(name, value) and kept.get(name) == value
        if not is_network and not is_metric:
            left[str(name)] = _json_value(value)

    return left


def _result(
    trial: FrozenTrial,
    values: Sequence[float],
    objectives: Sequence[Objective],
    curve: Mapping[str, list[float]],
    *,
    named: bool,
    partial: bool = False,
) -> Result:
    numbers = {}
    for name, value in trial.user_attrs.items():
        if _is_metric(name, value):
            numbers[name] = float(value)

    of_objectives = {}
    for objective, value in zip(objectives, values, strict=False):
        of_objectives[objective.name] = value

    metrics = {**numbers, **_constraints(trial.system_attrs, named=named), **of_objectives}
    environment: dict[str, Any] = {"optuna": trial.number}
    if left := attributes(trial.user_attrs, metrics):
        environment[ATTRIBUTES] = left

    seconds = trial.duration.total_seconds() if trial.duration is not None else None
    return Result(
        value=values[0],
        metrics=metrics,
        curve=curve,
        seconds=seconds if is_duration(seconds) else None,
        environment=environment,
        partial=partial,
    )


def _curve(trial: FrozenTrial, objectives: Sequence[Objective]) -> dict[str, list[float]]:
    """Return the intermediate values, which only a study with one objective has."""
    steps = sorted(trial.intermediate_values)
    name = objectives[0].name
    if not steps or name == EPOCH:
        return {}

    return {EPOCH: [*steps], name: [trial.intermediate_values[step] for step in steps]}


def _last_value(trial: FrozenTrial) -> float | None:
    """Return the last finite value that a pruned trial has reported."""
    reported = [trial.intermediate_values[step] for step in sorted(trial.intermediate_values)]
    if trial.values and len(trial.values) == 1:
        reported.append(trial.values[0])

    finite = []
    for value in reported:
        if value is not None and math.isfinite(value):
            finite.append(value)

    return finite[-1] if finite else None


def _constraints(system: Mapping[str, Any], *, named: bool) -> dict[str, float]:
    """Return the constraints of a trial as metrics, with their violation."""
    listed = system.get(LISTED)
    values: dict[str, Any] = {}
    if isinstance(listed, list | tuple):
        values = {str(index): value for index, value in enumerate(listed)}

    values |= {
        name.removeprefix(NAMED): value for name, value in system.items() if name.startswith(NAMED)
    }
    if not values and not isinstance(listed, list | tuple) and not named:
        return {}

    numbers = {f"{PREFIX}{name}": _number(value) for name, value in values.items()}
    # `max` would drop a NaN.
    violation = sum(number for number in numbers.values() if not number <= 0.0)
    return {**numbers, VIOLATION: float(violation)}


def _number(value: Any) -> float:
    """Return a value as a float; NaN where it is no number, or too large for one."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _is_metric(name: Any, value: Any) -> bool:
    """Return whether a user attribute can be a metric: a float with a usable name."""
    if type(value) not in (int, float) or not isinstance(name, str) or name != name.strip():
        return False

    if name.startswith(PREFIX) or not 0 < len(name) <= MOST_NAME:
        return False

    # An integer may be too large for a float.
    return type(value) is float or _number(value) == _number(value)


def _json_value(value: Any) -> Any:
    """Return an attribute as JSON values of limited depth.

    NaN and infinities, which JSON does not have, as text.
    """
    if _is_deep(value):
        return json.dumps(value, default=str)

    return mapped(value, lambda item: str(item) if is_non_finite(item) else item)


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(DEEPEST):
        inner: list[Any] = []
        for item in level:
            if isinstance(item, Mapping):
                inner += item.values()
            elif isinstance(item, list | tuple):
                inner += item

        level = inner

    return bool(level)


def _milliseconds(time: datetime | None) -> int | None:
    """Return a time of Optuna, which is local and names no zone, in milliseconds since 1970."""
    try:
        return None if time is None else round(1000 * time.timestamp())
    except (OverflowError, OSError, ValueError):
        return None


ATTRIBUTE = "architecture"
"""User attribute of a trial for its network: JSON, a NAS-Bench-201 string or a genotype."""

Choose = Callable[[Mapping[str, Any]], tuple[Architecture, Mapping[str, Any]]]
"""Function from the parameters of a trial to its architecture and the remaining parameters."""


def reader(space: Space, otherwise: Choose) -> Read:
    """Return a function that reads the architecture of a trial, a member of the space.

    Args:
        space: The space.
        otherwise: Reader of trials without the attribute; with it, all parameters are
            hyperparameters.
    """

    def read(
        parameters: Mapping[str, Any], attributes: Mapping[str, Any]
    ) -> tuple[Architecture, Mapping[str, Any]]:
        text = attributes.get(ATTRIBUTE)
        network, rest = (
            (from_text(text), parameters) if isinstance(text, str) else otherwise(parameters)
        )
        space.validate(network)
        return network, rest

    return read


def by_function(function: Callable[[Mapping[str, Any]], Any]) -> Choose:
    """Return a reader of trials that calls a user's function with all parameters.

    Args:
        function: Function that returns an architecture, or its text.
    """

    def choose(parameters: Mapping[str, Any]) -> tuple[Architecture, Mapping[str, Any]]:
        try:
            # Standard output is for the command's own document.
            with redirect_stdout(sys.stderr):
                made = function(dict(parameters))
        except ArchiveError:
            raise
        except Exception as error:
            first = next(iter(str(error).splitlines()), "")
            raise UsageError(f"its function raised {type(error).__name__}: {first:.200}") from error

        if isinstance(made, str):
            made = from_text(made)

        if not isinstance(made, Architecture):
            raise UsageError(
                f"its function must return an Architecture or its text, got {type(made).__name__}"
            )

        return made, {}

    return choose

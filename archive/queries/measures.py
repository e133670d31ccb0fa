"""Measures of several networks side by side: values on tasks, speeds on devices, costs.

A value is comparable within one task and one protocol. Published networks have recipes of their own:
where no protocol has all networks of a task, the measure has the best result of each, and is `mixed`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from archive.objectives import sign
from archive.queries.results_by_task import PREDICTION

if TYPE_CHECKING:
    from archive.database.connection import Connection
    from archive.store.records import Direction

EVALUATIONS = f"""
UNWIND $keys AS key
MATCH (:Architecture {{key: key}})<-[:OF]-(e:Evaluation)-[:ON]->(t:Task)
WHERE coalesce(e.source, '') <> '{PREDICTION}'
OPTIONAL MATCH (e)<-[:RESULTED_IN]-(p:Proposal)<-[:PROPOSED]-(s:Study)
RETURN key, e.id AS evaluation, e.answered_from AS source, e.model AS model, e.hardware AS hardware,
       coalesce(e.partial, false) AS partial, e.value AS value, t.name AS task, t.protocol AS protocol,
       coalesce(s.direction, t.direction) AS direction, s.objective AS objective,
       [name IN keys(e) WHERE name STARTS WITH 'metric_' | [substring(name, 7), e[name]]] AS metrics
ORDER BY key, evaluation
"""

SPEED = "samples_per_second"
"""Metric that is a speed on a device."""

COSTS_OF_NETWORKS = """
UNWIND $keys AS key
MATCH (a:Architecture {key: key})
RETURN key, a.params AS params, a.flops AS flops
"""

LATENCY = "latency_ms"
"""Metric of trainings that is a time on the device of the trainer."""

COSTS = ("params", "flops", "peak_memory_bytes")
"""Further metrics that are costs; smaller is better."""

SURE = 2.0
"""Standard errors of a difference beyond which it is not taken for noise."""


class MeasuredValue(NamedTuple):
    """Value of one network.

    Attributes:
        mean: Mean of its trainings.
        trainings: Number of its trainings.
        error: Standard error of the mean; None for a single training.
        protocol: The protocol.
    """

    mean: float
    trainings: int
    error: float | None
    protocol: str


@dataclass(frozen=True)
class ComparedMeasure:
    """One quantity of all networks.

    Attributes:
        task: The task; empty for costs.
        protocol: The protocol of all values; empty where it is mixed, and for costs.
        metric: The metric.
        device: The device of a speed or a latency; empty for others.
        direction: Whether larger or smaller values are better.
        mixed: Whether the values have protocols of their own, such as recipes.
        values: One a network; None where it has none.
        best: Positions of the networks that no other one surely surpasses, in the order of the
            networks; empty where fewer than two have values.
    """

    task: str
    protocol: str
    metric: str
    device: str
    direction: Direction
    mixed: bool
    values: tuple[MeasuredValue | None, ...]
    best: tuple[int, ...]


@dataclass(frozen=True)
class NetworkMeasures:
    """Measures of some networks.

    Attributes:
        models: Name of each network at its source; None where it has none.
        measures: Values on tasks, then speeds on devices, then costs; measures of most networks first.
    """

    models: tuple[str | None, ...]
    measures: tuple[ComparedMeasure, ...]


Verdict = Literal["better", "worse", "equal", "unclear"]


def judge(first: MeasuredValue, second: MeasuredValue, direction: Direction) -> Verdict:
    """Return whether the first value is better than the second one.

    A difference within `SURE` standard errors is unclear. Where one of them has a single training,
    its noise is taken to be the other one's.
    """
    difference = sign(direction) * (first.mean - second.mean)
    if difference == 0:
        return "equal"

    first_error = _error(first, second)
    second_error = _error(second, first)
    if first_error is not None and second_error is not None:
        if abs(difference) <= SURE * math.hypot(first_error, second_error):
            return "unclear"

    return "better" if difference > 0 else "worse"


def _error(value: MeasuredValue, other: MeasuredValue) -> float | None:
    """Return the standard error of a value; of a single training, by the spread of the other's."""
    if value.error is not None or other.error is None:
        return value.error

    return other.error * math.sqrt(other.trainings)


def measures_of(connection: Connection, keys: Sequence[str]) -> NetworkMeasures:
    """Return the measures of networks by their keys."""
    rows, costs = connection.read(
        lambda tx: (
            tx.run(EVALUATIONS, keys=list(keys)).data(),
            tx.run(COSTS_OF_NETWORKS, keys=list(keys)).data(),
        )
    )
    return of_rows(keys, rows, costs)


_Group = tuple[str, str, str, str]
"""Task, protocol, metric and device of comparable values."""


def of_rows(
    keys: Sequence[str],
    rows: Iterable[Mapping[str, Any]],
    costs: Iterable[Mapping[str, Any]] = (),
) -> NetworkMeasures:
    """Return the measures of networks.

    Args:
        keys: Keys of the networks.
        rows: Rows of `EVALUATIONS`.
        costs: Rows of `COSTS_OF_NETWORKS`: costs that are known without a training.
    """
    models: dict[str, str] = {}
    values: dict[_Group, dict[str, list[float]]] = {}
    directions: dict[_Group, Direction] = {}
    for row in _trainings(list(rows)):
        if row["model"] is not None:
            models.setdefault(row["key"], row["model"])

        for group, direction, value in _measured(row):
            directions[group] = direction
            values.setdefault(group, {}).setdefault(row["key"], []).append(value)

    for row in costs:
        for cost in COSTS:
            group = ("", "", cost, "")
            if row.get(cost) is not None:
                directions[group] = "minimise"
                values.setdefault(group, {})[row["key"]] = [row[cost]]

    measures = []
    for name, groups in _alike(values).items():
        measures.append(_measure(name, groups, values, directions[groups[0]], keys))

    least = min(2, len(keys))
    shown = [measure for measure in measures if _covered(measure) >= least]
    shown.sort(key=lambda measure: (_rank(measure), -_covered(measure), _order(measure)))
    return NetworkMeasures(tuple(map(models.get, keys)), tuple(shown))


def _trainings(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return each training once; pruned ones only where no network has another on the task."""
    whole = {(row["task"], row["protocol"]) for row in rows if not row["partial"]}
    seen = set()
    trainings = []
    for row in rows:
        if row["partial"] and (row["task"], row["protocol"]) in whole:
            continue

        source = (row["source"] or row["evaluation"]).replace(" (deleted)", "")
        training = (row["key"], row["task"], row["protocol"], row["objective"], source)
        if training not in seen:
            seen.add(training)
            trainings.append(row)

    return trainings


def _measured(row: Mapping[str, Any]) -> list[tuple[_Group, Direction, float]]:
    """Return what one evaluation measured."""
    metrics = {name: value for name, value in row["metrics"] or () if _is_finite(value)}
    groups_found: list[tuple[_Group, Direction, float]] = []
    if _is_finite(row["value"]):
        metric = row["objective"] or _name_of(row["value"], metrics)
        device = ""
        if metric == SPEED:
            device = row["hardware"] or row["protocol"]
        elif metric == LATENCY:
            device = row["hardware"] or ""

        group = (row["task"], row["protocol"], metric, device)
        groups_found.append((group, row["direction"] or "maximise", row["value"]))

    # The time of a training's network; published speeds and objectives are values of their own.
    timed = row["hardware"] and LATENCY in metrics and SPEED not in metrics
    if timed and row["objective"] != LATENCY:
        groups_found.append((("", "", LATENCY, row["hardware"]), "minimise", metrics[LATENCY]))

    for name in COSTS:
        if name in metrics and name != row["objective"]:
            groups_found.append((("", "", name, ""), "minimise", metrics[name]))

    return groups_found


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _name_of(value: float, metrics: Mapping[str, float]) -> str:
    """Return the metric that is the value of an evaluation without a study."""
    names = sorted(name for name, metric in metrics.items() if metric == value)
    return names[-1] if names else "value"


def _alike(values: Mapping[_Group, Any]) -> dict[_Group, list[_Group]]:
    """Return the groups of each measure, by its task, metric and device."""
    measures: dict[_Group, list[_Group]] = {}
    for group in sorted(values):
        task, protocol, metric, device = group
        # Speeds under two protocols are two quantities: of two sizes of inputs, for instance.
        name = (task, protocol if device else "", metric, device)
        measures.setdefault(name, []).append(group)

    return measures


def _measure(
    name: _Group,
    groups: Sequence[_Group],
    values: Mapping[_Group, Mapping[str, list[float]]],
    direction: Direction,
    keys: Sequence[str],
) -> ComparedMeasure:
    task, _, metric, device = name
    present = set().union(*(values[group] for group in groups))
    shared = [group for group in groups if set(values[group]) == present]
    used = shared[-1:] or groups
    of_keys: list[MeasuredValue | None] = []
    for key in keys:
        candidates = []
        for group in used:
            if key in values[group]:
                candidates.append(_summary(values[group][key], group[1]))

        ordered = sorted(candidates, key=lambda value: sign(direction) * value.mean)
        of_keys.append(ordered[-1] if ordered else None)

    protocol = used[0][1] if len(used) == 1 else ""
    best = _best(of_keys, direction)
    return ComparedMeasure(
        task, protocol, metric, device, direction, len(used) > 1, tuple(of_keys), best
    )


def _summary(values: Sequence[float], protocol: str) -> MeasuredValue:
    count = len(values)
    mean = math.fsum(values) / count
    if count < 2:
        return MeasuredValue(mean, count, None, protocol)

    variance = math.fsum((value - mean) ** 2 for value in values) / (count - 1)
    return MeasuredValue(mean, count, math.sqrt(variance / count), protocol)


def _best(values: Sequence[MeasuredValue | None], direction: Direction) -> tuple[int, ...]:
    present = [(index, value) for index, value in enumerate(values) if value is not None]
    if len(present) < 2:
        return ()

    _, leader = max(present, key=lambda item: sign(direction) * item[1].mean)
    best = []
    for index, value in present:
        if judge(leader, value, direction) != "better":
            best.append(index)

    return tuple(best)


def _covered(measure: ComparedMeasure) -> int:
    return sum(value is not None for value in measure.values)


def _rank(measure: ComparedMeasure) -> int:
    """Return the place of a kind: values on tasks, then devices, then costs."""
    if measure.device:
        return 1

    return 0 if measure.task else 2


def _order(measure: ComparedMeasure) -> tuple[int, str, str, str, str]:
    rank = COSTS.index(measure.metric) if measure.metric in COSTS else 0
    return rank, measure.task, measure.device, measure.protocol, measure.metric

"""Published relatives of a network: their results under comparable recipes, and their speeds.

Of the results on a task, those under one protocol are comparable: the protocol under which most of
the relatives have results without pretraining. The best result of a relative is under any protocol.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from archive.database.user_query import run_query

if TYPE_CHECKING:
    from archive.database.connection import Connection

RESULTS = """
UNWIND $keys AS key
MATCH (a:Architecture {key: key})<-[:OF]-(e:Evaluation)-[:ON]->(t:Task)
WHERE e.model IS NOT NULL AND e.partial IS NULL AND NOT isNaN(e.value)
RETURN key, a.params AS params, a.flops AS flops, e.model AS model, e.family AS family, t.name AS task,
       t.protocol AS protocol, coalesce(t.direction, 'maximise') AS direction, e.value AS value,
       e.pretraining AS pretraining, e.metric_samples_per_second AS speed, e.metric_latency_ms AS latency
ORDER BY key, task, protocol, model
"""


@dataclass(frozen=True)
class RelativeResult:
    """A result of a published model.

    Attributes:
        model: Its name at the source.
        task: Name of the task.
        protocol: Name of the protocol: recipe and size of the test images.
        value: The value.
        pretraining: Data before the task's own; null for none.
        comparable: Whether it is under the protocol by which the relatives are compared.
    """

    model: str
    task: str
    protocol: str
    value: float
    pretraining: str | None
    comparable: bool


@dataclass(frozen=True)
class RelativeSpeed:
    """A measured speed of a published network.

    Attributes:
        task: `inference` or `training`.
        protocol: Device, software and size of the input.
        samples_per_second: Throughput.
        latency_ms: Milliseconds of one sample; null where it is not known.
    """

    task: str
    protocol: str
    samples_per_second: float
    latency_ms: float | None


@dataclass(frozen=True)
class Relative:
    """A published network with results.

    Attributes:
        key: Its key.
        model: Name of the network at its source, without the recipe.
        family: Its family at the source; null where it has none.
        params: Number of trained parameters.
        flops: Multiply-adds of one input.
        results: For each task the comparable result, and the best one.
        speeds: Its speeds.
    """

    key: str
    model: str
    family: str | None
    params: float | None
    flops: float | None
    results: list[RelativeResult]
    speeds: list[RelativeSpeed]


@dataclass(frozen=True)
class _StoredRow:
    key: str
    params: float | None
    flops: float | None
    model: str
    family: str | None
    task: str
    protocol: str
    direction: str
    value: float
    pretraining: str | None
    speed: float | None
    latency: float | None


def relatives(
    connection: Connection, keys: Sequence[str], task: str | None = None, device: str | None = None
) -> list[Relative]:
    """Return the published networks among networks, in their order.

    Args:
        connection: Connection to the archive.
        keys: Keys of the networks; those without a published model are left out.
        task: Restricts the results to a task; speeds are returned in any case.
        device: Part of the names of the devices whose speeds to return; None for all.
    """
    rows = [_StoredRow(*row) for row in run_query(connection, RESULTS, {"keys": list(keys)}).rows]
    results = []
    speeds = []
    for row in rows:
        if row.speed is None:
            results.append(row)
        elif device is None or device.lower() in row.protocol.lower():
            speeds.append(row)

    results = [row for row in results if task in (None, row.task)]
    comparable = _comparable(results)
    published = []
    for key in keys:
        of_network = [row for row in rows if row.key == key]
        if of_network:
            first = of_network[0]
            published.append(
                Relative(
                    key,
                    min(row.model.partition(".")[0] for row in of_network),
                    first.family,
                    first.params,
                    first.flops,
                    _results([row for row in results if row.key == key], comparable),
                    _speeds(row for row in speeds if row.key == key),
                )
            )

    return published


def _comparable(rows: Iterable[_StoredRow]) -> dict[str, str]:
    """Return the protocol of each task under which most networks have a result of their own data."""
    networks = {(row.task, row.protocol, row.key) for row in rows if row.pretraining is None}
    counts = Counter((task, protocol) for task, protocol, _ in networks)
    protocols: dict[str, str] = {}
    for (task, protocol), _ in sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])):
        protocols.setdefault(task, protocol)

    return protocols


def _results(rows: Sequence[_StoredRow], comparable: dict[str, str]) -> list[RelativeResult]:
    leading: dict[tuple[str, bool], _StoredRow] = {}
    for row in rows:
        sign = -1.0 if row.direction == "minimise" else 1.0
        for kind in (True, False):
            fits = not kind or (
                row.pretraining is None and comparable.get(row.task) == row.protocol
            )
            best = leading.get((row.task, kind))
            if fits and (best is None or sign * row.value > sign * best.value):
                leading[row.task, kind] = row

    results = []
    for (task, kind), row in sorted(
        leading.items(), key=lambda entry: (entry[0][0], not entry[0][1])
    ):
        if kind or leading.get((task, True)) is not row:
            results.append(
                RelativeResult(
                    row.model, task, row.protocol, row.value, row.pretraining, comparable=kind
                )
            )

    return results


def _speeds(rows: Iterable[_StoredRow]) -> list[RelativeSpeed]:
    speeds = []
    for row in rows:
        if row.speed is not None:
            speeds.append(RelativeSpeed(row.task, row.protocol, row.speed, row.latency))

    return speeds

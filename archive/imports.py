"""Results of others, brought into the archive: the table of NAS-Bench-201.

Each row of the table becomes one Evaluation; rows whose cells are the same network share its Architecture. Every
batch is one transaction that skips what is there, so an interrupted import goes on where it stopped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from archive import codec, costs
from archive.architectures import Architectures, batched
from archive.evaluations import Evaluations
from archive.graph import Architecture
from archive.records import Result

if TYPE_CHECKING:
    from archive.connection import Connection

CELL = "arch_str"
INDEX = "index"
SECONDS = "train_seconds_200ep"
ACCURACY = ("cifar10_", "cifar100_")
EPOCHS = re.compile(r"_(\d+)ep$")


def import_nasbench201(
    connection: Connection,
    rows: Iterable[Mapping[str, Any]],
    *,
    task: str = "nb201-cifar10",
    protocol: str = "nb201/200",
    objective: str = "cifar10_valid_200ep",
) -> int:
    """Import cells with layers, edges and metrics, and return how many rows there were.

    Accuracies are stored as fractions, `flops` and `params` on the architecture as numbers of operations
    and of weights; every other column is a metric as it stands.

    Args:
        connection: The archive.
        rows: Column name to value: `index`, `arch_str` and at least the objective, accuracies in percent.
        task: Name of the task that the evaluations are on.
        protocol: How it was measured.
        objective: The column that becomes `Evaluation.value`.

    Raises:
        CodecError: A cell cannot be read.
    """
    architectures = Architectures(connection)
    evaluations = Evaluations(connection, architectures)
    table = list(_parse(rows))
    architectures.add(architecture for _, architecture, _ in table)
    _add_costs(connection, table)
    evaluations.add(task, protocol, (_evaluation(task, objective, *row) for row in table))
    return len(table)


Parsed = tuple[str, Architecture, dict[str, float]]


def _parse(rows: Iterable[Mapping[str, Any]]) -> Iterator[Parsed]:
    for row in rows:
        metrics = {
            name: float(value) / (100 if name.startswith(ACCURACY) else 1)
            for name, value in row.items()
            if name not in (CELL, INDEX) and value not in (None, "")
        }
        yield str(row[INDEX]), codec.from_nasbench201(row[CELL]), metrics


def _add_costs(connection: Connection, table: Iterable[Parsed]) -> None:
    found = {
        architecture.key: {
            "key": architecture.key,
            "params": round(1e6 * metrics["params_millions"]),
            "flops": round(1e6 * metrics["flops_millions"]),
        }
        for _, architecture, metrics in table
        if {"params_millions", "flops_millions"} <= metrics.keys()
    }
    for part in batched((found[key] for key in sorted(found)), 1000):
        connection.write(partial(costs.add, rows=part), alone=True)


def _evaluation(
    task: str, objective: str, index: str, architecture: Architecture, metrics: dict[str, float]
) -> tuple[str, str, Result]:
    epochs = EPOCHS.search(objective)
    result = Result(
        value=metrics[objective],
        metrics=metrics,
        seconds=metrics.get(SECONDS),
        epochs=None if epochs is None else int(epochs[1]),
    )
    return f"{task}/{index}", architecture.key, result

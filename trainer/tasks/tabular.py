"""Tabular tasks: results come from a table without training, at the cost that the table records.

    nb201-cifar10, nb201-cifar100     NAS-Bench-201; values are fractions (the file has percent), as imports store them
    nb101                             NAS-Bench-101, or the installed sample of it; values are fractions
    table:PATH#COLUMN                 any CSV of these forms (`archive.spaces.tables.reader`); values as in the file,
                                      maximised; table:PATH#-COLUMN minimises them

Rows of the same network are one architecture, whose result is their mean. A result also has the network's costs from
the table, under the names of trained networks: the columns `params`, `flops` (or `params_millions`, `flops_millions`)
and those that begin with `latency`. The daemon reads results in its own process, thousands of times faster than
training, without torch.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from archive.errors import InvalidArchitectureError, TrainingError, UnknownNameError, UsageError
from archive.store.records import Result
from archive.trainer.tasks.file_access import reference_of

if TYPE_CHECKING:
    from archive.architecture.graph import Architecture
    from archive.spaces.base import Space
    from archive.spaces.tables.reader import Table

PREFIX = "table:"
DEVICE = "table"
"""Device of the results, for which nothing was trained."""

COST = re.compile(r"(?P<counted>params|flops)(?P<millions>_millions)?|latency\w*")


@dataclass(frozen=True, slots=True)
class TabularProtocol:
    """The protocol of a tabular task: the column of its values.

    Attributes:
        name: Name in evaluations; for a user's table it contains the digest of the file.
        column: Column of the evaluation's value.
        held_out: Column of the test accuracy after the same training, if there is one.
        epochs: Number of training epochs before the value was taken; 0 if the table does not tell.
    """

    name: str
    column: str
    held_out: str | None = None
    epochs: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Return the choices as plain values, to record or show."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class TabularTask:
    """A column of a table, and the space of the table's networks.

    Attributes:
        name: Name in studies; with the absolute path of a user's table.
        label: Short name, used in names of studies.
        summary: One-line description.
        reference: Name or absolute path of the table.
        spaces: Name of the space of its networks.
        complete: Whether the table holds the whole space; if not, the search stays inside the table.
        metric: Metric of its values, `accuracy` or the name of the column.
        objective: Name of the metric that is an evaluation's value.
        direction: `maximise` or `minimise` it.
        scale: Factor of the file's numbers.
        protocols: Its protocols, one for each column, the default first.
    """

    name: str
    label: str
    summary: str
    reference: str
    spaces: tuple[str, ...]
    complete: bool
    metric: str
    objective: str
    direction: Literal["maximise", "minimise"]
    scale: float
    protocols: tuple[TabularProtocol, ...]

    @property
    def table(self) -> Table:
        """The table, read on first use.

        Raises:
            UsageError: The file is missing, or no table.
        """
        from archive.spaces.tables.reader import Table

        return Table.open(self.reference)

    def protocol(self, name: str | None = None, space: str = "") -> TabularProtocol:
        """Return the protocol of this name, or the task's default, which is that of every space.

        Raises:
            UnknownNameError: The task has no such protocol.
        """
        for protocol in self.protocols:
            if name in (None, protocol.name):
                return protocol
        raise UnknownNameError(f"protocol of the task {self.name}", str(name), [p.name for p in self.protocols])

    def search_space(self, name: str | None = None) -> Space:
        """Return the space of the table's networks.

        Args:
            name: Name of the space, which must be the table's; None takes that one.

        Raises:
            UsageError: The table holds networks of another space, or cannot be read.
        """
        from archive import spaces
        from archive.spaces.tables import reader

        own = self.spaces[0]
        if name not in (None, own):
            raise UsageError(f"the table of the task {self.name!r} holds networks of the space {own}, got {name!r}")
        if not self.complete:
            return spaces.get(own, table=self.reference)
        # A missing table fails at the start of a search rather than in its trainers; reading it can wait.
        reader.find(self.reference)
        return spaces.get(own)

    def suitable_spaces(self) -> tuple[str, ...]:
        """Return the name of the space of the table's networks."""
        return self.spaces

    def answer(self, architecture: Architecture, protocol: str | None = None) -> Result:
        """Return the table's result for a network, in any order of its layers.

        Raises:
            TrainingError: The table has no result; the reason says why.
            UsageError: The table cannot be read, or has no such column.
        """
        chosen, table = self.protocol(protocol), self.table
        values, cost = table.column(chosen.column), table.cost()
        try:
            at = table.position(architecture)
        except InvalidArchitectureError as error:
            raise TrainingError(error.reason) from None
        value = self.scale * float(values[at])
        if value != value:
            raise TrainingError(f"the table {table.origin} has no {chosen.column} for {architecture.key[:8]}")
        metrics = {self.objective: value}
        held_out = float("nan") if chosen.held_out is None else self.scale * float(table.column(chosen.held_out)[at])
        if held_out == held_out:
            metrics[f"test_{self.metric}"] = held_out
        metrics |= _costs(table, at, chosen.column)
        return Result(
            value=value,
            metrics=metrics,
            epochs=chosen.epochs or None,
            seconds=None if cost is None or cost[at] != cost[at] else float(cost[at]),
            device=DEVICE,
            environment={"table": table.origin, "sha256": table.sha256, "rows": int(table.rows[at])},
        )


def _costs(table: Table, at: int, column: str) -> dict[str, float]:
    """Return the network's costs in the table, without the column of the value itself."""
    costs = {}
    for name in table.columns:
        if name != column and (cost := COST.fullmatch(name)) and (value := float(table.column(name)[at])) == value:
            costs[cost["counted"] or name] = float(round(1e6 * value)) if cost["millions"] else value
    return costs


def parse(name: str) -> TabularTask:
    """Return the task with the name `table:PATH#COLUMN`.

    Raises:
        UsageError: The text, the file or the column cannot be used.
    """
    from archive.spaces.tables.reader import Table

    reference, column = reference_of(name) or ("", "")
    if not reference or not column.removeprefix("-"):
        raise UsageError(f"a table is named as table:PATH#COLUMN, got {name!r}")
    path = Path(reference).expanduser().absolute()
    table = Table.load(path)
    target = column if column in table.columns else column.removeprefix("-")
    table.column(target)
    return TabularTask(
        name=f"{PREFIX}{path}#{column}",
        label=f"{path.name.split('.')[0]}-{target}",
        summary=f"the column {target} of {path}",
        reference=str(path),
        spaces=(table.space,),
        complete=False,
        metric=target,
        objective=target,
        direction="maximise" if target == column else "minimise",
        scale=1.0,
        protocols=(TabularProtocol(f"table/{table.sha256[:12]}", target),),
    )


def _official(
    name: str, summary: str, table: str, space: str, scale: float, *protocols: TabularProtocol
) -> TabularTask:
    return TabularTask(
        name=name,
        label=name,
        summary=summary,
        reference=table,
        spaces=(space,),
        complete=table == "nb201",
        metric="accuracy",
        objective="valid_accuracy",
        direction="maximise",
        scale=scale,
        protocols=protocols,
    )


NB201_CIFAR10 = _official(
    "nb201-cifar10",
    "NAS-Bench-201 on CIFAR-10, from the table: validation accuracy after 12 epochs, or 200",
    "nb201",
    "nasbench201",
    0.01,
    TabularProtocol("nb201/12", "cifar10_valid_12ep", "cifar10_test_12ep", 12),
    TabularProtocol("nb201/200", "cifar10_valid_200ep", "cifar10_test_200ep", 200),
)

NB201_CIFAR100 = _official(
    "nb201-cifar100",
    "NAS-Bench-201 on CIFAR-100, from the table: validation accuracy after 12 epochs",
    "nb201",
    "nasbench201",
    0.01,
    TabularProtocol("nb201/12", "cifar100_valid_12ep", "cifar100_test_12ep", 12),
)

NB101 = _official(
    "nb101",
    "NAS-Bench-101 on CIFAR-10, from the table: validation accuracy after 108 epochs, or 36, 12, 4",
    "nb101",
    "nasbench101",
    1.0,
    *(TabularProtocol(f"nb101/{epochs}", f"val_acc_{epochs}ep", None, epochs) for epochs in (108, 36, 12, 4)),
)

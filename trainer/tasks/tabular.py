"""Tabular tasks: results come from a table without training, at the cost that the table records.

    nb201-cifar10, …     built-in tables (`archive.trainer.tasks.benchmark_tables`)
    table:PATH#COLUMN    any CSV of these forms (`archive.spaces.tables.reader`); values as in the
                         file, maximised; table:PATH#-COLUMN minimises them
    NAME~SD              one of these with Gaussian noise of a standard deviation SD, in the unit of
                         the values

Noise makes each query of a network another result: its seed follows from the query, so that a
repeated completion of one proposal has one value, and two proposals of one network have two. The
result carries the seed, as a training's does, and is stored as another evaluation of the
architecture.

Rows of the same network are one architecture; its result is their mean. A result also has the
network's costs from the table, under the names of trained networks: the columns `params`, `flops`
(or `params_millions`, `flops_millions`) and those that begin with `latency`. The daemon reads
results in its own process, thousands of times faster than training, without torch.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Literal

from archive.errors import InvalidArchitectureError, TrainingError, UnknownNameError, UsageError
from archive.files import absolute
from archive.queue.capabilities import NOISE
from archive.store.records import Result
from archive.trainer.tasks.file_access import reference_of
from archive.values import is_duration

if TYPE_CHECKING:
    from archive.architecture.graph import Architecture
    from archive.spaces.base import Space
    from archive.spaces.tables.reader import Table

PREFIX = "table:"
DEVICE = "table"
"""Device of the results, for which nothing was trained."""


@dataclass(frozen=True, slots=True)
class TabularProtocol:
    """The protocol of a tabular task: the column of its values.

    Attributes:
        name: Name in evaluations; for a user's table it contains the digest of the file.
        column: Column of the evaluation's value.
        held_out: Column of the test accuracy after the same training, which a table may lack; None
            for none.
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
        complete: Whether the table holds the whole space; if not, the search stays inside the
            table.
        metric: Metric of its values, `accuracy` or the name of the column.
        objective: Name of the metric that is an evaluation's value.
        direction: `maximise` or `minimise` it.
        scale: Factor of the file's numbers.
        noise: Standard deviation of the noise of each query, in the unit of the values; 0 for none.
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
    noise: float = 0.0

    @property
    def table(self) -> Table:
        """The table, read on first use.

        Raises:
            UsageError: The file is missing, or no table.
        """
        from archive.spaces.tables.reader import Table

        return Table.open(self.reference)

    def protocol(self, name: str | None = None, space: str = "") -> TabularProtocol:
        """Return the protocol of this name, or the task's default for every space.

        Raises:
            UnknownNameError: The task has no such protocol.
        """
        for protocol in self.protocols:
            if name in (None, protocol.name):
                return protocol

        raise UnknownNameError(
            f"protocol of the task {self.name}", str(name), [p.name for p in self.protocols]
        )

    def search_space(self, name: str | None = None) -> Space:
        """Return the space of the table's networks.

        Args:
            name: Name of the space, which must be the table's; None takes that one.

        Raises:
            UsageError: The table holds networks of another space, or cannot be read.
        """
        from archive import spaces
        from archive.spaces.tables import reader

        space = self.spaces[0]
        if name not in (None, space):
            raise UsageError(
                f"the table of the task {self.name!r} holds networks of the space "
                f"{space}, got {name!r}"
            )

        if not self.complete:
            return spaces.get(space, table=self.reference)

        # A missing table fails at the start of a search rather than in its trainers; reading it can
        # wait.
        reader.find(self.reference)
        return spaces.get(space)

    def suitable_spaces(self) -> tuple[str, ...]:
        """Return the name of the space of the table's networks."""
        return self.spaces

    def with_noise(self, deviation: str) -> TabularTask:
        """Return the task with noise of a standard deviation, `NAME~SD`.

        Raises:
            UsageError: The deviation is no positive number.
        """
        try:
            noise = float(deviation)
        except ValueError:
            noise = math.nan

        if not 0.0 < noise < math.inf:
            raise UsageError(
                f"the noise of {self.name} must be a positive number, got {deviation!r}"
            )

        suffix = f"{NOISE}{noise:g}"
        label = f"{self.label}{NOISE}{noise:g}"
        summary = f"{self.summary}; with noise of standard deviation {noise:g}"
        return replace(self, name=f"{self.name}{suffix}", label=label, summary=summary, noise=noise)

    def truth(self, functional_key: str, protocol: str | None = None) -> tuple[float, float]:
        """Return a network's noise-free value, and its test accuracy, NaN if the table has none.

        Args:
            functional_key: Functional key of a network of the table.
            protocol: Name of the protocol; None for the default.
        """
        rules = self.protocol(protocol)
        table = self.table
        row = table.index[functional_key]
        return self.scale * float(table.column(rules.column)[row]), self._test_value(rules, row)

    def _test_value(self, rules: TabularProtocol, row: int) -> float:
        """Return the test accuracy of a network, NaN if the table has none."""
        table = self.table
        if rules.held_out is None or rules.held_out not in table.columns:
            return math.nan

        return self.scale * float(table.column(rules.held_out)[row])

    def answer(
        self, architecture: Architecture, protocol: str | None = None, query: str = ""
    ) -> Result:
        """Return the table's result for a network, in any order of its layers.

        Args:
            architecture: The network.
            protocol: Name of the protocol; None for the default.
            query: Identity of the query, such as a proposal's id. Noise is the same for equal
                queries of a network.

        Raises:
            TrainingError: The table has no result; the reason says why.
            UsageError: The table cannot be read, or has no such column.
        """
        rules = self.protocol(protocol)
        table = self.table
        values = table.column(rules.column)
        cost = table.cost()
        try:
            row = table.position(architecture)
        except InvalidArchitectureError as error:
            raise TrainingError(error.reason) from None

        value = self.scale * float(values[row])
        if not math.isfinite(value):
            raise TrainingError(
                f"the table {table.origin} has no {rules.column} for {architecture.key[:8]}"
            )

        seed = None
        if self.noise:
            seed = self._seed(architecture, rules, query)
            value += self.noise * _standard_normal(seed)

        metrics = {self.objective: value}
        held_out = self._test_value(rules, row)
        if math.isfinite(held_out):
            metrics[f"test_{self.metric}"] = held_out

        metrics |= _costs(table, row, rules.column)
        about: dict[str, Any] = {
            "table": table.origin,
            "sha256": table.sha256,
            "rows": int(table.rows[row]),
        }
        if self.noise:
            about["noise"] = self.noise

        return Result(
            value=value,
            metrics=metrics,
            epochs=rules.epochs or None,
            # A mean of huge numbers may overflow.
            seconds=float(cost[row]) if cost is not None and is_duration(cost[row]) else None,
            seed=seed,
            device=DEVICE,
            environment=about,
        )

    def _seed(self, architecture: Architecture, protocol: TabularProtocol, query: str) -> int:
        """Return the seed of the noise of a query, in [0, 2^32)."""
        text = "\n".join((self.name, protocol.name, architecture.functional_key, query))
        return int.from_bytes(blake2b(text.encode(), digest_size=4).digest(), "big")


def _standard_normal(seed: int) -> float:
    import numpy as np

    return float(np.random.default_rng(seed).standard_normal())


def _costs(table: Table, row: int, column: str) -> dict[str, float]:
    """Return the network's costs in the table, without the column of the value itself."""
    from archive.spaces.tables.costs import OF_NETWORK

    costs: dict[str, float] = {}
    for name in table.columns:
        cost = OF_NETWORK.fullmatch(name)
        if name == column or cost is None:
            continue

        value = float(table.costs(name)[row])
        if math.isfinite(value):
            if cost["millions"]:
                value = float(round(1e6 * value))

            costs[cost["counted"] or name] = value

    return costs


def parse(name: str) -> TabularTask:
    """Return the task with the name `table:PATH#COLUMN`, or `table:PATH#COLUMN~SD`.

    Raises:
        UsageError: The text, the file or the column cannot be used.
    """
    from archive.spaces.tables.reader import Table

    reference, column = reference_of(name) or ("", "")
    if not reference or not column.removeprefix("-"):
        raise UsageError(f"a table is named as table:PATH#COLUMN, got {name!r}")

    path = absolute(reference)
    table = Table.load(path)
    plain, separator, deviation = column.rpartition(NOISE)
    if separator and not {column, column.removeprefix("-")} & {*table.columns}:
        return parse(f"{PREFIX}{reference}#{plain}").with_noise(deviation)

    target = column if column in table.columns else column.removeprefix("-")
    table.column(target)
    return TabularTask(
        name=f"{PREFIX}{path}#{column}",
        label=f"{path.name.split('.')[0]}-{column}",
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

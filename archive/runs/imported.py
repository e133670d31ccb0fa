"""Runs that people keep in tables, with parents and scores, as runs of the archive.

A mapping says which column is what. A row is a proposal with its result, as a recorded run is; its
token is made of the file's origin and the row's id, so that the same file, or a longer one, adds new
rows only. Rows may name their parents in any order.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from archive import __version__
from archive.architecture.graph import Architecture
from archive.architecture.parameter_operations import PROGRAM_NAME as PROGRAM
from archive.architecture.parameter_operations import graph_of_values
from archive.errors import UsageError
from archive.exchange.importers.additions import Addition, add_missing
from archive.runs.life_cycle import plain_value
from archive.runs.secrets import Secrets
from archive.runs.table_columns import (
    RunMapping,
    check_columns,
    curve_columns,
    curve_points,
    identity_of,
    list_columns,
    start_of,
    text_of,
)
from archive.runs.table_files import TableRow
from archive.store.properties import curve_properties, latest, proposal_id
from archive.store.records import Result, Study
from archive.store.studies.creation import check_new_name
from archive.store.studies.studies import UNBOUNDED
from archive.values import as_float, setting_text

if TYPE_CHECKING:
    from archive.api import Archive

KIND = "import"
_NO_SECRETS = Secrets(())
MOST_TEXT = 200
"""Longest text that is a value of a run; a longer one is left out, unless it is the reason."""


@dataclass(frozen=True)
class RunImport:
    """Outcome of an import of runs.

    Attributes:
        study: Name of the study.
        runs: Number of rows of the table.
        added: Number of those that the study did not have.
        without_value: Number of rows without a number in the objective's column; they failed.
        without_parent: Number of rows whose parent is no row of the table.
        left_out: Columns of which nothing is kept.
    """

    study: str
    runs: int
    added: int
    without_value: int
    without_parent: int
    left_out: list[str]


@dataclass(frozen=True)
class _ImportedRun:
    """A row as a suggestion (`archive.queue.admission.SuggestionLike`)."""

    architecture: Architecture
    motivation: str | None
    repeat: bool
    parent: Architecture | None
    operations: tuple[str, ...]
    created: int
    properties: Mapping[str, Any] = field(default_factory=dict)


def import_runs(
    archive: Archive,
    name: str,
    rows: Sequence[TableRow],
    mapping: RunMapping,
    *,
    task: str | None = None,
    provenance: Mapping[str, str] = MappingProxyType({}),
) -> RunImport:
    """Add the rows of a table to a study of runs, which is created where there is none.

    Args:
        archive: The archive.
        name: Name of the study.
        rows: The rows, oldest first.
        mapping: Which column is what.
        task: Name of the task; None for the study's name.
        provenance: Origin of the results, by names of `archive.store.records.PROVENANCE`.

    Raises:
        UsageError: A column of the mapping is in no row, an id is there twice, or a time is none.
        StudyConflictError: The study exists with another space, task or objective.
    """
    columns = list_columns(rows)
    check_columns(mapping, columns)
    table = _Table(name, rows, mapping, columns)
    if name not in archive.studies.names():
        check_new_name(name)

    task = task or name
    archive.studies.create(
        Study(
            name,
            task,
            f"{task}/recorded",
            PROGRAM,
            mapping.objective,
            mapping.direction,
            budget=UNBOUNDED,
        )
    )
    tokens = _tokens_of(archive, name)
    additions = table.additions(tokens, provenance)
    agent = archive.proposals.register_agent(KIND, {}, __version__)
    added = add_missing(archive, name, agent, additions, "run")
    return RunImport(
        name, len(rows), added, table.without_value, table.without_parent, table.left_out
    )


class _Table:
    """The rows of a table as runs.

    Attributes:
        without_value: Number of rows without a number in the objective's column.
        without_parent: Number of rows whose parent is no row of the table.
        left_out: Columns of which nothing is kept.
    """

    def __init__(
        self, study: str, rows: Sequence[TableRow], mapping: RunMapping, columns: Sequence[str]
    ) -> None:
        """Read identities, and decide what each column is."""
        self._study = study
        self._rows = rows
        self._mapping = mapping
        self._steps = curve_columns(mapping, columns)
        self._values = self._value_columns(columns)
        self._positions = self._read_identities()
        self._identities = list(self._positions)
        self._graphs = [self._graph(row, identity) for identity, row in self._identified()]
        self.without_value = 0
        self.without_parent = 0
        kept = {*self._values, *self._mapped(), *mapping.metrics, *mapping.curves}
        for steps in self._steps.values():
            kept |= {column for _, column in steps}

        self.left_out = [column for column in columns if column not in kept]

    def additions(self, tokens: Mapping[str, int], provenance: Mapping[str, str]) -> list[Addition]:
        """Return the rows as additions to the study.

        Args:
            tokens: Numbers of the runs that the study has, by their tokens.
            provenance: Origin of the results.
        """
        numbers = self._numbers(tokens)
        additions = []
        seen: set[str] = set()
        for position, (identity, row) in enumerate(self._identified()):
            architecture = self._graphs[position]
            parent = self._parent(row)
            outcome = self._outcome(row, provenance)
            run = _ImportedRun(
                architecture=architecture,
                motivation=text_of(row, self._mapping.motivation),
                repeat=architecture.functional_key in seen,
                parent=self._morph_parent(position, parent),
                operations=self._operations(row, parent),
                created=start_of(row, self._mapping.started),
                properties=self._properties(row, parent, numbers, outcome),
            )
            seen.add(architecture.functional_key)
            additions.append(Addition(self._token(identity), run, outcome))

        return additions

    def _identified(self) -> list[tuple[str, TableRow]]:
        return list(zip(self._positions, self._rows, strict=True))

    def _read_identities(self) -> dict[str, int]:
        """Return the position of each row by its id."""
        positions: dict[str, int] = {}
        for position, row in enumerate(self._rows):
            identity = str(position)
            if self._mapping.identity is not None:
                identity = identity_of(row.get(self._mapping.identity, ""))

            if not identity:
                raise UsageError(
                    f"row {position + 1} has no id in the column {self._mapping.identity!r}"
                )

            if identity in positions:
                raise UsageError(
                    f"rows {positions[identity] + 1} and {position + 1} have one id, "
                    f"{identity!r:.60}: name another column, or none, which numbers the rows"
                )

            positions[identity] = position

        return positions

    def _token(self, identity: str) -> str:
        return f"{KIND}/{self._study}/{identity}"

    def _numbers(self, tokens: Mapping[str, int]) -> dict[str, int]:
        """Return the number that each row has or gets in the study, by its id."""
        following = max(tokens.values(), default=-1) + 1
        numbers = {}
        for identity in self._positions:
            number = tokens.get(self._token(identity))
            numbers[identity] = following if number is None else number
            following += number is None

        return numbers

    def _mapped(self) -> set[str]:
        mapping = self._mapping
        named = (
            mapping.objective,
            mapping.identity,
            mapping.parent,
            mapping.motivation,
            mapping.started,
        )
        return {column for column in named if column is not None}

    def _value_columns(self, columns: Sequence[str]) -> list[str]:
        """Return the columns with values that a run was given."""
        mapping = self._mapping
        if mapping.values is not None:
            return list(mapping.values)

        taken = self._mapped() | {*mapping.metrics, *mapping.curves}
        for steps in self._steps.values():
            taken |= {column for _, column in steps}

        kept = []
        for column in columns:
            texts = [row[column] for row in self._rows if isinstance(row.get(column), str)]
            if column not in taken and all(len(text) <= MOST_TEXT for text in texts):
                kept.append(column)

        return kept

    def _graph(self, row: TableRow, identity: str) -> Architecture:
        values = self._row_values(row)
        # Rows that say nothing of what was run are different runs.
        return graph_of_values(values or {"run": identity}, name=PROGRAM)

    def _row_values(self, row: TableRow) -> dict[str, Any]:
        values = {}
        for column in self._values:
            value = row.get(column)
            # JSON writes what is missing as null or NaN.
            is_missing = value is None or (isinstance(value, float) and math.isnan(value))
            if not is_missing:
                values[re.sub(r"[^A-Za-z0-9_]", "_", column)] = plain_value(value, _NO_SECRETS)

        return values

    def _parent(self, row: TableRow) -> int | None:
        """Return the position of the parent of a row."""
        column = self._mapping.parent
        if column is None or row.get(column) in (None, ""):
            return None

        identity = identity_of(row[column])
        position = self._positions.get(identity)
        if position is None:
            position = self._positions.get(identity.removesuffix(".0"))

        self.without_parent += position is None
        return position

    def _morph_parent(self, position: int, parent: int | None) -> Architecture | None:
        if parent is None or self._graphs[parent].key == self._graphs[position].key:
            return None

        return self._graphs[parent]

    def _operations(self, row: TableRow, parent: int | None) -> tuple[str, ...]:
        """Return what a row changes of its parent, in words."""
        if parent is None:
            return ()

        before = self._row_values(self._rows[parent])
        after = self._row_values(row)
        operations = []
        for name in sorted({*before, *after}):
            if before.get(name) != after.get(name):
                old = setting_text(before[name]) if name in before else "absent"
                new = setting_text(after[name]) if name in after else "absent"
                operations.append(f"{name}: {old} -> {new}"[:MOST_TEXT])

        return tuple(operations)

    def _outcome(self, row: TableRow, provenance: Mapping[str, str]) -> Result | str:
        curve = self._curve(row)
        value = as_float(row.get(self._mapping.objective))
        if value is None:
            value = latest(curve).get(self._mapping.objective)

        if value is None or not math.isfinite(value):
            self.without_value += 1
            return f"the table has no value of {self._mapping.objective}"

        metrics = {self._mapping.objective: value}
        for column in self._mapping.metrics:
            number = as_float(row.get(column))
            if number is not None and math.isfinite(number):
                metrics[column] = number

        return Result(value=value, metrics=metrics, curve=curve, provenance=provenance)

    def _curve(self, row: TableRow) -> dict[str, list[float]]:
        """Return the curves of a row as lists of one length, NaN where a step has no value."""
        points: dict[int, dict[str, float]] = {}
        for name in self._mapping.curves:
            for step, number in curve_points(row, name, self._steps.get(name, ())):
                points.setdefault(step, {})[name] = number

        steps = sorted(points)
        if not steps:
            return {}

        curve = {"epoch": [float(step) for step in steps]}
        for name in self._mapping.curves:
            curve[name] = [points[step].get(name, math.nan) for step in steps]

        return curve

    def _properties(
        self,
        row: TableRow,
        parent: int | None,
        numbers: Mapping[str, int],
        outcome: Result | str,
    ) -> dict[str, Any]:
        properties: dict[str, Any] = {"program": self._study}
        if parent is not None:
            identity = self._identities[parent]
            properties["derived_from"] = proposal_id(self._study, numbers[identity])

        if isinstance(outcome, str):
            properties |= curve_properties(self._curve(row))

        return properties


def _tokens_of(archive: Archive, study: str) -> dict[str, int]:
    """Return the number of each proposal of a study by its token."""
    tokens = {}
    for proposal in archive.proposals.list(study):
        if proposal.request is not None:
            tokens[proposal.request] = proposal.number

    return tokens

"""Results of studies in the order in which they were recorded, as arrays.

| symbol | meaning                                                          | shape |
|--------|------------------------------------------------------------------|-------|
| value  | the objective, in the task's own unit; NaN after a failed number | (n,)  |
| score  | the value, or minus the value where the study minimises          | (n,)  |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from archive.errors import UsageError
from archive.objectives import sign
from archive.store import result_columns
from archive.store.properties import metric_properties

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.store.records import Study


Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]

_ALWAYS = ("value", "partial", "created")


@dataclass(frozen=True, eq=False)
class RecordedResults:
    """The n results of one study, ordered by the time of their record, then by number.

    Attributes:
        study: The study.
        number: (n,) numbers of the proposals.
        value: (n,) float64, the objective in the task's own unit; NaN for a training that gave no
            number.
        partial: (n,) whether the value was measured before the end of the training, at a rung.
        created: (n,) time of the record, in milliseconds since 1970; NaN where it is unknown.
        columns: Further columns of n results by name, as `archive.store.result_columns` has them.
        feasible: (n,) whether a result meets the constraints of the study.
    """

    study: Study
    number: Integers
    value: Floats
    partial: Booleans
    created: Floats
    columns: Mapping[str, list[Any]]
    feasible: Booleans

    def __len__(self) -> int:
        """Number of results."""
        return len(self.number)

    @property
    def score(self) -> Floats:
        """(n,) scores: larger is better."""
        return sign(self.study.direction) * self.value

    @property
    def comparable(self) -> Booleans:
        """(n,) whether a result counts for the best: whole, finite, meeting the constraints.

        Partial results count only in a study that has no whole one, as in `archive study best`.
        """
        finite = np.isfinite(self.value) & self.feasible
        whole = finite & ~self.partial
        return whole if whole.any() else finite

    def numbers(self, name: str) -> Floats:
        """Return a column as (n,) float64; NaN where a result has no such number."""
        return floats(self.columns[name])

    def at(self, rows: Integers) -> RecordedResults:
        """Return some of the results."""
        columns = {name: pick(column, rows) for name, column in self.columns.items()}
        return RecordedResults(
            self.study,
            self.number[rows],
            self.value[rows],
            self.partial[rows],
            self.created[rows],
            columns,
            self.feasible[rows],
        )


def read(
    archive: Archive, studies: str | Sequence[str], columns: Sequence[str] = ()
) -> list[RecordedResults]:
    """Return the results of studies, in the order of their names in the call.

    Args:
        archive: The archive.
        studies: Name of a study, or names of several.
        columns: Further columns to read (`archive.store.result_columns`).

    Raises:
        UnknownNameError: There is no study of this name.
        UsageError: No study is named, or their values are not comparable: another task, protocol or
            objective.
    """
    if isinstance(studies, str):
        studies = [studies]

    names = list(dict.fromkeys(studies))
    if not names:
        raise UsageError("a plot needs at least one study")

    stored = list(map(archive.studies.get, names))
    check_comparable(stored)
    requested = [*_ALWAYS, *columns]
    for study in stored:
        requested += metric_properties(study.constraints)

    tables = result_columns.read(archive.connection, names, list(dict.fromkeys(requested)))
    by_name = {table.study: table.columns for table in tables}
    return [_collect(study, by_name[study.name]) for study in stored]


def check_comparable(studies: Sequence[Study]) -> None:
    """Raise an error for studies without a common axis of values.

    Raises:
        UsageError: Two studies differ in task, protocol, objective or direction; the message names
            both.
    """
    first = studies[0]
    for other in studies[1:]:
        for name in ("task", "protocol", "objective", "direction"):
            first_value = getattr(first, name)
            other_value = getattr(other, name)
            if first_value != other_value:
                raise UsageError(
                    f"{first.name!r} and {other.name!r} have no common axis: "
                    f"{name} {first_value!r} and {other_value!r}; plot them apart"
                )


def check_feasible(results: Sequence[RecordedResults]) -> None:
    """Check that some result with a value meets the constraints of its study.

    Raises:
        UsageError: There are values, but no result with a value meets the constraints; the message
            names the constraints.
    """
    has_value = False
    has_feasible = False
    for result in results:
        valued = ~np.isnan(result.value)
        has_value |= bool(valued.any())
        has_feasible |= bool((valued & result.feasible).any())

    if has_value and not has_feasible:
        names = quote_studies(results)
        limits: dict[str, None] = {}
        for result in results:
            limits |= dict.fromkeys(map(str, result.study.constraints))

        raise UsageError(f"no result of {names} meets {', '.join(limits)}")


def floats(column: Sequence[Any]) -> Floats:
    """Return a column as (n,) float64; NaN where there is no number."""
    return np.array(column, np.float64)


def pick(column: Sequence[Any], rows: Iterable[int]) -> list[Any]:
    """Return the entries of a column at these positions."""
    return [column[row] for row in rows]


def study_names(results: Iterable[RecordedResults]) -> tuple[str, ...]:
    """Return the names of the studies of results."""
    return tuple(result.study.name for result in results)


def quote_studies(results: Iterable[RecordedResults]) -> str:
    """Return the names of the studies of results for a message."""
    return ", ".join(map(repr, study_names(results)))


class Drawn(Protocol):
    """Data of a plot, some of which may be left out."""

    @property
    def left_out(self) -> int:
        """Number of values that cannot be drawn."""
        ...


def sum_left_out(parts: Iterable[Drawn]) -> int:
    """Return how many values of all parts cannot be drawn."""
    return sum(part.left_out for part in parts)


def _collect(study: Study, columns: result_columns.Columns) -> RecordedResults:
    number = np.array(columns["number"], np.int64)
    created = floats(columns["created"])
    # NaN sorts last.
    order = np.lexsort((number, created))
    others = {name: pick(column, order) for name, column in columns.items()}
    del others["number"]
    value = floats(columns["value"])
    partial = np.array(columns["partial"], np.bool_)
    recorded = (number[order], value[order], partial[order], created[order])
    feasible = np.array(result_columns.feasible(study.constraints, columns), np.bool_)
    return RecordedResults(study, *recorded, others, feasible[order])


LARGEST = 1e150
"""Largest absolute number that is drawn: sums of squares of such differences are finite."""


def mask_undrawable(numbers: Floats) -> Floats:
    """Return numbers with NaN in place of those that cannot be drawn."""
    return np.where(np.abs(numbers) > LARGEST, np.nan, numbers)


def count_undrawable(*columns: Floats) -> int:
    """Return how many numbers of columns cannot be drawn; NaN stands for no number."""
    count = 0
    for column in columns:
        count += int((np.abs(column) > LARGEST).sum())

    return count


def describe_undrawable(left_out: int, before: str = "") -> str:
    """Return the sentence about undrawable numbers without full stop; empty for none.

    Args:
        left_out: How many there are.
        before: Text before the sentence.
    """
    if not left_out:
        return ""

    subject = "1 number is" if left_out == 1 else f"{left_out:,} numbers are"
    return f"{before}{subject} left out, beyond 1e150"

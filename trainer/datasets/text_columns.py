"""Columns of texts that are numbers, dates or texts, with gaps; and targets of texts."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from archive.errors import UnusableFileError
from archive.trainer.datasets import targets
from archive.trainer.datasets.targets import Kind
from archive.trainer.datasets.user_readers import (
    LARGEST,
)
from archive.values import decimal

GAPS = frozenset({"", "na", "n/a", "nan", "null", "?"})
"""Entries that are gaps, in lower case."""
NEARLY = 0.9
FEW_NUMBERS = 20
"""A column with more distinct numbers, of which this share looks like numbers, is meant as one."""
ColumnKind = Literal["number", "date", "text", "empty"]
_LIKE_NUMBER = re.compile(r"[^\w]*\d[\d.,_' ]*[^\w]*(?:[eE][+-]?\d+)?")
_COMMA = re.compile(r"[+-]?(?:\d+|\d{1,3}(?:\.\d{3})+)(?:,\d+)?(?:[eE][+-]?\d+)?")
_ISO = re.compile(
    r"(\d{4})([-/])(\d{1,2})\2(\d{1,2})"
    r"(?:[ T](\d{1,2}):(\d{2})(?::(\d{2})(?:\.\d+)?)?)? ?(Z|[+-]\d{2}:?\d{2})?"
)
_LOCAL = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4})(?: (\d{1,2}):(\d{2})(?::(\d{2}))?)?")


@dataclass(frozen=True, slots=True)
class MixedColumn:
    """A column of inputs.

    Attributes:
        name: Name in the header.
        kind: Kind of its entries.
        numbers: (n, k) float64 with NaN for gaps: the number, or the date and its parts.
        codes: (n,) int64 numbers of texts in the order of the texts, -1 for gaps.
    """

    name: str
    kind: ColumnKind
    numbers: NDArray[np.float64] | None = None
    codes: NDArray[np.int64] | None = None


@dataclass(frozen=True, slots=True)
class TextEntries:
    """The entries of a column: the distinct texts, and the number of the text in each row."""

    texts: tuple[str, ...]
    codes: NDArray[np.int64]

    @property
    def filled(self) -> list[str]:
        """The distinct texts that are no gaps."""
        return [text for text in self.texts if not _is_gap(text)]

    def row_of(self, text: str) -> int:
        """Return the first row of a text, from 1."""
        return int(np.flatnonzero(self.codes == self.texts.index(text))[0]) + 1


def _is_gap(text: str) -> bool:
    return text.lower() in GAPS


def has_decimal_commas(column: TextEntries) -> bool:
    """Whether all entries are numbers, and one has a decimal comma."""
    filled = column.filled
    has_comma = any("," in text for text in filled)
    return has_comma and all(_COMMA.fullmatch(text) for text in filled)


def _plain(text: str, commas: bool) -> str:
    """Return a number with a point, where the file has commas and the number could have one."""
    if commas and _COMMA.fullmatch(text):
        return text.replace(".", "").replace(",", ".")

    return text


def _number(text: str, commas: bool) -> float | None:
    try:
        return decimal(_plain(text, commas))
    except ValueError:
        return None


def column_of_texts(
    path: Path, index: int, name: str, column: TextEntries, commas: bool
) -> MixedColumn:
    """Return a column of inputs.

    Args:
        path: Path of the file, for messages.
        index: Number of the column, from 0.
        name: Its name.
        column: Its entries.
        commas: Whether the file has decimal commas.

    Raises:
        UnusableFileError: An entry cannot be used.
    """
    filled = column.filled
    if not filled:
        return MixedColumn(name, "empty")

    # A point is the decimal one where any entry of the column cannot have thousands.
    commas = commas and all(_COMMA.fullmatch(text) for text in filled)
    numbers = {text: _number(text, commas) for text in filled}
    if None not in numbers.values():
        return MixedColumn(name, "number", _numbers(path, index, name, column, numbers))

    dates = _dates(path, index, name, column)
    if dates is not None:
        return MixedColumn(name, "date", dates)

    _refuse_nearly_numbers(path, index, name, column, numbers)
    gaps = np.array([_is_gap(text) for text in column.texts], np.bool_)
    return MixedColumn(name, "text", codes=np.where(gaps[column.codes], -1, column.codes))


def _numbers(
    path: Path, index: int, name: str, column: TextEntries, numbers: Mapping[str, float | None]
) -> NDArray[np.float64]:
    values = np.full(len(column.texts), np.nan)
    for number, text in enumerate(column.texts):
        value = numbers.get(text)
        if value is None:
            continue

        _check_number(path, index, name, column, text, value)
        values[number] = value

    return values[column.codes][:, None]


def _check_number(
    path: Path, index: int, name: str, column: TextEntries, text: str, value: float | None
) -> None:
    if value is None or not abs(value) <= LARGEST:
        limit = f" up to {LARGEST:.1e}" if value is not None and math.isfinite(value) else ""
        raise _fault(path, index, name, column, text, f"a finite number{limit}")


def _fault(
    path: Path, index: int, name: str, column: TextEntries, text: str, need: str
) -> UnusableFileError:
    fault = f"row {column.row_of(text)} of {path} must have {need} in the column"
    return UnusableFileError(f"{fault} {index + 1}", f"{fault} {name!r}, got {text!r}")


def _refuse_nearly_numbers(
    path: Path, index: int, name: str, column: TextEntries, numbers: Mapping[str, float | None]
) -> None:
    like_numbers = [text for text in numbers if _LIKE_NUMBER.fullmatch(text)]
    if len(like_numbers) <= FEW_NUMBERS or len(like_numbers) < NEARLY * len(numbers):
        return

    for text, number in numbers.items():
        if number is None:
            need = "a plain number like nearly all others"
            raise _fault(path, index, name, column, text, need)


def _dates(path: Path, index: int, name: str, column: TextEntries) -> NDArray[np.float64] | None:
    """Return the days since 1970, months, weekdays and perhaps hours; None if they are no dates."""
    filled = column.filled
    iso = [_ISO.fullmatch(text) for text in filled]
    local = [_LOCAL.fullmatch(text) for text in filled]
    if not all(iso) and not all(local):
        return None

    day_first = all(iso) or _has_day_first(path, name, [match for match in local if match])
    values = np.full((len(column.texts), 4), np.nan)
    for number, text in enumerate(column.texts):
        if _is_gap(text):
            continue

        try:
            moment = _moment(text, day_first)
        except ValueError:
            raise _fault(path, index, name, column, text, "a date of the calendar") from None

        days = (moment - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(days=1)
        hours = moment.hour + moment.minute / 60 + moment.second / 3600
        values[number] = days, moment.month, moment.weekday(), hours

    has_times = bool((values[:, 3] > 0).any())
    return values[column.codes][:, : 4 if has_times else 3]


def _has_day_first(path: Path, name: str, matches: Sequence[re.Match[str]]) -> bool:
    firsts = max(int(match[1]) for match in matches)
    seconds = max(int(match[3]) for match in matches)
    if any(match[2] == "." for match in matches) or firsts > 12:
        return True

    if seconds > 12:
        return False

    fault = f"{path} has dates whose day and month cannot be told apart"
    raise UnusableFileError(fault, f"{fault} in the column {name!r}: write them as 2024-01-31")


def _moment(text: str, day_first: bool) -> datetime:
    match = _ISO.fullmatch(text)
    if match is not None:
        year, _, month, day, hour, minute, second, zone = match.groups()
        moment = datetime(
            int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0)
        )
        if zone is None or zone == "Z":
            return moment.replace(tzinfo=UTC)

        return moment.replace(tzinfo=datetime.strptime(zone, "%z").tzinfo).astimezone(UTC)

    match = _LOCAL.fullmatch(text)
    if match is None:
        raise ValueError(text)

    first, _, second_part, year, hour, minute, second = match.groups()
    day, month = (first, second_part) if day_first else (second_part, first)
    return datetime(
        int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0), 0, UTC
    )


ADVICE = ": append :values to the column's name if they are no classes"


def target_of_texts(
    path: Path, index: int, target: str, column: TextEntries, kind: Kind | None, commas: bool
) -> tuple[NDArray[Any], Kind, str]:
    """Return the answers, their kind, and the advice on classes with too few rows.

    Raises:
        UnusableFileError: An entry cannot be used; arguments as of `column_of_texts`.
    """
    filled = column.filled
    are_numbers = bool(filled) and all(_number(text, commas) is not None for text in filled)
    for text in column.texts:
        # A text such as "NA" may be a class among texts.
        if text == "" or (are_numbers and _is_gap(text) and _number(text, commas) is None):
            raise UnusableFileError(
                f"row {column.row_of(text)} of {path} has nothing in the column {target!r}"
            )

    plain = [_plain(text, commas) for text in column.texts]
    rows = [plain[code] for code in column.codes]
    labels = targets.labels_of(rows)
    if (kind or targets.kind_of_labels(labels)) == "classes":
        advice = ADVICE if are_numbers and kind is None else ""
        return targets.classes_of_texts(rows, labels), "classes", advice

    values = np.empty(len(column.texts))
    for number, text in enumerate(column.texts):
        value = _number(text, commas)
        _check_number(path, index, target, column, text, value)
        values[number] = 0.0 if value is None else value

    return values[column.codes], "values", ""

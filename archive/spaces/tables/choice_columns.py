"""Tables of choices: the columns of decisions, and the space that they make.

| columns               | space                                                                              |
|-----------------------|------------------------------------------------------------------------------------|
| `chain:NAME`, several | a chain: one decision a column, in the order of the columns; an entry is an option |
| `set:NAME`, several   | a set, likewise                                                                    |
| `arch`                | a chain: one decision a character, as in NAS-Bench-Macro; `layer 1`, `layer 2`, …  |

The options of a decision are the entries of its column, sorted; numbers by their size. A column
with one entry makes no decision, except where the reader of the file knows further options.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType

from archive.architecture.graph import Architecture
from archive.errors import CodecError, SettingsError
from archive.spaces.choice_names import CHAIN
from archive.spaces.choices import FORMS, Choices
from archive.spaces.tables.forms import TableForm

TEXT = "arch"
COLUMNS = (*(f"{form}:NAME" for form in FORMS), TEXT)
"""The forms of columns, for messages."""
NO_OPTIONS: Mapping[str, Sequence[str]] = MappingProxyType({})


def choice_form(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    row_numbers: Sequence[int],
    further: Mapping[str, Sequence[str]] = NO_OPTIONS,
) -> TableForm | None:
    """Return the form of a table of choices; None if it has no such column.

    Args:
        head: Names of the columns.
        rows: The entries; rows of another length are left out.
        row_numbers: Number of each row in the file, for messages.
        further: Options of decisions by name, for those of which the rows have one.

    Raises:
        SettingsError: The columns make no space of choices.
    """
    whole = [row for row in rows if len(row) == len(head)]
    if (
        len(used := [form for form in FORMS if any(name.startswith(f"{form}:") for name in head)])
        > 1
    ):
        raise SettingsError(
            f"its decisions are columns {' and '.join(f'{form}:NAME' for form in used)}: "
            "choose "
            "one form"
        )

    for form in FORMS:
        places = [at for at, name in enumerate(head) if name.startswith(f"{form}:")]
        if places:
            _check_filled(head, rows, row_numbers, places)
            decisions = {head[at].partition(":")[2]: {row[at] for row in whole} for at in places}
            if len(decisions) < len(places):
                raise SettingsError(f"two columns {form}:NAME have one name")

            return _of(_choices(decisions, form, further), tuple(head[at] for at in places))

    if TEXT not in head:
        return None

    texts = [row[head.index(TEXT)] for row in whole]
    # Texts of another length are refused row by row.
    longest = max(map(len, texts), default=0)
    characters = {
        f"layer {at + 1}": {text[at] for text in texts if at < len(text)} for at in range(longest)
    }
    return _of(_choices(characters, CHAIN, further), (TEXT,))


def _check_filled(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    row_numbers: Sequence[int],
    places: Sequence[int],
) -> None:
    for row, number in zip(rows, row_numbers, strict=True):
        for place in places:
            if len(row) == len(head) and not row[place].strip():
                raise SettingsError(
                    f"row {number} has nothing in the column {head[place]!r}: write its "
                    "option, "
                    "such as none"
                )


def _choices(
    decisions: Mapping[str, set[str]], form: str, further: Mapping[str, Sequence[str]]
) -> Choices:
    whole = {
        name: one if len(one) > 1 else one.union(further.get(name, ()))
        for name, one in decisions.items()
    }
    return Choices({name: _sorted(options) for name, options in whole.items()}, form)


def _of(space: Choices, columns: tuple[str, ...]) -> TableForm:
    read = partial(_from_text if columns == (TEXT,) else _from_entries, space)
    return TableForm(space.name, columns, (), read, config=space.config)


def _from_text(space: Choices, text: str) -> Architecture:
    return _from_entries(space, *text)


def _from_entries(space: Choices, *entries: str) -> Architecture:
    if len(entries) != len(space.options):
        raise CodecError(f"it must have {len(space.options)} decisions, got {len(entries)}")

    return space.built(
        [
            _position(options, entry)
            for options, entry in zip(space.options.values(), entries, strict=True)
        ]
    )


def _position(options: Sequence[str], entry: str) -> int:
    if entry not in options:
        raise CodecError(f"the option {entry!r} is unknown")

    return options.index(entry)


def _sorted(entries: Iterable[str]) -> list[str]:
    """Return the distinct entries in one order in every process: numbers by their size, NaN last,
    then by text.
    """
    distinct = sorted(set(entries))
    try:
        return sorted(distinct, key=lambda entry: (math.isnan(float(entry)), float(entry)))
    except ValueError:
        return distinct

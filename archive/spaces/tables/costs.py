"""Columns of costs in tables: which they are, and which of their entries are possible.

| column                                                    | possible entries          |
|-----------------------------------------------------------|---------------------------|
| `params`, `flops`, `params_millions`, `flops_millions`    | counts from 0 to 2^63 - 1 |
| `train_seconds…`, `train_time…` (seconds), and `latency…` | finite numbers >= 0       |

A table may mark missing costs by -1, or hold an overflow. A network with such an entry has no such
cost; its value stays. As the value of a task, a column is read as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from archive.values import is_duration, is_size

OF_NETWORK = re.compile(r"(?P<counted>params|flops)(?P<millions>_millions)?|latency\w*")
"""Names of columns of costs of a network, which are metrics of its results."""

SECONDS = re.compile(r"train_(seconds|time)")
"""Beginning of the name of the column of training seconds, as in `train_seconds_200ep` and
`train_time_108ep_s`."""


class ImpossibleCosts(NamedTuple):
    """Entries of a column that are no costs.

    Attributes:
        first: Place and text of the first entry, `row 3 has '-1'`.
        classes: Positions of the networks with such an entry.
    """

    first: str
    classes: tuple[int, ...]


def is_cost(column: str) -> bool:
    """Return whether a column holds costs, by its name."""
    return bool(OF_NETWORK.fullmatch(column) or SECONDS.match(column))


def is_count(column: str) -> bool:
    """Return whether a column of costs holds sizes, by its name."""
    cost = OF_NETWORK.fullmatch(column)
    return cost is not None and cost["counted"] is not None


def is_possible(column: str, entry: float) -> bool:
    """Return whether a number can be an entry of a column of costs; NaN, a missing one, can."""
    if entry != entry:
        return True

    if not is_count(column):
        return is_duration(entry)

    return is_size(1e6 * entry if column.endswith("_millions") else entry)


def impossible(
    columns: Mapping[str, Sequence[float]],
    texts: Mapping[str, Sequence[str]],
    numbers: Sequence[int],
) -> dict[str, tuple[str, list[int]]]:
    """Return columns of costs with impossible entries: the first in words, the positions of all.

    Args:
        columns: Name to one number per row.
        texts: Name to the text of each row.
        numbers: Number of each row in the file.
    """
    impossible_costs = {}
    for name, entries in columns.items():
        if not is_cost(name):
            continue

        rows = []
        for row, entry in enumerate(entries):
            if not is_possible(name, entry):
                rows.append(row)

        if rows:
            impossible_costs[name] = (
                f"row {numbers[rows[0]]} has {texts[name][rows[0]].strip()!r}",
                rows,
            )

    return impossible_costs

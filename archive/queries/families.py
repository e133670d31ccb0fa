"""Years of published families, for the saved query `families`.

`families.json` has the first and the last year of the papers that the file of a family at its
source names. `python docs/scripts/family_years.py` writes it.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from importlib.resources import files

from archive.database.user_query import QueryResult

FIRST, LAST, FAMILY = range(3)
"""Columns of the query."""


@cache
def years() -> dict[str, tuple[int, int]]:
    """Return the first and the last year of each family."""
    text = (files("archive.queries") / "families.json").read_text(encoding="utf-8")
    return {family: (first, last) for family, (first, last) in json.loads(text).items()}


def with_years(answer: QueryResult) -> QueryResult:
    """Return the rows of the query with the years of the families, the oldest first."""
    rows = []
    for row in answer.rows:
        values = list(row)
        values[FIRST : LAST + 1] = years().get(values[FAMILY], (None, None))
        rows.append(tuple(values))

    rows.sort(key=lambda row: (row[FIRST] is None, row[FIRST], row[FAMILY]))
    return replace(answer, rows=rows)

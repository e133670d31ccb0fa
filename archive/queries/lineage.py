"""Lineage of a study's best network: only the choice of this network uses columns of results."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from archive.database.user_query import QueryResult, run_query
from archive.queries import catalogue
from archive.store import result_columns
from archive.store.properties import METRIC
from archive.store.records import sign
from archive.store.studies import studies

if TYPE_CHECKING:
    from archive.database.connection import Connection
    from archive.store.records import Study


def lineage(connection: Connection, params: Mapping[str, Any], deadline: float = math.inf) -> QueryResult | None:
    """Answer `lineage`."""
    study = studies.read(connection, params["study"])
    best = _best(connection, study, deadline)
    if best is None:
        return None
    query = f"MATCH (best:Architecture {{key: $best}})\n{catalogue.get('lineage').after('best')}"
    return run_query(connection, query, {**params, "best": best})


def _best(connection: Connection, study: Study, deadline: float) -> str | None:
    """Return the key of the best network.

    Results that meet the constraints come first, then whole ones, then those with a finite value of each objective.
    """
    further = [METRIC + each.name for each in study.further]
    names = ["value", "partial", "architecture", *further]
    limited = [METRIC + each.name for each in study.constraints]
    best: tuple[tuple[bool, bool, bool, float], str] | None = None
    for one in result_columns.read(connection, [study.name], [*dict.fromkeys([*names, *limited])], deadline):
        met = result_columns.feasible(study.constraints, one.columns)
        rows = zip(met, *(one.columns[name] for name in names), strict=True)
        for feasible, value, partial, key, *others in rows:
            if value is None or math.isnan(value):
                continue
            told = all(other is not None and math.isfinite(other) for other in others)
            rank = (feasible, not partial, told, sign(study.direction) * value)
            # Of equal results, the first one.
            if best is None or rank > best[0]:
                best = rank, key
    return None if best is None else best[1]

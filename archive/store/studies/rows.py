"""Rows of a study: one row a proposal with its result, the read model of live tables and plots.

A statement returns a thousand rows in one list, as `archive.store.result_columns` does, because both
servers and the driver spend more time on a row than on its content.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, LiteralString

from archive.store.studies.creation import MOST_OBJECTIVES, feasible_in, whole_in

Row = tuple[Any, ...]

OF_OBJECTIVES: Mapping[str, LiteralString] = {
    f"objective_{index + 1}": f"e['metric_' + $objectives[{index}]]"
    for index in range(1, MOST_OBJECTIVES)
}
"""Values of the objectives beside the first one, whose value is `value`."""

FIELDS: Mapping[str, LiteralString] = {
    "number": "p.number",
    "state": "p.state",
    "value": "e.value",
    "mean": "p.mean",
    "std": "p.std",
    "agent": "p.agent",
    "architecture": "p.architecture",
    "epochs": "e.epochs",
    "seconds": "e.seconds",
    "finished": "p.finished",
    "params": "e.metric_params",
    "flops": "e.metric_flops",
    "latency_ms": "e.metric_latency_ms",
    "peak_memory_bytes": "e.metric_peak_memory_bytes",
    "rung": "p.rung",
    "worker": "p.worker",
    "reason": "p.reason",
    "answered_from": "e.answered_from",
    **OF_OBJECTIVES,
    # Parameters stand for the study's node: these queries start from proposals, and it would cost a
    # look-up each.
    "feasible": f"coalesce({feasible_in('$')}, false)",
    "whole": f"coalesce({whole_in('$')}, false)",
}
"""Fields of a row with their places in the database."""

NUMBER, STATE, VALUE = (list(FIELDS).index(name) for name in ("number", "state", "value"))
AGENT, REASON, FEASIBLE_AT, WHOLE_AT = (
    list(FIELDS).index(name) for name in ("agent", "reason", "feasible", "whole")
)

EXTENT = """
MATCH (s:Study {name: $study})
USING INDEX SEEK s:Study(name)
RETURN s.created AS created, s.budget AS budget, s.next_number AS next, s.rewritten AS rewritten,
       s.note AS note, s.tags AS tags
"""

COUNT = (
    "MATCH (p:Proposal {study: $study}) USING INDEX SEEK p:Proposal(study) RETURN count(p) AS count"
)

# In a list, because ArcadeDB would seek by state, through the entries of all studies
# (`archive.queue.claims`).
RUNNING = """
MATCH (p:Proposal {open: $study})
USING INDEX SEEK p:Proposal(open)
WHERE p.state IN ['RUNNING']
RETURN p.number AS number, p.architecture AS architecture, p.agent AS agent, p.worker AS worker,
       p.started AS started, p.attempts AS attempts, p.mean AS mean, p.std AS std,
       [name IN keys(p) WHERE name STARTS WITH 'curve_' | [name, p[name]]] AS curve
ORDER BY number
"""


def select_all(further: int, *, evaluated: bool) -> LiteralString:
    """Return the statement of all rows of `$study`.

    Args:
        further: Number of objectives beside the first one; reading three properties by a computed
            name adds a sixth to the time of all others.
        evaluated: Whether to leave out proposals without a result: ArcadeDB needs half the time
            without OPTIONAL.
    """
    match: LiteralString = "MATCH" if evaluated else "OPTIONAL MATCH"
    return f"""
MATCH (p:Proposal {{study: $study}})
USING INDEX SEEK p:Proposal(study)
{match} (p)-[:RESULTED_IN]->(e:Evaluation)
WITH p.number / 1000 AS part, {_collect(further)} AS rows
RETURN rows
"""


def select_some(further: int) -> LiteralString:
    """Return the statement of the rows with `$ids`."""
    return f"""
UNWIND $ids AS id
MATCH (p:Proposal {{id: id}})
USING INDEX SEEK p:Proposal(id)
OPTIONAL MATCH (p)-[:RESULTED_IN]->(e:Evaluation)
RETURN {_collect(further)} AS rows
"""


def select_open(further: int) -> LiteralString:
    """Return the statement of the waiting and running rows of `$study`."""
    return f"""
MATCH (p:Proposal {{open: $study}})
USING INDEX SEEK p:Proposal(open)
WHERE p.state IN ['WAITING', 'RUNNING']
OPTIONAL MATCH (p)-[:RESULTED_IN]->(e:Evaluation)
RETURN {_collect(further)} AS rows
"""


def _collect(further: int) -> LiteralString:
    """Return the expression of a list of rows; objectives that the study lacks are null."""
    unused = list(OF_OBJECTIVES)[further:]
    values: list[LiteralString] = []
    for name, value in FIELDS.items():
        values.append("null" if name in unused else value)

    return f"collect([{', '.join(values)}])"

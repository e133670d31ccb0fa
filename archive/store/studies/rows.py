"""Read model of a study: one row per proposal, with the result that it led to.

Snapshots, columns of results, exports, data frames and the page select columns of it by name
(`COLUMNS`; the others are properties of evaluations and networks, see `select`):

    read_rows(tx, ("number", "state", "value"), study=name)      all proposals of a study
    read_rows(tx, ("number", "value"), SOME, ids=ids)            some of any studies

Rows come in no order: their readers sort them by `number`, because ArcadeDB sorts in its heap. A
row without a result has None in the columns of results. Times are milliseconds since 1970 by the
server's clock, durations seconds, values in the task's own unit; `mean` and `std` are of the score,
which is larger for better networks.

A statement returns a thousand rows in one list, because both servers and the driver spend more time
on a row than on its content: about 10 µs per row of few numbers. Proposals are found by a property,
not through the study's node: ArcadeDB may see no relationships of a node for an instant while
another transaction commits a write to it, and all searches write to the node of their study.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, LiteralString

from archive.store.properties import quoted
from archive.store.studies.creation import (
    constraint_lists,
    feasible_in,
    objective_names,
    whole_in,
)

if TYPE_CHECKING:
    from neo4j import ManagedTransaction

    from archive.store.records import Study

Row = tuple[Any, ...]

ALL = """
MATCH (p:Proposal {study: $study})
USING INDEX SEEK p:Proposal(study)
"""
SOME = """
UNWIND $ids AS id
MATCH (p:Proposal {id: id})
USING INDEX SEEK p:Proposal(id)
"""
# States in a list, because ArcadeDB would seek by state, through the entries of all studies
# (`archive.queue.claims`).
OPEN = """
MATCH (p:Proposal {open: $study})
USING INDEX SEEK p:Proposal(open)
WHERE p.state IN ['WAITING', 'RUNNING']
"""
RUNNING = """
MATCH (p:Proposal {open: $study})
USING INDEX SEEK p:Proposal(open)
WHERE p.state IN ['RUNNING']
"""
"""Choices of proposals: all of `$study`, those with `$ids`, the open and the running ones."""

RESULT = "OPTIONAL MATCH (p)-[:RESULTED_IN]->(e:Evaluation)"

_OF_RESULT = re.compile(r"\be\b")
"""Part of the expression of a column that is a property of the evaluation."""

# A reader may see a part of a commit: the state of a proposal without its evaluation. If the
# evaluation is still missing a minute later, a user's query has deleted it.
HALF_SECONDS = 60
_LATELY = f"p.finished > timestamp() - {1000 * HALF_SECONDS}"

OF_PROPOSALS = (
    "number",
    "state",
    "architecture",
    "functional_key",
    "agent",
    "request",
    "based_on",
    "acquisition",
    "mean",
    "std",
    "priority",
    "fidelity",
    "hyperparameters",
    "configuration",
    "rung",
    "rung_constrained",
    "attempts",
    "worker",
    "reason",
    "started",
    "finished",
    "program",
    "derived_from",
    "code_commit",
    "code_branch",
)
"""Columns that are properties of proposals."""

COLUMNS: Mapping[str, LiteralString] = MappingProxyType(
    {
        "proposal": "p.id",
        "proposed": "p.created",
        "agent_seconds": "p.seconds",
        # The lists of a training so far, and the lists of a result.
        "curve": "[name IN keys(p) WHERE name STARTS WITH 'curve_' | [name, p[name]]]",
        "result_curve": "[name IN keys(e) WHERE name STARTS WITH 'curve_' | [name, e[name]]]",
        "metrics": "[name IN keys(e) WHERE name STARTS WITH 'metric_' | [name, e[name]]]",
        "evaluation": "properties(e)",
        "evaluation_without_curves": (
            "[name IN keys(e) WHERE NOT name STARTS WITH 'curve_' | [name, e[name]]]"
        ),
        # The state; a proposal that lacks its result for an instant is still running.
        "settled_state": (
            f"CASE WHEN e IS NULL AND p.state IN ['COMPLETE', 'PRUNED'] AND {_LATELY} "
            "THEN 'RUNNING' ELSE p.state END"
        ),
        # The state of a proposal without a result; None where a user has deleted the result.
        "resultless_state": (
            "CASE WHEN e IS NULL AND "
            f"(p.state IN ['WAITING', 'RUNNING', 'FAILED'] OR {_LATELY}) THEN p.state END"
        ),
        # Whether the result meets the constraints, and has a finite value of each objective.
        # Parameters (`parameters_of`) stand for the study's node, which would cost a look-up each.
        "feasible": f"coalesce({feasible_in('$')}, false)",
        "whole": f"coalesce({whole_in('$')}, false)",
        "space": "a.space",
        "code": "a.code",
        "nothing": "null",
    }
)
"""Columns that are computed, or have another name than their property, in Cypher."""

PARAMETER = "parameter_"
"""Prefix of the properties of a proposal that hold one value each."""

NETWORK = "network_"
"""Prefix of the columns that are properties of networks."""


def select(names: Sequence[str], choice: str = ALL, *, evaluated: bool = False) -> str:
    """Return the statement of rows.

    Args:
        names: Columns of a row: names in `COLUMNS` or `OF_PROPOSALS`, `parameter_` and the name of a
            value, `network_` and a property of the network, or any other property of the evaluation
            (`value`, `metric_accuracy`). Columns of networks leave out proposals whose networks a user has deleted.
        choice: Choice of proposals.
        evaluated: Whether to leave out proposals without a result: ArcadeDB needs half the time
            without OPTIONAL.
    """
    result = ""
    if evaluated:
        result = RESULT.removeprefix("OPTIONAL ")
    elif any(_OF_RESULT.search(_expression(name)) for name in names):
        result = RESULT

    of_network = any(_expression(name).startswith("a.") for name in names)
    network = "MATCH (p)-[:OF]->(a:Architecture)\n" if of_network else ""
    return f"""{choice}{result}
{network}WITH p.number / 1000 AS part, collect({columns_of(names)}) AS rows
RETURN rows
"""


def columns_of(names: Sequence[str]) -> str:
    """Return the expression of a row in Cypher.

    It has columns of a proposal `p`, its evaluation `e` and its network `a`.
    """
    return f"[{', '.join(map(_expression, names))}]"


def read_rows(
    tx: ManagedTransaction,
    names: Sequence[str],
    choice: str = ALL,
    *,
    evaluated: bool = False,
    **parameters: Any,
) -> list[Row]:
    """Return rows within a transaction, each in the order of `names`.

    Args:
        tx: Transaction.
        names: As for `select`, as are `choice` and `evaluated`.
        choice: Choice of proposals.
        evaluated: Whether to leave out proposals without a result.
        parameters: `study` or `ids`, as the choice needs, and `parameters_of` for the columns
            `feasible` and `whole`.
    """
    rows: list[Row] = []
    for part in tx.run(select(names, choice, evaluated=evaluated), parameters):
        rows += map(tuple, part["rows"])

    return rows


def parameters_of(study: Study) -> dict[str, Any]:
    """Return the parameters of the columns `feasible` and `whole`."""
    return {**constraint_lists(study), "objectives": objective_names(study)}


def _expression(name: str) -> str:
    if name in COLUMNS:
        return COLUMNS[name]

    if name in OF_PROPOSALS:
        return f"p.{name}"

    if name.startswith(PARAMETER):
        return f"p.{quoted(name)}"

    if name.startswith(NETWORK):
        return f"a.{quoted(name.removeprefix(NETWORK))}"

    return f"e.{quoted(name)}"


EXTENT = """
MATCH (s:Study {name: $study})
USING INDEX SEEK s:Study(name)
RETURN s.created AS created, s.budget AS budget, s.next_number AS next, s.rewritten AS rewritten,
       s.note AS note, s.tags AS tags
"""

COUNT = (
    "MATCH (p:Proposal {study: $study}) USING INDEX SEEK p:Proposal(study) RETURN count(p) AS count"
)

"""Summaries of studies: proposals by state and best values, in one query for all studies; the
versions of a study's recipe.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from archive.store.protocol_names import DEFAULT_RECIPE, ProtocolName
from archive.store.records import State, Study, sign
from archive.store.registered_agents import agent_names
from archive.store.studies.creation import FEASIBLE, WHOLE

if TYPE_CHECKING:
    from neo4j import ManagedTransaction

    from archive.database.connection import Connection

COUNTS = f"""
MATCH (s:Study)-[:PROPOSED]->(p:Proposal)
OPTIONAL MATCH (p)-[:RESULTED_IN]->(e:Evaluation)
WITH s.name AS name, p.state AS state, p.agent AS agent, p.number AS number,
     CASE WHEN e.value - e.value = 0.0 AND {FEASIBLE} THEN e.value END AS value, coalesce({WHOLE}, false) AS whole
RETURN name, state, whole, agent, min(number) AS first, count(*) AS proposals,
       max(value) AS largest, min(value) AS smallest
"""

ENVIRONMENTS = """
MATCH (:Study {name: $study})-[:PROPOSED]->(:Proposal)-[:RESULTED_IN]->(e:Evaluation)
WHERE e.answered_from IS NULL
RETURN e.environment AS environment
"""


@dataclass(frozen=True)
class RecipeVersion:
    """Results of one version of the recipe.

    Attributes:
        version: Digest of its file, or release of its package.
        evaluations: Number of results.
    """

    version: str
    evaluations: int


@dataclass(frozen=True)
class StudySummary:
    """A study with its progress.

    Attributes:
        study: The study.
        counts: Number of proposals in each state.
        best: Value of the incumbent (`archive.store.snapshots.Snapshot`), in the task's own unit;
            None before the first.
        agents: Names of its agents, in the order of their first proposals.
    """

    study: Study
    counts: Mapping[State, int]
    best: float | None
    agents: tuple[str, ...] = ()


def summaries(tx: ManagedTransaction, studies: Sequence[Study]) -> list[StudySummary]:
    """Return the summaries of studies within a transaction, in their order."""
    rows = defaultdict(list)
    for row in tx.run(COUNTS).data():
        rows[row["name"]].append(row)

    return [_summary(study, rows[study.name]) for study in studies]


def recipe_versions(connection: Connection, study: Study) -> list[RecipeVersion]:
    """Return the versions of a study's recipe, the most frequent first.

    Empty for the default recipe, which is a part of the package, and where no result is of a known
    version.
    """
    if ProtocolName.parse(study.protocol).recipe == DEFAULT_RECIPE:
        return []

    rows = connection.read(lambda tx: tx.run(ENVIRONMENTS, study=study.name).data())
    counts: Counter[str] = Counter()
    for row in rows:
        version = json.loads(row["environment"] or "{}").get("recipe_version")
        if version is not None:
            counts[str(version)] += 1

    return [RecipeVersion(version, count) for version, count in counts.most_common()]


def _summary(study: Study, rows: Sequence[Mapping[str, Any]]) -> StudySummary:
    counts: dict[State, int] = defaultdict(int)
    for row in rows:
        counts[State(row["state"])] += int(row["proposals"])

    by_first = sorted(rows, key=lambda row: row["first"])
    agents = agent_names(study, (row["agent"] for row in by_first))
    return StudySummary(study, dict(counts), best_of(study, rows), agents)


def best_of(study: Study, rows: Sequence[Mapping[str, Any]]) -> float | None:
    """Return the value of the incumbent from groups of proposals, by state and by whether they have
    all objectives.

    Args:
        study: The study.
        rows: The state of each group, whether it is `whole`, and its `largest` and `smallest`
            value, or None.
    """
    better = sign(study.direction)
    column = "largest" if better > 0.0 else "smallest"
    known = [row for row in rows if row[column] is not None]
    best = max(
        known,
        key=lambda row: (row["state"] == State.COMPLETE, row["whole"], better * row[column]),
        default=None,
    )
    return None if best is None else float(best[column])

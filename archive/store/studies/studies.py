"""Studies: creation, lists, histories, warm starts, live views and deletion."""

from __future__ import annotations

import builtins
import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from archive.database.statements import lock, revised
from archive.errors import UnknownNameError
from archive.objectives import sign
from archive.store.properties import read_column, study_from
from archive.store.protocol_names import DEFAULT_RECIPE, ProtocolName
from archive.store.records import Evaluation, State, Study
from archive.store.studies import configurations, creation, deletion
from archive.store.studies.creation import FEASIBLE, WHOLE, agent_names
from archive.store.studies.deletion import Deletion
from archive.store.wake_up import CANCELLED, wake_trainers

if TYPE_CHECKING:
    from neo4j import ManagedTransaction

    from archive.database.connection import Connection
    from archive.store.architectures import Architectures
    from archive.store.evaluations import Evaluations, ResultArrays, StudyHistory
    from archive.store.snapshot_follower import SnapshotFollower
    from archive.store.snapshots import Snapshot

__all__ = ["Studies", "Study", "StudySummary"]

_RECORD = """
MATCH (s)-[:ON]->(t:Task)
MATCH (s)-[:IN]->(space:Space)
RETURN properties(s) AS study, t.name AS task, t.protocol AS protocol, space.name AS space,
       space.config AS space_config
ORDER BY s.created, s.name
"""

READ = f"""
MATCH (s:Study)
{_RECORD}
"""

READ_ONE = f"""
MATCH (s:Study {{name: $name}})
USING INDEX SEEK s:Study(name)
{_RECORD}
"""

COUNTS_OF = """
MATCH (s:Study {name: $name})
USING INDEX SEEK s:Study(name)
OPTIONAL MATCH (s)-[:PROPOSED]->(p:Proposal)
RETURN p.state AS state, count(p) AS proposals
"""

SOURCES = """
MATCH (:Study {name: $name})-[:WARM_STARTED_FROM]->(source:Study)
RETURN source.name AS name ORDER BY name
"""

SET_BUDGET = f"""
MATCH (s:Study {{name: $name}})
SET s.budget = $budget, {revised("s")}
RETURN s.name AS name
"""

WARM_START = """
MATCH (s:Study {name: $name})
UNWIND $sources AS source
MATCH (from:Study {name: source})
MERGE (s)-[:WARM_STARTED_FROM]->(from)
"""


class Studies:
    """Writer and reader of studies."""

    def __init__(self, connection: Connection, architectures: Architectures) -> None:
        """Read and write through this connection; `architectures` caches networks."""
        self._connection = connection
        self._architectures = architectures

    @cached_property
    def _evaluations(self) -> Evaluations:
        # Most commands list or show studies, and read no evaluation.
        from archive.store.evaluations import Evaluations

        return Evaluations(self._connection, self._architectures)

    def create(self, study: Study) -> Study:
        """Store a study unless one of its name exists, and return the stored one.

        An existing study keeps its budget, seed and configuration. Its parameters may grow
        (`archive.parameters.growth`).

        Raises:
            StudyConflictError: It exists with another task, protocol, space, objective or
                direction, or with other constraints or settings of the space.
            UsageError: The name is empty or contains a `#`, or direction, budget or a constraint is
                invalid.
        """
        creation.check(study)
        # An existing study is compared first, so that a conflict changes nothing.
        if not self._connection.read(lambda tx: within(tx, study.name)):
            self._connection.write(partial(creation.create, study=study))

        while True:
            stored = self.get(study.name)
            creation.check_same(study, stored)
            if not creation.has_grown(study, stored):
                return stored

            # Where another process has grown it meanwhile, nothing happens, and it is compared again.
            self._connection.write(partial(_grow, requested=study, stored=stored))

    def get(self, name: str) -> Study:
        """Return a study.

        Raises:
            UnknownNameError: There is no study of this name.
        """
        return read(self._connection, name)

    def find(self, name: str) -> Study | None:
        """Return a study; None if no study has this name."""
        return next(iter(self._connection.read(lambda tx: within(tx, name))), None)

    def names(self) -> builtins.list[str]:
        """Return the names of all studies, oldest first."""
        return [study.name for study in self._connection.read(lambda tx: within(tx, None))]

    def list(self) -> builtins.list[StudySummary]:
        """Return all studies with their counts and best values, oldest first."""
        return self._connection.read(lambda tx: read_summaries(tx, within(tx)))

    def set_budget(self, name: str, budget: int) -> None:
        """Set the maximum number of proposals, failed ones not counted.

        Raises:
            UnknownNameError: There is no study of this name.
            UsageError: The number is negative.
        """
        creation.check_budget(budget)
        row = self._connection.write(
            lambda tx: tx.run(SET_BUDGET, name=name, budget=budget).single()
        )
        if row is None:
            raise UnknownNameError("study", name, self.names(), "the archive has none yet")

    def warm_start(self, study: str, sources: Sequence[str]) -> builtins.list[str]:
        """Add source studies to a study, and return the names of all its source studies.

        Args:
            study: Name of the study that starts warm.
            sources: Names of the source studies.

        Raises:
            UnknownNameError: A source is unknown, or the study itself.
        """
        self.get(study)
        names = [name for name in self.names() if name != study]
        for name in sources:
            if name not in names:
                raise UnknownNameError(
                    f"study other than {study!r}", name, names, "there is no other one"
                )

        def work(tx: ManagedTransaction) -> None:
            lock(tx, "Study", [study])
            tx.run(WARM_START, name=study, sources=sorted(set(sources))).consume()

        if sources:
            self._connection.write(work)

        return self.sources(study)

    def sources(self, name: str) -> builtins.list[str]:
        """Return the names of the source studies of a study."""
        return self._connection.read(lambda tx: read_column(tx.run(SOURCES, name=name), "name"))

    def evaluations(
        self,
        names: str | Sequence[str] | None = None,
        *,
        task: str | None = None,
        space: str | None = None,
        protocol: str | None = None,
        curves: bool = True,
    ) -> builtins.list[Evaluation]:
        """Return evaluations with their architectures.

        They are of some studies, or all including imported ones.

        Args:
            names: Names of studies, or one name; None for every evaluation of the archive.
            task: Name of a task; None for all.
            space: Name of a space; None for all.
            protocol: Name of a training protocol; None for all.
            curves: Whether to read the learning curves, which take most of the memory.
        """
        if names is None:
            return self._evaluations.of_task(task, space, protocol, curves=curves)

        listed = [names] if isinstance(names, str) else list(names)
        evaluations = self._evaluations.of_studies(listed, curves=curves)
        matching = []
        for evaluation in evaluations:
            if (
                task in (None, evaluation.task)
                and protocol in (None, evaluation.protocol)
                and space in (None, evaluation.architecture.space)
            ):
                matching.append(evaluation)

        return matching

    def evaluation(self, id_: str) -> Evaluation:
        """Return an evaluation by its id, `STUDY#NUMBER` or the id of an imported row.

        Raises:
            UnknownNameError: There is none.
        """
        return self._evaluations.get(id_)

    def result_arrays(self, names: str | Sequence[str]) -> ResultArrays:
        """Return the results of studies as arrays of keys and scores, without the networks.

        This is for long histories.
        """
        return self._evaluations.result_arrays([names] if isinstance(names, str) else list(names))

    def history(self, name: str) -> builtins.list[Evaluation]:
        """Return the evaluations that an agent learns from: the study's, then its source studies'.

        They lack seconds, device, and metrics other than further objectives and constrained ones.
        They have the curve of the objective only if one is partial.

        Raises:
            UnknownNameError: There is no study of this name.
        """
        return self.history_of(self.get(name)).evaluations

    def history_of(self, study: Study) -> StudyHistory:
        """Return the evaluations of `history` with the open and the failed proposals of a study.

        All are read in one transaction.
        """
        names = [objective.name for objective in study.further]
        names += [constraint.name for constraint in study.constraints]
        return self._evaluations.to_learn_from(
            study.name, study.objective, list(dict.fromkeys(names))
        )

    def counts(self, name: str) -> Mapping[State, int]:
        """Return the number of proposals of a study in each state.

        Raises:
            UnknownNameError: There is no study of this name.
        """
        rows = self._connection.read(lambda tx: tx.run(COUNTS_OF, name=name).data())
        if not rows:
            self.get(name)

        counts = {row["state"]: int(row["proposals"]) for row in rows}
        return {state: counts.get(state.value, 0) for state in State}

    def snapshot(self, name: str) -> Snapshot:
        """Return the current snapshot of a study for a live view, in two round trips.

        Raises:
            UnknownNameError: There is no study of this name.
        """
        from archive.store.snapshots import read_snapshot

        return read_snapshot(self._connection, self.get(name))

    def follow(self, name: str) -> SnapshotFollower:
        """Return a function that reads snapshots incrementally.

        Its first call reads the whole study.

        Raises:
            UnknownNameError: From the function: there is no study of this name.
        """
        from archive.store.snapshot_follower import SnapshotFollower

        return SnapshotFollower(self._connection, name, partial(self.get, name))

    def deletion(self, name: str) -> Deletion:
        """Return the deletion that `delete` would make.

        Raises:
            UnknownNameError: There is no study of this name.
        """
        return deletion.plan(self._connection, self.get(name).name)

    def delete(self, name: str) -> Deletion:
        """Delete a study with its proposals and results, and return the deletion.

        Networks and distances stay.

        Raises:
            UnknownNameError: There is no study of this name.
        """
        deleted = deletion.delete(self._connection, self.get(name).name)
        wake_trainers(self._connection.settings, CANCELLED)
        return deleted


def _grow(tx: ManagedTransaction, requested: Study, stored: Study) -> None:
    """Give a stored study the space of a requested one, and its proposals the new defaults."""
    lock(tx, "Study", [stored.name])
    if creation.grow(tx, requested, stored):
        configurations.supply(tx, stored.name, requested.space_config)


def read(connection: Connection, name: str) -> Study:
    """Return a study.

    Raises:
        UnknownNameError: There is no study of this name.
    """
    studies = connection.read(lambda tx: within(tx, name))
    if not studies:
        names = [study.name for study in connection.read(lambda tx: within(tx, None))]
        raise UnknownNameError("study", name, names, "the archive has none yet")

    return studies[0]


def within(tx: ManagedTransaction, name: str | None = None) -> list[Study]:
    """Return all studies within a transaction, oldest first, or the one of a name."""
    rows = tx.run(READ) if name is None else tx.run(READ_ONE, name=name)
    return [study_from(row.data()) for row in rows]


COUNTS_OF_ALL = f"""
MATCH (s:Study)-[:PROPOSED]->(p:Proposal)
OPTIONAL MATCH (p)-[:RESULTED_IN]->(e:Evaluation)
WITH s.name AS name, p.state AS state, p.agent AS agent, p.number AS number,
     CASE WHEN e.value - e.value = 0.0 AND {FEASIBLE} THEN e.value END AS value, coalesce({WHOLE}, false) AS whole
RETURN name, state, whole, agent, min(number) AS first, count(*) AS proposals,
       max(value) AS largest, min(value) AS smallest
"""


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


def read_summaries(tx: ManagedTransaction, studies: Sequence[Study]) -> list[StudySummary]:
    """Return the summaries of studies within a transaction, in their order."""
    rows = defaultdict(list)
    for row in tx.run(COUNTS_OF_ALL).data():
        rows[row["name"]].append(row)

    return [_summary(study, rows[study.name]) for study in studies]


def _summary(study: Study, rows: Sequence[Mapping[str, Any]]) -> StudySummary:
    counts: dict[State, int] = defaultdict(int)
    for row in rows:
        counts[State(row["state"])] += int(row["proposals"])

    by_first = sorted(rows, key=lambda row: row["first"])
    agents = agent_names(study, read_column(by_first, "agent"))
    return StudySummary(study, dict(counts), best_of(study, rows), agents)


def best_of(study: Study, rows: Sequence[Mapping[str, Any]]) -> float | None:
    """Return the value of the incumbent from groups of proposals.

    Groups are by state and by whether their proposals have all objectives.

    Args:
        study: The study.
        rows: The state of each group, whether it is `whole`, and its `largest` and `smallest`
            value, or None.
    """
    better = sign(study.direction)
    column = "largest" if better > 0.0 else "smallest"
    complete = [row for row in rows if row[column] is not None]
    best = max(
        complete,
        key=lambda row: (row["state"] == State.COMPLETE, row["whole"], better * row[column]),
        default=None,
    )
    return None if best is None else float(best[column])


UNBOUNDED = 1_000_000
"""Least budget that stands for no limit."""


def describe_budget(budget: int) -> str:
    """Return a budget in words: `100`, or `no limit`."""
    return "no limit" if budget >= UNBOUNDED else str(budget)


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

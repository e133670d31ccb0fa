"""Leaderboard of a task: configurations by their mean over repeats, and which differ by more than noise.

Recorded, imported and searched results of one task and protocol stand side by side. A configuration is
a network, or the values of a run, with its hyperparameters; its results are repeats. Paused trainings,
results that repeat another one without a training, and predictions are left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

from archive.database.user_query import run_query
from archive.errors import UnknownNameError, UsageError
from archive.objectives import Direction, Objective, sign
from archive.queries.repeats import Verdict, difference_of_means, interval_of_mean
from archive.queries.results_by_task import PREDICTION, TASKS, name_of_value
from archive.queries.tried.filters import values_of
from archive.store.properties import METRIC

if TYPE_CHECKING:
    from archive.database.connection import Connection

# One row a protocol: both servers spend more time on a row than on its content.
RESULTS = f"""
MATCH (t:Task {{name: $task}})
MATCH (t)<-[:ON]-(e:Evaluation)-[:OF]->(a:Architecture)
WHERE e.partial IS NULL AND e.answered_from IS NULL AND coalesce(e.source, '') <> '{PREDICTION}'
OPTIONAL MATCH (e)<-[:RESULTED_IN]-(p:Proposal)
RETURN t.protocol AS protocol, t.direction AS direction,
       collect([a.key, p.hyperparameters, e.id, p.study, e.value, e[$property]]) AS rows
ORDER BY protocol
"""

OBJECTIVES = """
MATCH (s:Study)-[:ON]->(t:Task {name: $task})
RETURN t.protocol AS protocol, s.name AS study, s.objective AS objective, s.direction AS direction
ORDER BY study
"""

DETAILS = """
UNWIND $ids AS id
MATCH (e:Evaluation {id: id})
USING INDEX SEEK e:Evaluation(id)
OPTIONAL MATCH (e)<-[:RESULTED_IN]-(p:Proposal)
RETURN id, p.study AS study, p.program AS program, p.motivation AS motivation,
       p.derived_from AS parent, p.code_commit AS commit, p.configuration AS configuration,
       p.hyperparameters AS hyperparameters, e.model AS model
"""


@dataclass(frozen=True)
class LeaderboardRow:
    """A configuration with its repeats.

    Attributes:
        rank: From 1, by the mean.
        group: From 1: rows of one group are not known to differ from its first one by more than
            noise.
        architecture: Key of its network or of its values.
        mean: Mean of the metric over its repeats.
        low: Lower end of the interval of 95 % of the mean; null with one repeat.
        high: Upper end.
        repeats: The value of each repeat, the best first.
        beats: Ranks of the rows here that it is better than by more than noise.
        run: Id of its best result, which is the id of a proposal where a study has it.
        study: Study of that result; null for a result without a study.
        program: Name of the program; null without a recorded one.
        parent: Id of the run that it is a change of; null without one.
        motivation: Reason for it in words; null without one.
        commit: Commit that was checked out; null where it is unknown.
        model: Name of a published model; null for any other network.
        values: Values by name.
    """

    rank: int
    group: int
    architecture: str
    mean: float
    low: float | None
    high: float | None
    repeats: list[float]
    beats: list[int]
    run: str
    study: str | None
    program: str | None
    parent: str | None
    motivation: str | None
    commit: str | None
    model: str | None
    values: dict[str, Any]


@dataclass(frozen=True)
class LeaderboardPair:
    """Two rows of a leaderboard.

    Attributes:
        better: Rank of the row with the better mean.
        worse: Rank of the other one.
        gain: Difference of the means, not negative.
        low: Lower end of its interval of 95 % (Welch); null with fewer than two repeats of either.
        high: Upper end.
        verdict: `better` where that is more than noise, `noise` where it is not, `unknown` without
            an interval.
    """

    better: int
    worse: int
    gain: float
    low: float | None
    high: float | None
    verdict: Verdict


@dataclass(frozen=True)
class Leaderboard:
    """Configurations of a task and protocol, the best first.

    Attributes:
        task: Name of the task.
        protocol: Name of the protocol.
        objective: The metric.
        direction: Whether larger or smaller values are better.
        configurations: Number of all configurations with a value.
        results: Number of their results.
        rows: The best of them.
        pairs: Every two of these rows.
    """

    task: str
    protocol: str
    objective: str
    direction: Direction
    configurations: int
    results: int
    rows: list[LeaderboardRow]
    pairs: list[LeaderboardPair]


@dataclass(frozen=True)
class _Contestant:
    """A configuration: its key, its results as value and id, the best first, and their mean."""

    architecture: str
    results: list[tuple[float, str]]
    mean: float

    @property
    def values(self) -> list[float]:
        return [value for value, _ in self.results]


def leaderboard(
    connection: Connection,
    task: str | None = None,
    *,
    protocol: str | None = None,
    metric: Objective | None = None,
    most: int = 20,
) -> Leaderboard:
    """Rank the configurations of a task.

    Args:
        connection: Connection to the archive.
        task: Name of the task; None for the only one.
        protocol: Name of the protocol; None for the only one with results.
        metric: A metric in place of the objective of the studies.
        most: Largest number of rows.

    Raises:
        UnknownNameError: The archive has no results of this task or protocol.
        UsageError: There are several tasks, protocols or objectives, and none is chosen; or no result
            has the metric.
    """
    task = task or _only_task(connection)
    property_name = "value" if metric is None else METRIC + metric.name
    asked = {"task": task, "property": property_name}
    by_protocol = {}
    for name, direction, rows in connection.read(lambda tx: tx.run(RESULTS, asked).values()):
        if rows:
            by_protocol[name] = (direction, rows)

    protocol = _choose_protocol(connection, task, by_protocol, protocol)
    direction, rows = by_protocol[protocol]
    objectives = {}
    for name, study, objective, its_direction in run_query(connection, OBJECTIVES, asked).rows:
        if name == protocol:
            objectives[study] = Objective(objective, its_direction)

    judge = metric or _choose_objective(connection, task, objectives, direction)
    contestants = _contestants(rows, objectives, judge, metric is not None)
    if not contestants:
        raise UsageError(f"no result of {task} has a finite value of {judge.name}")

    shown = contestants[:most]
    pairs = _pairs(shown, judge)
    return Leaderboard(
        task=task,
        protocol=protocol,
        objective=judge.name,
        direction=judge.direction,
        configurations=len(contestants),
        results=sum(len(contestant.results) for contestant in contestants),
        rows=_rows(connection, shown, pairs),
        pairs=pairs,
    )


def _only_task(connection: Connection) -> str:
    names = [name for (name,) in run_query(connection, TASKS).rows]
    if len(names) == 1:
        return str(names[0])

    if not names:
        raise UsageError(
            "the archive has no results yet: archive record and archive import add some"
        )

    shown = ", ".join(names[:10]) + (" …" if len(names) > 10 else "")
    raise UsageError(f"a leaderboard is of one task: --task NAME chooses one of {shown}")


def _choose_protocol(
    connection: Connection, task: str, by_protocol: dict[str, Any], protocol: str | None
) -> str:
    if not by_protocol:
        names = [name for (name,) in run_query(connection, TASKS).rows]
        raise UnknownNameError("task", task, names, "the archive has results of none yet")

    if protocol is not None:
        if protocol not in by_protocol:
            raise UnknownNameError("protocol", protocol, by_protocol, owner=f"the task {task}")

        return protocol

    if len(by_protocol) > 1:
        shown = ", ".join(f"{name} ({len(rows)})" for name, (_, rows) in by_protocol.items())
        raise UsageError(
            f"results of {task} under several protocols are not comparable: "
            f"--protocol NAME chooses one of {shown}"
        )

    return next(iter(by_protocol))


def _choose_objective(
    connection: Connection,
    task: str,
    objectives: dict[str, Objective],
    direction: Direction | None,
) -> Objective:
    distinct = sorted(set(objectives.values()), key=str)
    if len(distinct) > 1:
        shown = ", ".join(f"--{objective.direction} {objective.name}" for objective in distinct)
        raise UsageError(f"studies of {task} are judged by several metrics: choose one of {shown}")

    if distinct:
        return distinct[0]

    return Objective(name_of_value(connection, task), direction or "maximise")


def _contestants(
    rows: Sequence[Sequence[Any]], objectives: dict[str, Objective], judge: Objective, named: bool
) -> list[_Contestant]:
    """Return the configurations with a finite value, the best mean first."""
    results: dict[tuple[str, str], list[tuple[float, str]]] = {}
    for architecture, hyperparameters, evaluation, study, value, measured in rows:
        judged_by = objectives.get(study)
        number = measured
        if number is None and named and judged_by is not None and judged_by.name == judge.name:
            number = value

        if isinstance(number, int | float) and math.isfinite(number):
            key = (architecture, hyperparameters or "{}")
            results.setdefault(key, []).append((float(number), evaluation))

    factor = sign(judge.direction)
    contestants = []
    for (architecture, _), entries in results.items():
        entries.sort(key=lambda entry: (-factor * entry[0], entry[1]))
        mean = fmean(value for value, _ in entries)
        contestants.append(_Contestant(architecture, entries, mean))

    contestants.sort(key=lambda contestant: (-factor * contestant.mean, contestant.results[0][1]))
    return contestants


def _pairs(shown: Sequence[_Contestant], judge: Objective) -> list[LeaderboardPair]:
    pairs = []
    for better, first in enumerate(shown, 1):
        for worse, second in enumerate(shown[better:], better + 1):
            difference = difference_of_means(second.values, first.values, sign(judge.direction))
            # Rounding of the means may have decided their order.
            gain = max(difference.gain or 0.0, 0.0)
            pair = LeaderboardPair(
                better, worse, gain, difference.low, difference.high, difference.verdict
            )
            pairs.append(pair)

    return pairs


def _rows(
    connection: Connection, shown: Sequence[_Contestant], pairs: Sequence[LeaderboardPair]
) -> list[LeaderboardRow]:
    beaten: dict[int, list[int]] = {}
    for pair in pairs:
        if pair.verdict == "better":
            beaten.setdefault(pair.better, []).append(pair.worse)

    ids = [contestant.results[0][1] for contestant in shown]
    details = {}
    for row in connection.read(lambda tx: tx.run(DETAILS, ids=ids).data()):
        details[row["id"]] = row

    rows = []
    group = 1
    leader = 1
    for rank, contestant in enumerate(shown, 1):
        if rank in beaten.get(leader, ()):
            group += 1
            leader = rank

        run = contestant.results[0][1]
        detail = details[run]
        low, high = interval_of_mean(contestant.values)
        rows.append(
            LeaderboardRow(
                rank=rank,
                group=group,
                architecture=contestant.architecture,
                mean=contestant.mean,
                low=low,
                high=high,
                repeats=contestant.values,
                beats=beaten.get(rank, []),
                run=run,
                study=detail["study"],
                program=detail["program"],
                parent=detail["parent"],
                motivation=detail["motivation"],
                commit=detail["commit"],
                model=detail["model"],
                values=values_of(detail["configuration"], detail["hyperparameters"]),
            )
        )

    return rows

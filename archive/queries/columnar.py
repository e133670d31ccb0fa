"""Saved queries over all results of a task, computed from columns of results.

This is fast for long histories.

The Cypher text of a saved query is its definition and runs on any server. Over a hundred thousand
results ArcadeDB takes a minute for some texts and runs out of memory for others; here, the same
rows are computed from columns (`archive.store.result_columns`). The tests compare both. A function
returns None if columns do not contain the answer, as for imported results, which belong to no
study; the text is run then.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, compress
from operator import and_, not_
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from archive.database.user_query import QueryResult
from archive.objectives.pareto import find_front
from archive.queries import contributions
from archive.queries.lineage import lineage
from archive.store import result_columns
from archive.store.properties import METRIC, metric_properties, read_column
from archive.store.result_columns import StudyResults
from archive.store.studies import studies
from archive.store.studies.rows import NETWORK
from archive.values import is_duration

if TYPE_CHECKING:
    from neo4j import ManagedTransaction

    from archive.constraints import Constraint
    from archive.database.connection import Connection

Parameters = Mapping[str, Any]
Answer = Callable[["Connection", Parameters, float], QueryResult | None]
Rows = Iterator[tuple[Any, ...]]

_VALUED = ("value", "partial", "architecture")
"""Columns of every query over values."""

STUDIES = """
MATCH (s:Study)-[:ON]->(t:Task)
RETURN s.name AS study, t.id AS id, t.name AS task, t.protocol AS protocol ORDER BY task, protocol, study
"""

# Without other clauses, both servers know this number without reading the evaluations.
MEASURED = "MATCH (t:Task {id: $id})<-[:ON]-(e:Evaluation) RETURN count(e) AS measured"

TASKS = (
    "MATCH (t:Task) RETURN t.id AS id, t.name AS task, "
    "t.protocol AS protocol ORDER BY task, protocol"
)

SECONDS = """
UNWIND $ids AS id
MATCH (e:Evaluation {id: id}) RETURN id, e.seconds AS seconds
"""


def best_per_operation(
    connection: Connection, params: Parameters, deadline: float = math.inf
) -> QueryResult | None:
    """Answer `best-per-operation`."""
    columns = [
        "task",
        "protocol",
        "objective",
        "operation",
        "networks",
        "evaluations",
        "best",
        "mean",
        "architecture",
    ]
    groups = _of_tasks(connection, params, [*_VALUED, "operations"], deadline)
    if groups is None:
        return None

    rows = [*chain.from_iterable(_best(group, params) for group in groups)]
    return QueryResult(columns, rows)


def _best(group: Sequence[StudyResults], params: Parameters) -> Rows:
    columns, values, places = _usable(group)
    better = _sign(group, params)
    networks, keys = _codes(columns["architecture"])
    sets, texts = _codes(columns["operations"])
    holding = [set(result_columns.parts(text)) for text in texts]
    rows = []
    for operation in sorted(set().union(*holding)):
        positions = np.flatnonzero(np.array([operation in names for names in holding])[sets])
        best = positions[better * values[positions] == (better * values[positions]).max()]
        first = min(keys[networks[index]] for index in best)
        mean = float(values[positions].mean())
        rows.append(
            (
                operation,
                _different(networks[positions]),
                len(positions),
                float(values[best[0]]),
                mean,
                first,
            )
        )

    rows.sort(key=lambda row: (-better * row[3], row[0]))
    yield from ((*places, *row) for row in rows)


def motif(
    connection: Connection, params: Parameters, deadline: float = math.inf
) -> QueryResult | None:
    """Answer `motif`."""
    columns = ["task", "protocol", "objective", "space", "motif", "networks", "evaluations"]
    columns += ["mean", "std", "lowest", "highest"]
    groups = _of_tasks(connection, params, [*_VALUED, "space", "motifs"], deadline)
    if groups is None:
        return None

    rows = [*chain.from_iterable(_motif(group, params) for group in groups)]
    return QueryResult(columns, rows)


def _motif(group: Sequence[StudyResults], params: Parameters) -> Rows:
    columns, values, places = _usable(group)
    convolutions = set(params["operations"])
    past = {"", *params["skips"]}
    ways, texts = _codes(columns["motifs"])
    has = np.array([_has(text, convolutions, past) for text in texts], bool)[ways]
    networks, _ = _codes(columns["architecture"])
    spaces, names = _codes(columns["space"])
    for space in sorted(names):
        for motif in (True, False):
            selected = (spaces == names.index(space)) & (has == motif)
            chosen_values = values[selected]
            if len(chosen_values):
                std = float(chosen_values.std(ddof=1)) if len(chosen_values) > 1 else 0.0
                count = _different(networks[selected])
                numbers = (
                    float(chosen_values.mean()),
                    std,
                    float(chosen_values.min()),
                    float(chosen_values.max()),
                )
                yield (*places, space, motif, count, len(chosen_values), *numbers)


def _has(text: str, convolutions: set[str], past: set[str]) -> bool:
    named = (part.split(">") for part in result_columns.parts(text))
    return any(
        first in convolutions and second in convolutions and skip in past
        for first, second, skip in named
    )


def cost(
    connection: Connection, params: Parameters, deadline: float = math.inf
) -> QueryResult | None:
    """Answer `cost`."""
    columns = "task protocol study evaluations seconds hours mean_seconds epochs unmeasured".split()
    groups = _of_tasks(connection, params, ["seconds", "epochs", "answered_from"], deadline)
    if groups is None:
        return None

    rows = []
    for study in chain.from_iterable(groups):
        trained = _are_trained(study)
        seconds = [*filter(is_duration, compress(study.columns["seconds"], trained))]
        epochs = sum(value or 0 for value in compress(study.columns["epochs"], trained))
        spent = math.fsum(seconds) if seconds else 0
        mean = spent / len(seconds) if seconds else None
        if count := sum(trained):
            times = (spent, spent / 3600, mean, epochs, count - len(seconds))
            rows.append((study.task, study.protocol, study.study, count, *times))

    return QueryResult(columns, sorted(rows, key=lambda row: row[:3]))


def frontier(
    connection: Connection, params: Parameters, deadline: float = math.inf
) -> QueryResult | None:
    """Answer `frontier`."""
    names = [NETWORK + params["cost"], METRIC + params["cost"]]
    names += [params["cost"]] if params["cost"] in ("value", "seconds", "epochs") else []
    trained = params["cost"] == "seconds"
    limits = {}
    for study in connection.read(studies.within):
        if study.task == params["task"]:
            limits[study.name] = study.constraints

    constraints = chain.from_iterable(limits.values())
    limited = metric_properties(constraints)
    groups = _of_tasks(connection, params, [*_VALUED, "answered_from", *names, *limited], deadline)
    costs: set[type] = set()
    for results in chain.from_iterable(groups or ()):
        for name in names:
            costs.update(map(type, results.columns[name]))

    costs.discard(type(None))
    # The text handles other properties of nodes, and values that are no numbers.
    if groups is None or not costs or costs - {int, float}:
        return None

    rows: list[tuple[Any, ...]] = []
    for group in groups:
        met = []
        for results in group:
            met.append(_met(results, limits.get(results.study, ()), trained))

        rows += _frontier(met, params, names)

    return QueryResult(["protocol", "objective", "architecture", "value", "cost"], rows)


def _met(study: StudyResults, constraints: Sequence[Constraint], trained: bool) -> StudyResults:
    """Return the results that meet constraints; if `trained`, without those that reuse another."""
    selected = result_columns.feasible(constraints, study.columns)
    if trained:
        selected = list(map(and_, selected, _are_trained(study)))

    return replace(study, columns=result_columns.compressed(study.columns, selected))


def _are_trained(study: StudyResults) -> list[bool]:
    """Return whether each result comes from a training of its own proposal."""
    return [source is None for source in study.columns["answered_from"]]


def _frontier(group: Sequence[StudyResults], params: Parameters, names: Sequence[str]) -> Rows:
    columns, values, (_, *places) = _usable(group)
    sources = [columns.get(name, [None] * len(values)) for name in names]
    amounts = []
    for row in zip(*sources, strict=True):
        amounts.append(next((value for value in row if value is not None), None))

    usable = np.flatnonzero([value is not None and not math.isnan(value) for value in amounts])
    costs = np.array([amounts[index] for index in usable], np.float64)
    scores = values[usable] * _sign(group, params)
    for point in find_front(costs, scores):
        same = usable[(costs == costs[point]) & (scores == scores[point])]
        first = min(columns["architecture"][row] for row in same)
        yield *places, first, float(values[usable[point]]), amounts[usable[point]]


def duplicates(
    connection: Connection, params: Parameters, deadline: float = math.inf
) -> QueryResult | None:
    """Answer `duplicates`."""
    columns = [
        "task",
        "protocol",
        "proposals",
        "networks",
        "in_several_studies",
        "answered",
        "seconds_saved",
    ]
    rows = []
    for (task, protocol), names in _tasks(connection, params).items():
        results = result_columns.read(
            connection, names, ["functional_key", "answered_from"], deadline
        )
        if any(study.columns["number"] or study.others for study in results):
            rows.append((task, protocol, *_repeats(connection, results)))

    return QueryResult([*columns, "trained_again"], rows)


def _repeats(connection: Connection, results: Sequence[StudyResults]) -> tuple[Any, ...]:
    proposals: Counter[str] = Counter()
    trainings: Counter[str] = Counter()
    studies: Counter[str] = Counter()
    answers: list[str] = []
    for study in results:
        trained = _are_trained(study)
        keys = study.columns["functional_key"]
        every = [*keys, *read_column(study.others, "functional_key")]
        proposals.update(every)
        studies.update(set(every))
        trainings.update(compress(keys, trained))
        answers += compress(study.columns["answered_from"], map(not_, trained))

    durations = connection.read(
        lambda tx: dict(tx.run(SECONDS, ids=sorted(set(answers))).values("id", "seconds"))
    )
    saved = []
    for source in answers:
        if durations.get(source) is not None:
            saved.append(durations[source])

    several = sum(count > 1 for count in studies.values())
    answered = sum(map(durations.__contains__, answers))
    again = trainings.total() - len(trainings)
    return (
        proposals.total(),
        len(proposals),
        several,
        answered,
        math.fsum(saved) if saved else 0,
        again,
    )


_BASED = ("number", "agent", "value", "based_on")


def proposals_of(
    connection: Connection, params: Parameters, deadline: float = math.inf
) -> QueryResult | None:
    """Return the rows of the query `contributions` for the proposals that its answer depends on."""
    requested = params["study"]
    named = requested is not None
    every = (
        [requested] if named else connection.read(lambda tx: read_column(tx.run(STUDIES), "study"))
    )
    results = result_columns.read(connection, every, _BASED, deadline)
    texts = set()
    for study in results:
        texts.update(study.columns["based_on"])
        texts.update(read_column(study.others, "based_on"))

    others = set(chain.from_iterable(map(contributions.studies_of, texts))) - set(every)
    results += result_columns.read(connection, sorted(others), _BASED, deadline)
    results.sort(key=lambda study: study.study)
    rows: list[tuple[Any, ...]] = []
    for study in results:
        rows += _proposals(study, requested in (None, study.study))

    return QueryResult(["study", "direction", "number", "agent", "value", "based_on"], rows)


def _proposals(study: StudyResults, requested: bool) -> list[tuple[Any, ...]]:
    rows = list(zip(*(study.columns[name] for name in _BASED), strict=True))
    if study.others:
        rows += [(row["number"], row["agent"], None, row["based_on"]) for row in study.others]
        rows.sort(key=lambda row: int(row[0]))

    proposals: list[tuple[Any, ...]] = []
    for number, agent, value, basis in rows:
        shown = basis if requested else None
        proposals.append((study.study, study.direction, number, agent, value, shown))

    return proposals


ANSWERS: Mapping[str, Answer] = MappingProxyType(
    {
        "best-per-operation": best_per_operation,
        "contributions": proposals_of,
        "cost": cost,
        "duplicates": duplicates,
        "frontier": frontier,
        "lineage": lineage,
        "motif": motif,
    }
)
"""Saved query to the function that computes its answer from all its params."""


def _tasks(connection: Connection, params: Parameters) -> dict[tuple[str, str], list[str]]:
    """Return the names of the studies of each requested task, by its name and protocol."""
    studies_of: dict[tuple[str, str], list[str]] = {}
    for row in connection.read(lambda tx: tx.run(STUDIES).data()):
        if params["task"] in (None, row["task"]) and params.get("protocol") in (
            None,
            row["protocol"],
        ):
            studies_of.setdefault((row["task"], row["protocol"]), []).append(row["study"])

    return studies_of


def _of_tasks(
    connection: Connection, params: Parameters, columns: Sequence[str], deadline: float
) -> list[list[StudyResults]] | None:
    """Return columns of the studies of each task and objective.

    None if a task has results without a study.
    """
    groups = _tasks(connection, params)
    per_task = []
    for row in connection.read(lambda tx: tx.run(TASKS).data()):
        if params["task"] in (None, row["task"]) and params.get("protocol") in (
            None,
            row["protocol"],
        ):
            measured = connection.read(partial(_count_measured, id_=row["id"]))
            group = result_columns.read(
                connection, groups.get((row["task"], row["protocol"]), []), columns, deadline
            )
            if measured > sum(len(study.columns["number"]) for study in group):
                return None

            per_task += result_columns.by_objective(group, params.get("objective"))

    return per_task


def _count_measured(tx: ManagedTransaction, id_: str) -> int:
    return int(tx.run(MEASURED, id=id_).single(strict=True)["measured"])


def _sign(group: Sequence[StudyResults], params: Parameters) -> float:
    """Return the sign that makes larger values better.

    It is as requested, or as in all studies of the group.
    """
    minimise = params["minimise"]
    if minimise is None:
        minimise = {study.direction for study in group} == {"minimise"}

    return -1.0 if minimise else 1.0


def _usable(
    group: Sequence[StudyResults],
) -> tuple[result_columns.Columns, NDArray[np.float64], tuple[str, ...]]:
    """Return the columns of whole results with a number as value.

    Beside them: the values, task, protocol and objective.
    """
    columns = result_columns.joined([study.columns for study in group])
    values = np.array(columns["value"], np.float64)
    usable = ~np.isnan(values) & np.array([partial is None for partial in columns["partial"]], bool)
    if not usable.all():
        columns = result_columns.compressed(columns, usable)

    return columns, values[usable], (group[0].task, group[0].protocol, group[0].objective)


def _different(codes: NDArray[np.int64]) -> int:
    """Return the number of different codes, which are small.

    Counting is faster than `numpy.unique`.
    """
    return int(np.count_nonzero(np.bincount(codes)))


def _codes(column: Iterable[str]) -> tuple[NDArray[np.int64], list[str]]:
    """Return the index of each text among the different ones, (n,), and the different ones."""
    places: dict[str, int] = {}
    return np.array([places.setdefault(text, len(places)) for text in column], np.int64), list(
        places
    )

"""Runs on record: by the words in them, by what they were given, and by the network they trained.

A run is a proposal with a program (`archive.runs`). Ideas of persons and language models, which are
proposals with a motivation, are found by their words as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from archive.objectives import sign
from archive.queries.repeats import difference_of_means, repeats_by_configuration
from archive.queries.tried.changes import NOT_GIVEN, ValueChange, network_changes, value_changes
from archive.queries.tried.filters import (
    LISTED,
    RunFilter,
    ids_of_network,
    matching_groups,
    objectives_of,
    values_of,
)
from archive.store.architectures import Architectures
from archive.store.properties import Row
from archive.store.records import Direction, State, StateName
from archive.store.studies.builds import Builds
from archive.values import timestamp

if TYPE_CHECKING:
    from archive.database.connection import Connection

_COLUMNS = """
OPTIONAL MATCH (p)-[:RESULTED_IN]->(e:Evaluation)
RETURN p.id AS id, p.study AS study, p.state AS state, p.created AS created, p.program AS program,
       p.motivation AS motivation, p.changed AS changed, p.reason AS reason, p.derived_from AS parent,
       p.configuration AS configuration, p.hyperparameters AS hyperparameters, e.value AS value,
       e.seed AS seed, e.seconds AS seconds, p.architecture AS architecture
"""

BY_ID = LISTED + _COLUMNS

ENDED_BEFORE = """
MATCH (p:Proposal)
WHERE p.study = $study AND p.finished <= $moment
MATCH (p)-[:RESULTED_IN]->(e:Evaluation)
RETURN p.id AS id, p.finished AS finished, e.value AS value
"""


@dataclass(frozen=True)
class TriedRun:
    """A run on record.

    Attributes:
        run: Id of its proposal.
        study: Name of its study.
        state: State of the proposal.
        started: When it began (ISO 8601, UTC).
        program: Name of the program; null for an idea without a recorded program.
        motivation: Reason for it in words; null without one.
        changed: Source files that it changes, as `train.py +3 -1`.
        values: Values by name.
        objective: Name of the metric that the study judges by.
        direction: Whether larger or smaller values are better.
        value: That metric; null without a result.
        parent: Id of the run that it is a change of; null without one.
        parent_value: The metric of that run; null without a result.
        gain: What its configuration brought over its parent's, larger is better: the difference of
            the means over their repeats; null where either has no result, and for a repeat of its
            parent.
        gain_low: Lower end of the interval of 95 % (Welch); null with fewer than two repeats of
            either.
        gain_high: Upper end.
        repeats: Number of results of its configuration.
        parent_repeats: Number of results of its parent's configuration.
        changes: Values that differ from its parent's.
        network: Key of the network that it trained; null where it is unknown.
        network_changes: What differs from its parent's network, in words.
        seed: Seed; null where it is unknown.
        seconds: Time of the run; null where it is unknown.
        reason: Why it failed; null where it did not.
    """

    run: str
    study: str
    state: StateName
    started: str | None
    program: str | None
    motivation: str | None
    changed: list[str]
    values: dict[str, Any]
    objective: str
    direction: Direction
    value: float | None
    parent: str | None
    parent_value: float | None
    gain: float | None
    gain_low: float | None
    gain_high: float | None
    repeats: int
    parent_repeats: int
    changes: list[ValueChange]
    network: str | None
    network_changes: list[str]
    seed: int | None
    seconds: float | None
    reason: str | None


@dataclass(frozen=True)
class RunFacets:
    """Numbers of runs by what they have.

    Attributes:
        studies: By study.
        programs: By program; ideas without a program are left out.
        states: By state.
    """

    studies: dict[str, int]
    programs: dict[str, int]
    states: dict[str, int]


@dataclass(frozen=True)
class FoundRuns:
    """Runs that are asked for.

    Attributes:
        total: Number of all of them.
        facets: Their numbers by study, program and state.
        runs: The newest of them.
    """

    total: int
    facets: RunFacets
    runs: list[TriedRun]


def search_runs(connection: Connection, sought: RunFilter, most: int = 20) -> FoundRuns:
    """Return the newest runs of a kind, and the numbers of all of them.

    Args:
        connection: Connection to the archive.
        sought: Which runs.
        most: Largest number of runs.

    Raises:
        UnknownNameError: No such run has a value that the condition names.
        ExpressionError: The condition has no value for any run, as in `'relu' < 3`.
    """
    studies: Counter[str] = Counter()
    programs: Counter[str] = Counter()
    states: Counter[str] = Counter()
    matches: list[tuple[int, str]] = []
    for group in matching_groups(connection, sought):
        size = len(group.runs)
        matches += group.runs
        studies[group.study] += size
        states[group.state.label] += size
        if group.program is not None:
            programs[group.program] += size

    matches.sort(reverse=True)
    ids = [id_ for _, id_ in matches[:most]]
    facets = RunFacets(
        studies=dict(studies.most_common()),
        programs=dict(programs.most_common()),
        states=dict(states.most_common()),
    )
    return FoundRuns(len(matches), facets, runs_by_id(connection, ids))


def find_runs(
    connection: Connection,
    words: Sequence[str],
    *,
    study: str | None = None,
    since: int = 0,
    most: int = 20,
) -> tuple[list[TriedRun], int]:
    """Return the newest runs that hold all of some words, and the number of all such runs.

    Args:
        connection: Connection to the archive.
        words: The words (`RunFilter.words`); none finds all runs.
        study: Name of a study; None for all.
        since: Earliest start, in milliseconds since 1970.
        most: Largest number of runs.
    """
    result = search_runs(connection, RunFilter(words, study=study, since=since), most)
    return result.runs, result.total


def runs_by_id(connection: Connection, ids: Sequence[str]) -> list[TriedRun]:
    """Return runs by the ids of their proposals, newest first."""
    rows = connection.read(lambda tx: tx.run(BY_ID, ids=list(ids)).data())
    rows.sort(key=lambda row: (row["created"], row["id"]), reverse=True)
    parent_ids = sorted({row["parent"] for row in rows if row["parent"]})
    parents = {}
    if parent_ids:
        for row in connection.read(lambda tx: tx.run(BY_ID, ids=parent_ids).data()):
            parents[row["id"]] = row

    studies = objectives_of(connection, rows)
    everything = [*rows, *parents.values()]
    configurations = {(row["study"], row["architecture"]) for row in everything}
    repeats = repeats_by_configuration(connection, configurations)
    networks = networks_of(connection, {row["architecture"] for row in everything})
    pairs = []
    for row in rows:
        parent = parents.get(row["parent"])
        if parent is not None:
            ends = (networks.get(parent["architecture"]), networks.get(row["architecture"]))
            if ends[0] is not None and ends[1] is not None:
                pairs.append((ends[0], ends[1]))

    words = network_changes(connection, pairs)
    runs = []
    for row in rows:
        parent = parents.get(row["parent"])
        network = networks.get(row["architecture"])
        before = None if parent is None else networks.get(parent["architecture"])
        changed = words.get((before or "", network or ""), [])
        runs.append(_run(row, studies[row["study"]], parent, repeats, network, changed))

    return runs


def best_and_last(
    connection: Connection, study: str, direction: Direction, moment: int
) -> tuple[str, str] | None:
    """Return the ids of the best run and of the last one that had a result at a moment.

    Args:
        connection: Connection to the archive.
        study: Name of the study.
        direction: Whether larger or smaller values are better.
        moment: Milliseconds since 1970.

    Returns:
        The two ids; None if no run had a result.
    """
    asked = {"study": study, "moment": moment}
    rows = connection.read(lambda tx: tx.run(ENDED_BEFORE, asked).data())
    if not rows:
        return None

    rows.sort(key=lambda row: (row["finished"], row["id"]))
    best = max(rows, key=lambda row: sign(direction) * row["value"])
    return best["id"], rows[-1]["id"]


def runs_of_network(connection: Connection, functional_key: str) -> list[TriedRun]:
    """Return the runs that trained a network, by its functional key, newest first."""
    return runs_by_id(connection, ids_of_network(connection, functional_key))


def networks_of(connection: Connection, keys: Collection[str]) -> dict[str, str]:
    """Return the key of the network that each configuration has built last, where that is known."""
    builds = Builds(connection, Architectures(connection)).of(keys)
    return {key: build.network for key, build in builds.items()}


def _run(
    row: Row,
    study: tuple[str, Direction],
    parent: Row | None,
    repeats: Mapping[tuple[str, str], list[float]],
    network: str | None,
    changed: list[str],
) -> TriedRun:
    objective, direction = study
    values = values_of(row["configuration"], row["hyperparameters"])
    results = repeats[row["study"], row["architecture"]]
    earlier: list[float] = []
    changes: list[ValueChange] = []
    difference = None
    if parent is not None:
        earlier = repeats[parent["study"], parent["architecture"]]
        before = values_of(parent["configuration"], parent["hyperparameters"])
        for change in value_changes(before, values):
            if change.name not in NOT_GIVEN:
                changes.append(change)

        if parent["architecture"] != row["architecture"] and row["value"] is not None:
            difference = difference_of_means(earlier, results, sign(direction))

    return TriedRun(
        run=row["id"],
        study=row["study"],
        state=State(row["state"]).label,
        started=timestamp(row["created"]),
        program=row["program"],
        motivation=row["motivation"],
        changed=list(row["changed"] or ()),
        values=values,
        objective=objective,
        direction=direction,
        value=row["value"],
        parent=row["parent"],
        parent_value=None if parent is None else parent["value"],
        gain=None if difference is None else difference.gain,
        gain_low=None if difference is None else difference.low,
        gain_high=None if difference is None else difference.high,
        repeats=len(results),
        parent_repeats=len(earlier),
        changes=changes,
        network=network,
        network_changes=changed,
        seed=row["seed"],
        seconds=row["seconds"],
        reason=row["reason"],
    )

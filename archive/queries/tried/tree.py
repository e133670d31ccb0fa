"""Lineage of a study as trees: which run is a change of which, and what each brought.

    recorded and imported runs    the parent is `Proposal.derived_from`
    searches                      the parent is the last proposal before, of a network that
                                  `MORPHED_INTO` this one

A tree of thousands of runs is not read as a whole: the best runs are shown with all that they came
from, and the others are counted where they would be.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from archive.errors import UnknownNameError
from archive.objectives import sign
from archive.queries.tried.lines import RunLines
from archive.store.properties import proposal_id
from archive.store.records import Direction, State, StateName
from archive.store.studies import studies

if TYPE_CHECKING:
    from archive.database.connection import Connection

# One row: both servers spend more time on a row than on its content.
RUNS = """
MATCH (p:Proposal {study: $study})
OPTIONAL MATCH (p)-[:RESULTED_IN]->(e:Evaluation)
RETURN collect([p.number, p.state, p.architecture, p.derived_from, e.value, e.partial]) AS runs
"""

MORPHS = """
MATCH (p:Proposal {study: $study})
WHERE p.derived_from IS NULL
MATCH (p)-[:OF]->(a:Architecture)
MATCH (a)<-[:MORPHED_INTO]-(parent:Architecture)
RETURN collect(DISTINCT [a.key, parent.key]) AS morphs
"""

DETAILS = """
UNWIND $ids AS id
MATCH (p:Proposal {id: id})
USING INDEX SEEK p:Proposal(id)
RETURN id, p.motivation AS motivation, p.reason AS reason, p.changed AS changed
"""

OPERATIONS = """
UNWIND $pairs AS pair
MATCH (a:Architecture {key: pair.child})<-[m:MORPHED_INTO]-(parent:Architecture)
USING INDEX SEEK a:Architecture(key)
WHERE parent.key = pair.parent
RETURN pair.child AS child, pair.parent AS parent, m.operations AS operations
"""


@dataclass(frozen=True)
class TreeRun:
    """A run within its tree.

    Attributes:
        run: Id of its proposal.
        parent: Id of the run that it is a change of; null for the root of a tree.
        above: Id of the nearest run here that it came from; null for the first of a tree.
        skipped: Number of runs between that one and this one, which are left out.
        state: State of the proposal.
        value: The objective; null without a result.
        gain: What its configuration brought over its parent's, by the means over their repeats,
            larger is better; null where either has no result, and for a repeat of its parent.
        children: Number of runs that are changes of it.
        hidden: Number of runs that came from it and are left out, where no other run here is nearer.
        hidden_best: The best objective of these; null without a result.
        is_on_best_path: Whether the best run came from it, or is it.
        motivation: Reason for it in words; null without one.
        operations: What it changes of its parent.
        reason: Why it failed; null where it did not.
    """

    run: str
    parent: str | None
    above: str | None
    skipped: int
    state: StateName
    value: float | None
    gain: float | None
    children: int
    hidden: int
    hidden_best: float | None
    is_on_best_path: bool
    motivation: str | None
    operations: list[str]
    reason: str | None


@dataclass(frozen=True)
class RunTree:
    """Trees of the runs of a study.

    Attributes:
        study: Its name.
        objective: Metric that runs are judged by.
        direction: Whether larger or smaller values are better.
        total: Number of all runs of these trees.
        trees: Number of trees.
        hidden_trees: Number of trees without a run here.
        best: Id of the best run; null without a result.
        best_path: Ids of the runs from the first one to the best one.
        runs: The shown runs, each after the one above it.
    """

    study: str
    objective: str
    direction: Direction
    total: int
    trees: int
    hidden_trees: int
    best: str | None
    best_path: list[str]
    runs: list[TreeRun]


class _RankedRun(NamedTuple):
    """A run: number, state, key of its configuration, parent, value, and score for its rank."""

    number: int
    state: State
    architecture: str
    parent: int | None
    value: float | None
    score: float


def read_tree(
    connection: Connection, study: str, run: int | None = None, most: int = 40
) -> RunTree:
    """Return the trees of a study, or the tree of one run.

    Args:
        connection: Connection to the archive.
        study: Name of the study.
        run: Number of a run: all that it came from, and all that came from it; None for all runs.
        most: Largest number of runs.

    Raises:
        UnknownNameError: There is no such study or run.
    """
    settings = studies.read(connection, study)
    runs = _read_runs(connection, study, sign(settings.direction))
    if run is not None:
        if run not in runs:
            numbers = [proposal_id(study, number) for number in runs]
            raise UnknownNameError("run", proposal_id(study, run), numbers)

        runs = _related(runs, run)

    children = _children(runs)
    ranked = sorted(runs.values(), key=lambda row: (-row.score, row.number))
    best = ranked[0].number if ranked and ranked[0].score > -math.inf else None
    best_path = [] if best is None else _path(runs, best)
    order = [row.number for row in ranked]
    above = _choose(runs, order if run is None else [run, *order], most)
    roots = [row.number for row in runs.values() if row.parent is None]
    shown = _Shown(connection, study, runs, children, above, set(best_path), settings.direction)
    return RunTree(
        study=study,
        objective=settings.objective,
        direction=settings.direction,
        total=len(runs),
        trees=len(roots),
        hidden_trees=sum(root not in above for root in roots),
        best=None if best is None else proposal_id(study, best),
        best_path=[proposal_id(study, number) for number in best_path],
        runs=shown.runs(),
    )


def _read_runs(connection: Connection, study: str, factor: float) -> dict[int, _RankedRun]:
    """Return the runs of a study by number, ascending; no run is its own ancestor."""
    rows = connection.read(lambda tx: tx.run(RUNS, study=study).single(strict=True))["runs"]
    rows.sort(key=lambda row: row[0])
    morphs = connection.read(lambda tx: tx.run(MORPHS, study=study).single(strict=True))["morphs"]
    parents_of = defaultdict(list)
    for child, parent in morphs:
        parents_of[child].append(parent)

    numbers = {proposal_id(study, row[0]): row[0] for row in rows}
    first_numbers: dict[str, int] = {}
    runs: dict[int, _RankedRun] = {}
    for number, state, architecture, derived_from, value, partial in rows:
        if derived_from is not None:
            parent = numbers.get(derived_from)
        else:
            keys = parents_of.get(architecture, ())
            earlier = [first_numbers[key] for key in keys if key in first_numbers]
            # A parent that is proposed again is still the parent as it was.
            parent = max(earlier, default=None)

        first_numbers.setdefault(architecture, number)
        is_whole = value is not None and math.isfinite(value) and not partial
        score = factor * value if is_whole else -math.inf
        runs[number] = _RankedRun(number, State(state), architecture, parent, value, score)

    parents = {}
    for run in runs.values():
        if run.parent is not None:
            parents[run.number] = run.parent

    lines = RunLines(parents, {number: run.score for number, run in runs.items()})
    return {number: run._replace(parent=lines.parent(number)) for number, run in runs.items()}


def _children(runs: Mapping[int, _RankedRun]) -> dict[int, list[int]]:
    children: dict[int, list[int]] = {number: [] for number in runs}
    for row in runs.values():
        if row.parent is not None:
            children[row.parent].append(row.number)

    return children


def _path(runs: Mapping[int, _RankedRun], number: int) -> list[int]:
    """Return the runs from the first one to a run."""
    path = []
    current: int | None = number
    while current is not None:
        path.append(current)
        current = runs[current].parent

    path.reverse()
    return path


def _related(runs: Mapping[int, _RankedRun], number: int) -> dict[int, _RankedRun]:
    """Return the runs that a run came from, itself, and those that came from it."""
    children = _children(runs)
    kept = set(_path(runs, number))
    waiting = [number]
    while waiting:
        following = children[waiting.pop()]
        kept.update(following)
        waiting += following

    return {key: row for key, row in runs.items() if key in kept}


def _choose(
    runs: Mapping[int, _RankedRun], ranked: Iterable[int], most: int
) -> dict[int, tuple[int | None, int]]:
    """Return the runs to show, each with the nearest shown one above it and the number between.

    The best ones are chosen, with all that they came from. Where that is longer than `most` for the
    first, its middle is left out.
    """
    shown: dict[int, tuple[int | None, int]] = {}
    for number in ranked:
        if len(shown) >= most:
            break

        path: list[int] = []
        current: int | None = number
        while current is not None and current not in shown:
            path.append(current)
            current = runs[current].parent

        path.reverse()
        room = most - len(shown)
        if len(path) <= room:
            for step in path:
                shown[step] = (current, 0)
                current = step

        elif not shown:
            begin = path[: room // 2]
            end = path[len(path) - (room - room // 2) :]
            for step in begin:
                shown[step] = (current, 0)
                current = step

            skipped = len(path) - room
            for step in end:
                shown[step] = (current, skipped)
                current = step
                skipped = 0

    return shown


class _Shown:
    """The chosen runs with what is said of each."""

    def __init__(
        self,
        connection: Connection,
        study: str,
        runs: Mapping[int, _RankedRun],
        children: Mapping[int, Sequence[int]],
        above: Mapping[int, tuple[int | None, int]],
        best_path: set[int],
        direction: Direction,
    ) -> None:
        self._connection = connection
        self._study = study
        self._runs = runs
        self._children = children
        self._above = above
        self._best_path = best_path
        self._sign = sign(direction)
        values = defaultdict(list)
        for row in runs.values():
            if row.score > -math.inf and row.value is not None:
                values[row.architecture].append(row.value)

        self._means = {key: fmean(of_key) for key, of_key in values.items()}

    def runs(self) -> list[TreeRun]:
        """Return the chosen runs, each after the one above it."""
        hidden = self._hidden()
        details = self._details()
        operations = self._operations()
        listed = []
        for number in self._above:
            row = self._runs[number]
            detail = details[self._id(number)]
            left_out = [self._runs[other] for other in hidden.get(number, ())]
            best = max(left_out, key=lambda other: other.score, default=None)
            above, skipped = self._above[number]
            listed.append(
                TreeRun(
                    run=self._id(number),
                    parent=None if row.parent is None else self._id(row.parent),
                    above=None if above is None else self._id(above),
                    skipped=skipped,
                    state=row.state.label,
                    value=row.value,
                    gain=self._gain(row),
                    children=len(self._children[number]),
                    hidden=len(left_out),
                    hidden_best=None if best is None or best.score == -math.inf else best.value,
                    is_on_best_path=number in self._best_path,
                    motivation=detail["motivation"],
                    operations=operations.get(number) or list(detail["changed"] or ()),
                    reason=detail["reason"],
                )
            )

        return listed

    def _id(self, number: int) -> str:
        return proposal_id(self._study, number)

    def _hidden(self) -> dict[int, list[int]]:
        """Return the runs that are left out below each shown one."""
        skipped: set[int] = set()
        for number, (_, count) in self._above.items():
            current = number
            for _ in range(count):
                current = self._runs[current].parent or 0
                skipped.add(current)

        hidden = {}
        for number in self._above:
            waiting = [child for child in self._children[number] if child not in self._above]
            left_out: list[int] = []
            while waiting:
                current = waiting.pop()
                if current in self._above:
                    continue

                if current not in skipped:
                    left_out.append(current)

                waiting += self._children[current]

            hidden[number] = left_out

        return hidden

    def _details(self) -> dict[str, Mapping[str, str]]:
        ids = list(map(self._id, self._above))
        rows = self._connection.read(lambda tx: tx.run(DETAILS, ids=ids).data()) if ids else []
        return {row["id"]: row for row in rows}

    def _operations(self) -> dict[int, list[str]]:
        """Return what each shown run changes of its parent."""
        pairs = {}
        for number in self._above:
            row = self._runs[number]
            if row.parent is not None:
                pairs[number] = (self._runs[row.parent].architecture, row.architecture)

        asked = [
            {"parent": parent, "child": child} for parent, child in sorted(set(pairs.values()))
        ]
        if not asked:
            return {}

        rows = self._connection.read(lambda tx: tx.run(OPERATIONS, pairs=asked).data())
        operations = {(row["parent"], row["child"]): list(row["operations"] or ()) for row in rows}
        return {number: operations.get(pair, []) for number, pair in pairs.items()}

    def _gain(self, row: _RankedRun) -> float | None:
        if row.parent is None or row.score == -math.inf:
            return None

        parent = self._runs[row.parent]
        before = self._means.get(parent.architecture)
        if before is None or parent.architecture == row.architecture:
            return None

        return self._sign * (self._means[row.architecture] - before) or 0.0

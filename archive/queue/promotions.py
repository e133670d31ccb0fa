"""Promotions in the store: after a result at a rung, choose the proposals that continue.

    lock the study -> lock its proposals -> store the results -> pause -> promote

`archive.queue.successive_halving` has the rule. Each rung has a border between its best results and
the others: with it, a result costs the same in a study of any size.

    best ─── 1,200 better ───┤  the nearest on both sides  ├─── 2,400 worse ─── worst
                                          │
                                        border: floor(n / reduction) of n results are above it

A further result moves the border by one place at most, so only the results beside it decide about
promotions. A study keeps these results, and the number of the others. They are chosen again from
all results where none are kept (after a load, or a user's write), or where the border has left them
(after many results in a row on one side). Either way, the promotions equal
`archive.queue.successive_halving.promotable`.
"""

from __future__ import annotations

import json
import math
from bisect import insort
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import starmap
from typing import TYPE_CHECKING, Any, NamedTuple

from archive.database.statements import lock as lock_nodes
from archive.queue import leases
from archive.queue.leases import ProposalChange
from archive.queue.successive_halving import RungResult, RungStanding, RungStudy, rank
from archive.rungs import Rungs
from archive.store.properties import from_json, proposal_id, study_of
from archive.store.records import Constraint, State

if TYPE_CHECKING:
    from neo4j import ManagedTransaction

CONFIGS = """
UNWIND $studies AS name
MATCH (s:Study {name: name})
USING INDEX SEEK s:Study(name)
RETURN name, s.config AS config, s.direction AS direction, s.objective AS objective,
       s.constrained AS constrained, s.operators AS operators, s.bounds AS bounds, s.rung_borders AS borders
"""

STANDINGS = """
MATCH (s:Study {name: $study})-[:PROPOSED]->(p:Proposal)
USING INDEX SEEK s:Study(name)
WHERE p.rung_values IS NOT NULL
RETURN p.id AS id, p.number AS number, p.state AS state, coalesce(p.rung, 0) AS rung, p.rung_values AS rung_values,
       p.rung_constrained AS constrained
"""

KEEP = """
MATCH (s:Study {name: $study})
USING INDEX SEEK s:Study(name)
SET s.rung_borders = $borders
"""

# Each MATCH starts from a bound node: with a single pattern, ArcadeDB scans the claims of all
# workers.
PAUSED = """
UNWIND $rows AS row
MATCH (p:Proposal {id: row.id})
USING INDEX SEEK p:Proposal(id)
MATCH (p)<-[c:CLAIMED]-()
WHERE c.token = row.token
SET c.ended = timestamp(), c.outcome = 'pruned', c.rung = row.rung, c.value = row.value, c.epochs = row.epochs
"""

PROMOTED = """
UNWIND $ids AS id
MATCH (p:Proposal {id: id})
USING INDEX SEEK p:Proposal(id)
MATCH (p)<-[c:CLAIMED]-()
WHERE c.token = p.token
SET c.promoted = timestamp()
"""


def lock(tx: ManagedTransaction, studies: Iterable[str]) -> dict[str, RungStudy]:
    """Lock studies before any of their proposals, and return those with rungs by name.

    Additions to a study lock it first, too: transactions that lock in one order cannot deadlock.
    """
    names = sorted({*studies})
    if not names:
        return {}

    lock_nodes(tx, "Study", names)
    studies_with_rungs = {}
    for row in tx.run(CONFIGS, studies=names):
        study = _study(row)
        if study is not None:
            studies_with_rungs[row["name"]] = study

    return studies_with_rungs


def pause(tx: ManagedTransaction, ended: Sequence[RungResult]) -> None:
    """Record rung, value and epochs on the claims of results at a rung."""
    paused = []
    for result in ended:
        if result.rung is not None and result.result.partial:
            paused.append(
                {
                    "id": result.id,
                    "token": result.token,
                    "rung": result.rung,
                    "value": result.result.value,
                    "epochs": result.result.epochs,
                }
            )

    if paused:
        tx.run(PAUSED, rows=paused).consume()


def promote(
    tx: ManagedTransaction, studies: Mapping[str, RungStudy], ended: Sequence[RungResult]
) -> None:
    """Promote the proposals that can be promoted, in the locked studies of these results.

    Args:
        tx: The transaction.
        studies: The studies with rungs by name.
        ended: The results that this transaction has stored.
    """
    by_study: dict[str, list[RungResult]] = {}
    for result in ended:
        results = by_study.setdefault(study_of(result.id), [])
        if result.rung is not None:
            results.append(result)

    for name in sorted(by_study.keys() & studies.keys()):
        study = studies[name]
        promoted, borders = _near(study, by_study[name]) or _of_all(tx, name, study)
        _wait(tx, [proposal_id(name, number) for number in promoted])
        tx.run(KEEP, study=name, borders=borders.dump()).consume()


def _near(study: RungStudy, ended: Sequence[RungResult]) -> tuple[list[int], StudyBorders] | None:
    """Return the numbers to promote by the stored borders, and the borders.

    None if the borders do not decide.
    """
    if study.borders is None:
        return None

    borders = StudyBorders.parse(study, study.borders)
    for result in ended:
        borders.insert(result.standing(study), len(result.before))

    promoted = borders.promote()
    return None if promoted is None else (promoted, borders)


def _of_all(tx: ManagedTransaction, name: str, study: RungStudy) -> tuple[list[int], StudyBorders]:
    """Return the numbers to promote by all results of a study, and its borders."""
    borders = StudyBorders.of(
        study, [_standing(row, study) for row in tx.run(STANDINGS, study=name)]
    )
    return borders.promote() or [], borders


def _wait(tx: ManagedTransaction, ids: Sequence[str]) -> None:
    """Put proposals back into the queue for their next rung."""
    if not ids:
        return

    changes = []
    for id_, row in sorted(leases.lock(tx, ids).items()):
        further = {"rung": row["rung"] + 1, "priority": row["priority"] + 1, "attempts": 0}
        changes.append(ProposalChange(id_, {"state": State.WAITING.value, **further}))

    leases.apply(tx, changes)
    tx.run(PROMOTED, ids=ids).consume()


def _study(row: Mapping[str, Any]) -> RungStudy | None:
    """Return the study of a row; None without rungs."""
    rungs = Rungs.of(from_json(row["config"]))
    if rungs is None:
        return None

    names = row["constrained"] or ()
    operators = row["operators"] or ()
    bounds = row["bounds"] or ()
    constraints = map(Constraint, names, operators, bounds)
    maximise = row["direction"] == "maximise"
    objective = row["objective"]
    return RungStudy(rungs, maximise, objective, tuple(constraints), borders=row["borders"])


def _standing(row: Mapping[str, Any], study: RungStudy) -> RungStanding:
    values = tuple(row["rung_values"])
    violations = study.violations(row["constrained"] or (), len(values))
    state = State(row["state"])
    return RungStanding(row["id"], row["number"], state, row["rung"], values, violations)


FEWEST_NEAREST = 64
"""Least number of results that are kept on each side of a border; of more than its square, the
square root is kept."""


class RungPlace(NamedTuple):
    """A result at a rung; places sort with the best first.

    Attributes:
        violation: Violation of the study's constraints.
        loss: Value of the objective, with the sign by which less is better.
        number: Number of the proposal.
        paused: Whether the proposal has paused at this rung and was not promoted.
    """

    violation: float
    loss: float
    number: int
    paused: bool


@dataclass
class RungBorder:
    """The border of a rung.

    Attributes:
        finished: Number of results at the rung.
        above: Number of results better than the nearest; none of them is paused, except for the
            `new` ones.
        below: Number of usable results worse than the nearest.
        nearest: Results on both sides of the border, the best first.
        new: Proposals that have paused since the last promotion, with results better than the
            nearest.
    """

    finished: int = 0
    above: int = 0
    below: int = 0
    nearest: list[RungPlace] = field(default_factory=list)
    new: list[int] = field(default_factory=list)

    def insert(self, result: RungPlace) -> None:
        """Add a result; a value that is not finite only counts."""
        self.finished += 1
        if not math.isfinite(result.loss):
            return

        if self.above and result < self.nearest[0]:
            self.above += 1
            self.new += [result.number] if result.paused else []
        elif self.below and result > self.nearest[-1]:
            self.below += 1
        else:
            insort(self.nearest, result)

    def leave(self, number: int) -> None:
        """Note that a proposal is no longer paused at this rung."""
        self.new = [other for other in self.new if other != number]
        for index, result in enumerate(self.nearest):
            if result.number == number:
                self.nearest[index] = result._replace(paused=False)

    def promote(self, reduction: int) -> list[int] | None:
        """Return the proposals to promote, which are paused no longer.

        None if the nearest results do not decide.
        """
        best = (
            min(self.finished // reduction, self.above + len(self.nearest) + self.below)
            - self.above
        )
        if not 0 <= best <= len(self.nearest):
            return None

        promoted = self.new
        self.new = []
        for index, result in enumerate(self.nearest[:best]):
            if result.paused:
                promoted.append(result.number)
                self.nearest[index] = result._replace(paused=False)

        self._keep(best)
        return promoted

    def _keep(self, best: int) -> None:
        """Keep as many results on each side as this rung needs, and count the others."""
        side = max(FEWEST_NEAREST, math.isqrt(self.finished))
        first = max(0, best - side)
        last = best + side
        self.above += first
        self.below += len(self.nearest[last:])
        self.nearest = self.nearest[first:last]


class StudyBorders:
    """Borders of a study's rungs, except for the top one.

    Args:
        study: The study.
        borders: The borders, from the lowest rung up.
    """

    def __init__(self, study: RungStudy, borders: Iterable[RungBorder]) -> None:
        """Keep the borders."""
        self._study = study
        self._borders = list(borders)

    @classmethod
    def of(cls, study: RungStudy, standings: Iterable[RungStanding]) -> StudyBorders:
        """Return the borders of a study with these results."""
        every = list(standings)
        borders = []
        for rung in range(len(study.rungs.epochs) - 1):
            finished = [standing for standing in every if len(standing.values) > rung]
            usable = []
            for standing in finished:
                if math.isfinite(standing.values[rung]):
                    usable.append(_place(study, standing, rung))

            borders.append(RungBorder(len(finished), nearest=sorted(usable)))

        return cls(study, borders)

    @classmethod
    def parse(cls, study: RungStudy, text: str) -> StudyBorders:
        """Return the borders of a text of `dump`."""
        borders = []
        for finished, above, below, nearest in json.loads(text):
            places = list(starmap(RungPlace, nearest))
            borders.append(RungBorder(finished, above, below, places))

        return cls(study, borders)

    def dump(self) -> str:
        """Return the borders as a text, after a promotion."""
        rows = []
        for border in self._borders:
            rows.append([border.finished, border.above, border.below, border.nearest])

        return json.dumps(rows, separators=(",", ":"))

    def insert(self, standing: RungStanding, before: int) -> None:
        """Add the results of a proposal at the rungs that it has finished.

        The first `before` of them are counted already.
        """
        for border in self._borders[:before]:
            border.leave(standing.number)

        for rung in range(before, min(len(standing.values), len(self._borders))):
            self._borders[rung].insert(_place(self._study, standing, rung))

    def promote(self) -> list[int] | None:
        """Return the numbers of the proposals to promote.

        None if only all results of the study can decide.
        """
        promoted: list[int] = []
        for border in self._borders:
            numbers = border.promote(self._study.rungs.reduction)
            if numbers is None:
                return None

            promoted += numbers

        return promoted


def _place(study: RungStudy, standing: RungStanding, rung: int) -> RungPlace:
    return RungPlace(*rank(standing, rung, maximise=study.maximise), standing.paused_at(rung))

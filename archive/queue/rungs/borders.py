"""Borders between the best of a rung and its other results, by which a result costs the same in a
study of any size.

    best ─── 1,200 better ───┤  the nearest on both sides  ├─── 2,400 worse ─── worst
                                          │
                                        border: floor(n / reduction) of n results are above it

A further result moves the border by one place at most, so only the results beside it decide about
promotions. A study keeps these and the numbers of the others. They are chosen from all results of
the study if none are kept, which is so after a load or a user's write, and if the border has left
them, which takes many results in a row that are better than all kept ones, or worse. Both give the
promotions of `archive.queue.successive_halving.promotable`.
"""

from __future__ import annotations

import json
import math
from bisect import insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from archive.queue.successive_halving import RungStanding, RungStudy, rank

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

    def insert(self, place: RungPlace) -> None:
        """Add a result; a value that is not finite only counts."""
        self.finished += 1
        if not math.isfinite(place.loss):
            return

        if self.above and place < self.nearest[0]:
            self.above += 1
            self.new += [place.number] if place.paused else []
        elif self.below and place > self.nearest[-1]:
            self.below += 1
        else:
            insort(self.nearest, place)

    def leave(self, number: int) -> None:
        """Note that a proposal is no longer paused at this rung."""
        self.new = [each for each in self.new if each != number]
        self.nearest = [
            place._replace(paused=False) if place.number == number else place
            for place in self.nearest
        ]

    def promote(self, reduction: int) -> list[int] | None:
        """Return the proposals to promote, which are paused no longer;

        None if the nearest results do not tell.
        """
        best = (
            min(self.finished // reduction, self.above + len(self.nearest) + self.below)
            - self.above
        )
        if not 0 <= best <= len(self.nearest):
            return None

        promoted = [*self.new, *(place.number for place in self.nearest[:best] if place.paused)]
        self.new = []
        self._keep(
            best,
            [
                *(place._replace(paused=False) for place in self.nearest[:best]),
                *self.nearest[best:],
            ],
        )
        return promoted

    def _keep(self, best: int, nearest: Sequence[RungPlace]) -> None:
        """Keep as many results on each side as this rung needs, and count the others."""
        side = max(FEWEST_NEAREST, math.isqrt(self.finished))
        first = max(0, best - side)
        last = best + side
        self.nearest = list(nearest[first:last])
        self.above += first
        self.below += len(nearest[last:])


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
            finished = [one for one in every if len(one.values) > rung]
            usable = sorted(
                _place(study, one, rung) for one in finished if math.isfinite(one.values[rung])
            )
            borders.append(RungBorder(len(finished), nearest=usable))

        return cls(study, borders)

    @classmethod
    def parse(cls, study: RungStudy, text: str) -> StudyBorders:
        """Return the borders of a text of `dump`."""
        borders = [
            RungBorder(finished, above, below, [RungPlace(*place) for place in nearest])
            for finished, above, below, nearest in json.loads(text)
        ]
        return cls(study, borders)

    def dump(self) -> str:
        """Return the borders as a text, after a promotion."""
        rows = [[one.finished, one.above, one.below, one.nearest] for one in self._borders]
        return json.dumps(rows, separators=(",", ":"))

    def insert(self, one: RungStanding, before: int) -> None:
        """Add the results of a proposal at the rungs that it has finished since it had `before` of
        them.
        """
        for border in self._borders[:before]:
            border.leave(one.number)

        for rung in range(before, min(len(one.values), len(self._borders))):
            self._borders[rung].insert(_place(self._study, one, rung))

    def promote(self) -> list[int] | None:
        """Return the numbers of the proposals to promote;

        None if only all results of the study can tell.
        """
        promoted: list[int] = []
        for border in self._borders:
            numbers = border.promote(self._study.rungs.reduction)
            if numbers is None:
                return None

            promoted += numbers

        return promoted


def _place(study: RungStudy, one: RungStanding, rung: int) -> RungPlace:
    return RungPlace(*rank(one, rung, maximise=study.maximise), one.paused_at(rung))

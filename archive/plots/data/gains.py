"""Gains of the agents' operations: children compared with parents, and with the best before.

| symbol  | meaning                                                                                          |
|---------|--------------------------------------------------------------------------------------------------|
| c, p    | a network with a result in the study, and a parent of it that the study proposed before          |
| O(c, p) | the different operations on the relationship `MORPHED_INTO` from p to c; `?` without operations |
| gain    | score(c) - score(p); counted for each operation of O(c, p), in full                              |
| raise   | max(0, score(c) - best score of all earlier numbers); divided evenly over the operations of c    |

Both are descriptive. A gain in full says how children with the operation compare with their
parents. The raises of all operations add up to how far children raised the study's best score;
first networks without a parent take no part. An agent that mutates the best network only has small
gains and large raises. Scores are values, with the opposite sign where the study minimises, so that
a positive gain is an improvement. Results that are not comparable (`RecordedResults.comparable`)
take no part. The saved query `operators` has the mean and the largest gain.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from archive.errors import UsageError
from archive.plots.data.results import (
    Floats,
    RecordedResults,
    count_undrawable,
    describe_undrawable,
    mask_undrawable,
    read,
)
from archive.queries.proposals import STEPS_OF_STUDY

if TYPE_CHECKING:
    from archive.api import Archive

Step = tuple[int, str, Sequence[str]]
"""Number of a child's proposal, key of a parent, operations between them."""

UNKNOWN = "?"
"""Name of the operation of a step on which none is recorded."""

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Levels of the quantiles that are drawn."""


@dataclass(frozen=True, eq=False)
class OperationGain:
    """Gains of one operation in one study.

    Attributes:
        operation: Name of the operation.
        gains: (n,) float64, sorted: the gain of each use.
        raised: Its share of the raises of the best score.
    """

    operation: str
    gains: Floats
    raised: float

    @property
    def quantiles(self) -> Floats:
        """(5,) float64, the gains at `LEVELS`."""
        return np.quantile(self.gains, LEVELS)

    @property
    def improved(self) -> int:
        """Number of uses with a child better than its parent."""
        return int((self.gains > 0).sum())


@dataclass(frozen=True, eq=False)
class OperationGains:
    """Gains of all operations of one study.

    Attributes:
        study: Name of the study.
        objective: Name of the metric.
        operations: The largest median gain first; of equal ones, by name.
        steps: Number of pairs of a child and a parent.
        left_out: Number of values that cannot be drawn (`archive.plots.data.results`); these
            results take no part.
    """

    study: str
    objective: str
    operations: tuple[OperationGain, ...]
    steps: int
    left_out: int


def operation_gains(archive: Archive, study: str) -> OperationGains:
    """Return the gains of the operations of a study.

    Raises:
        UnknownNameError: There is no study of this name.
        UsageError: No network of the study has a parent in it, both with results.
    """
    (results,) = read(archive, study, ["architecture"])
    parts = archive.connection.read(
        lambda tx: [row["rows"] for row in tx.run(STEPS_OF_STUDY, study=study)]
    )
    return gains(results, chain.from_iterable(parts))


def gains(results: RecordedResults, steps: Iterable[Step]) -> OperationGains:
    """Return the gains of operations from results with `architecture`, and the study's steps.

    Raises:
        UsageError: No step has a child and an earlier parent with comparable results.
    """
    recorded = np.where(results.comparable, results.value, np.nan)
    left_out = count_undrawable(recorded)
    usable = np.flatnonzero(np.isfinite(mask_undrawable(recorded)))
    usable = usable[np.argsort(results.number[usable])]
    numbers = results.number[usable].tolist()
    scores = results.score[usable]
    score_of = dict(zip(numbers, scores.tolist(), strict=True))
    number_of: dict[str, int] = {}
    for number, row in zip(numbers, usable.tolist(), strict=True):
        number_of.setdefault(results.columns["architecture"][row], number)

    best_before = np.concatenate([[np.inf], np.maximum.accumulate(scores)[:-1]])[: len(scores)]
    raise_of = dict(zip(numbers, np.maximum(0.0, scores - best_before).tolist(), strict=True))
    gain_of: dict[str, list[float]] = defaultdict(list)
    operations_of: dict[int, set[str]] = defaultdict(set)
    count = 0
    for number, parent, made in sorted(steps, key=lambda step: (step[0], step[1])):
        before = number_of.get(parent)
        if number in score_of and before is not None and before < number:
            count += 1
            for operation in set(made or [UNKNOWN]):
                gain_of[operation].append(score_of[number] - score_of[before])
                operations_of[number].add(operation)

    if not count:
        raise UsageError(
            f"no network of the study {results.study.name!r} has a parent in it, both with results: "
            f"its agent does not change known networks, or has not begun to{describe_undrawable(left_out, '; ')}"
        )

    raised: dict[str, float] = defaultdict(float)
    for number, operations in operations_of.items():
        for operation in operations:
            raised[operation] += raise_of[number] / len(operations)

    ranked = []
    for name, gains in gain_of.items():
        ranked.append(OperationGain(name, np.sort(np.array(gains)), raised[name]))

    ranked.sort(key=lambda gain: (-float(np.median(gain.gains)), gain.operation))
    return OperationGains(
        results.study.name, results.study.objective, tuple(ranked), count, left_out
    )

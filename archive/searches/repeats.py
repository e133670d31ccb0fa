"""Comparison of studies: repeats of one search as a group, and the weight of differences in words.

Studies that differ in nothing but seed, budget and name are repeats. Groups of two or more repeats
are compared by the best values after equally many evaluations (Mann and Whitney's test, exact for
small groups); single studies by the intervals of their recommended networks.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args

import numpy as np

from archive.errors import UsageError
from archive.objectives import sign
from archive.plots.data.progress import Against, BestSoFar, ProgressBand, band, best_so_far
from archive.store.records import Study
from archive.values import rounded

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.searches.answer import StudyAnswer
    from archive.store.records import Direction

LEVEL = 0.05
"""Probability below which a difference is not taken for chance."""


@dataclass(frozen=True, eq=False)
class StudyGroup:
    """Repeats of one search, or a single study.

    Attributes:
        name: The agent of repeats; the name of a single study.
        studies: Names of the studies.
        band: Median and quartiles of the best value so far; None for a single study, and for
            repeats that share no part of the axis.
        bests: Best value of each study after the common number of evaluations.
    """

    name: str
    studies: tuple[str, ...]
    band: ProgressBand | None
    bests: tuple[float, ...]

    @property
    def median(self) -> float:
        """The median of the best values."""
        return float(np.median(self.bests))


@dataclass(frozen=True, eq=False)
class StudyComparison:
    """Groups of studies, the best first.

    Attributes:
        evaluations: Number of evaluations after which they are compared.
        groups: The groups.
        verdicts: One sentence for each group after the first; of a single group of repeats, one on
            its spread.
    """

    evaluations: int
    groups: tuple[StudyGroup, ...]
    verdicts: tuple[str, ...]


def compare_studies(
    archive: Archive,
    names: Sequence[str],
    against: Against = "evaluations",
    *,
    agents: Mapping[str, str | None],
    answers: Mapping[str, StudyAnswer | None] | None = None,
) -> StudyComparison:
    """Compare studies of one task, protocol and objective.

    Args:
        archive: The archive.
        names: Names of the studies; those without a value are left out.
        against: Quantity of the bands.
        agents: Agents of the studies, by name: studies of different agents are no repeats.
        answers: Recommended networks of single studies, by name.

    Raises:
        UnknownNameError: There is no study of this name.
        UsageError: The studies are not comparable, or the quantity is unknown.
    """
    lines = [line for line in best_so_far(archive, names) if len(line.improvements)]
    if not lines:
        raise UsageError("no study has an evaluation with a value yet")

    costs = _progress_by_study(archive, [line.study for line in lines], against)
    evaluations = min(len(line.best) for line in lines)
    members: dict[str, list[BestSoFar]] = {}
    records = {name: archive.studies.get(name) for name in names}
    for line in lines:
        setup = _setup(records[line.study], agents.get(line.study))
        members.setdefault(setup, []).append(line)

    groups = []
    repeated = Counter(agents.get(group[0].study) for group in members.values() if len(group) > 1)
    for group in members.values():
        bests = tuple(_best_after(line, evaluations) for line in group)
        studies = tuple(line.study for line in group)
        name = studies[0]
        quartiles = None
        if len(group) > 1:
            agent = agents.get(name)
            if agent is not None:
                # Searches by one agent may differ in its settings.
                name = agent if repeated[agent] == 1 else f"{agent} ({name}, …)"

            quartiles = _band(name, [line.study for line in group], costs)

        groups.append(StudyGroup(name, studies, quartiles, bests))

    direction = lines[0].direction
    groups.sort(key=lambda group: sign(direction) * group.median, reverse=True)
    verdicts = [
        verdict(groups[0], other, direction, evaluations, answers or {}) for other in groups[1:]
    ]
    if len(groups) == 1 and len(groups[0].studies) > 1:
        verdicts.append(_spread(groups[0], evaluations))

    return StudyComparison(evaluations, tuple(groups), tuple(verdicts))


def _progress_by_study(
    archive: Archive, names: Sequence[str], against: Against
) -> dict[str, BestSoFar]:
    """Return the progress of the studies that have a record of a quantity, by name."""
    if against not in get_args(Against):
        raise UsageError(f"against must be one of {', '.join(get_args(Against))}, got {against!r}")

    lines = {}
    for name in names:
        with suppress(UsageError):
            (lines[name],) = best_so_far(archive, [name], against)

    return lines


def _band(name: str, studies: Sequence[str], lines: Mapping[str, BestSoFar]) -> ProgressBand | None:
    """Return the band of repeats; None where they share no part of the axis.

    Their best values are compared all the same.
    """
    if not lines.keys() >= set(studies):
        return None

    try:
        return band(name, [lines[study] for study in studies])
    except UsageError:
        return None


def _spread(group: StudyGroup, evaluations: int) -> str:
    return (
        f"{len(group.studies)} repeats of one search by {group.name}: the best values after "
        f"{evaluations} evaluations are {rounded(min(group.bests))} to "
        f"{rounded(max(group.bests))}, median {rounded(group.median)}."
    )


def _setup(study: Study, agent: str | None) -> str:
    """Return everything of a study but its name, seed and budget, as one text."""
    config = {name: value for name, value in study.config.items() if name not in ("seed", "budget")}
    constraints = list(map(str, study.constraints))
    return json.dumps([agent, study.space, config, study.space_config, constraints], default=str)


def _best_after(line: BestSoFar, evaluations: int) -> float:
    """Return the best value so far; the first value where it came later."""
    best = line.best[evaluations - 1]
    return float(line.best[line.improvements[0]] if math.isnan(best) else best)


def verdict(
    first: StudyGroup,
    second: StudyGroup,
    direction: Direction,
    evaluations: int,
    answers: Mapping[str, StudyAnswer | None],
) -> str:
    """Return a sentence on the difference of two groups, of which the first one is ahead."""
    if min(len(first.studies), len(second.studies)) > 1:
        return _of_repeats(first, second, direction, evaluations)

    if max(len(first.studies), len(second.studies)) > 1:
        alone = first if len(first.studies) == 1 else second
        return (
            f"{first.name} is ahead of {second.name}, but {alone.name} is a single study: "
            "repeat it with other seeds to tell the agents apart."
        )

    return _of_answers(first, second, direction, answers)


def _of_repeats(
    first: StudyGroup, second: StudyGroup, direction: Direction, evaluations: int
) -> str:
    from scipy.stats import mannwhitneyu

    counts = f"{len(first.studies)} and {len(second.studies)} studies"
    medians = f"{rounded(first.median)} against {rounded(second.median)}"
    least = 2 / math.comb(len(first.studies) + len(second.studies), len(first.studies))
    if least > LEVEL:
        return (
            f"{first.name} is ahead of {second.name} after {evaluations} evaluations (median "
            f"{medians}), but {counts} are too few to tell it from chance."
        )

    chance = float(mannwhitneyu(first.bests, second.bests).pvalue)
    if chance <= LEVEL:
        return (
            f"{first.name} finds better networks than {second.name} in {evaluations} evaluations: "
            f"median {medians}, {counts}; chance alone does so in {_percent(chance)} of cases."
        )

    return (
        f"{first.name} and {second.name} may be equally good: median {medians} after "
        f"{evaluations} evaluations, {counts}; chance alone makes such a difference in "
        f"{_percent(chance)} of cases."
    )


def _percent(share: float) -> str:
    return "less than 1 %" if share < 0.01 else f"{100 * share:.0f} %"


def _of_answers(
    first: StudyGroup,
    second: StudyGroup,
    direction: Direction,
    answers: Mapping[str, StudyAnswer | None],
) -> str:
    names = f"{first.name} and {second.name}"
    answer, two = answers.get(first.name), answers.get(second.name)
    if answer is None or two is None:
        values = f"{rounded(first.bests[0])} against {rounded(second.bests[0])}"
        return f"{first.name} is ahead of {second.name}: {values}, one study each."

    if sign(direction) * (answer.value - two.value) < 0:
        first, second, answer, two = second, first, two, answer

    values = f"{rounded(answer.value)} against {rounded(two.value)}"
    if not answer.noisy and not two.noisy:
        if answer.value == two.value:
            return f"{names} found networks of the same value, {rounded(answer.value)}."

        return f"The network of {first.name} is better: {values}, and these values are exact."

    if answer.low is None or answer.high is None or two.low is None or two.high is None:
        return (
            f"The network of {first.name} measured better than the one of {second.name}: {values}; "
            "the noise of a training is not known."
        )

    difference = abs(answer.value - two.value)
    width = math.hypot(answer.high - answer.low, two.high - two.low) / 2
    if difference > width:
        return (
            f"The network of {first.name} is better than the one of {second.name}: {values}; the "
            f"difference is {rounded(difference - width, width)} to "
            f"{rounded(difference + width, width)} (95 %)."
        )

    return (
        f"The networks of {names} may be equally good: {values}, a difference of "
        f"{rounded(difference, width)} ± {rounded(width, width)} (95 %)."
    )

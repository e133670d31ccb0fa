"""Sentences of a report, made from the data: the question, the answer, and what each plot shows.

Numbers are rounded by the noise of an evaluation, where it is known (`archive.values.rounded`).
Evaluations count from 1; `#12` is the name of a proposal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from archive import words
from archive.objectives import sign
from archive.report.contents import StudyReport
from archive.report.page.charts import short
from archive.store.studies.creation import agent_names
from archive.store.studies.studies import UNBOUNDED
from archive.values import counted, rounded, settings_text

if TYPE_CHECKING:
    from archive.agents.recommendation import Recommendation
    from archive.plots.data.curves import LearningCurves
    from archive.plots.data.gains import OperationGains
    from archive.plots.data.importance import ImportanceReport
    from archive.plots.data.network_map import SearchPath
    from archive.plots.data.predictions import PredictedAndObserved
    from archive.plots.data.progress import BestSoFar
    from archive.plots.data.slices import Slice, Slices
    from archive.plots.data.tradeoff import ValueAndCost
    from archive.queries.pareto import ParetoSet

CALIBRATED = (0.55, 0.80)
"""Shares of results within one standard deviation (ideal: 0.68) that count as calibrated."""


def question(report: StudyReport) -> str:
    """Return the question that a study asks."""
    study = report.study
    where = f"on the task {study.task}, trained by {study.protocol}"
    if study.further:
        named = ", ".join(map(str, study.objectives))
        asked = f"Which networks of the space {study.space} trade {named} best {where}"
    else:
        extreme = "highest" if study.direction == "maximise" else "lowest"
        asked = (
            f"Which network of the space {study.space} has the {extreme} {study.objective} {where}"
        )

    limits = " and ".join(map(str, study.constraints))
    return f"{asked}{f', with {limits}' if limits else ''}?"


def method(report: StudyReport) -> str:
    """Return how the search looked for the answer, in one sentence."""
    study = report.study
    agents = " and ".join(agent_names(study, report.results.columns["agent"])) or "Agents"
    results = f"{len(report.results):,}"
    budget = f", of a budget of {study.budget:,}" if study.budget < UNBOUNDED else ""
    warm = f", and began with the results of {', '.join(report.sources)}" if report.sources else ""
    return f"{agents} proposed the networks{warm}. {results} have results{budget}."


def answer(report: StudyReport) -> Iterator[str]:
    """Yield the sentences of the answer, the network and its value first."""
    if report.pareto is not None:
        yield from _front(report.pareto)
        return

    if not report.best:
        yield _missing(report)
        return

    study = report.study
    error = report.noise
    if report.recommended is None:
        first, *others = report.best
        yield f"#{first.number} has the best {study.objective}: {rounded(first.value, error)}."
        if others:
            value = rounded(others[0].value, error)
            yield f"The next one, #{others[0].number}, has {value}."
    else:
        yield from _recommendation(report, report.recommended)

    if report.gain is not None and report.gain.gain:
        gain = report.gain
        count = (
            "initial network"
            if gain.initial == 1
            else f"best of the {gain.initial} initial networks"
        )
        difference = rounded(abs(gain.best - gain.initial_best), error)
        yield (
            f"The best measured value, {rounded(gain.best, error)}, is {difference} better than the "
            f"{count} ({rounded(gain.initial_best, error)}); it was found at evaluation "
            f"{gain.found_at} of {len(report.results):,}."
        )

    named = report.configurations.get(report.best[0].number or 0)
    if named:
        yield f"Its configuration: {settings_text(named)}."


def _missing(report: StudyReport) -> str:
    """Return why there is no answer."""
    results = len(report.results)
    if not results:
        return "There is no result yet."

    if report.study.constraints:
        return f"No network of {counted(results, 'result')} meets the constraints."

    return "No evaluation has a value that is a number."


def _recommendation(report: StudyReport, recommended: Recommendation) -> Iterator[str]:
    """Yield the estimate of the recommended network, and how far the next one is behind."""
    better = sign(report.study.direction)
    trainings = counted(len(recommended.evaluations), "evaluation")
    named = f"Network {recommended.architecture.key[:8]} is recommended"
    if recommended.low is None:
        yield f"{named}, by {trainings}; the noise of an evaluation cannot be estimated yet."
    else:
        yield (
            f"{named}. Its expected value is estimated from {trainings} of it, and from those of "
            "similar networks."
        )

    second = report.runner_up
    if second is None:
        return

    expected = describe_estimate(second, better, report.noise)
    behind = f"The next one, {second.architecture.key[:8]}, is expected at {expected}"
    if recommended.low is None or second.high is None:
        yield f"{behind}."
    elif recommended.low > second.high:
        yield f"{behind}: the intervals do not overlap, so that the order of the two is settled."
    else:
        yield f"{behind}: the intervals overlap, and further trainings may change their order."


def describe_estimate(recommended: Recommendation, better: float, noise: float | None) -> str:
    """Return an estimate with its interval; both are rounded by the width of the interval.

    Args:
        recommended: The network with its estimate.
        better: 1 where larger values are better, else -1.
        noise: Standard deviation of an evaluation, for an estimate without an interval.
    """
    if recommended.low is None or recommended.high is None:
        return rounded(better * recommended.score, noise)

    error = (recommended.high - recommended.low) / 4.0
    ends = sorted([better * recommended.low, better * recommended.high])
    low, high = (rounded(end, error) for end in ends)
    return f"{rounded(better * recommended.score, error)} (95 %: {low} to {high})"


def _front(front: ParetoSet) -> Iterator[str]:
    results = counted(len(front.history), "result")
    yield f"{len(front.proposals):,} of {results} are the Pareto set: no other is as good in every objective."
    for index, objective in enumerate(front.objectives):
        values = [values[index] for values in front.values]
        extreme = max(values) if objective.direction == "maximise" else min(values)
        best = front.proposals[values.index(extreme)]
        yield f"The best {objective.name} in it is {rounded(extreme)} (#{best.number})."


def progress_finding(data: BestSoFar, error: float | None) -> str:
    """Return how far and when the best value improved."""
    rows = data.improvements
    first = rounded(float(data.best[rows[0]]), error)
    last = rounded(float(data.best[rows[-1]]), error)
    count = len(data.best)
    evaluation = int(rows[-1]) + 1
    if count == 1:
        return f"Evaluation 1 of 1 has {last}."

    if len(rows) == 1:
        return f"Evaluation {evaluation} of {count:,} is the best, {last}; no other improved on it."

    verb = "rose" if data.best[rows[-1]] > data.best[rows[0]] else "fell"
    change = f"The best {data.objective} {verb} from {first} to {last} at evaluation {evaluation} of {count:,}"
    if data.against == "seconds":
        share = data.x[rows[-1]] / max(float(data.x[-1]), 1e-12)
        return f"{change}, after {share:.0%} of the training time."

    after = count - evaluation
    if not after:
        return f"{change}, the last one."

    return f"{change}; {after:,} later ones found nothing better."


def cost_finding(data: ValueAndCost, error: float | None) -> str:
    """Return the ends of the front of values and costs, and what the last step costs."""
    cheap = data.front[0]
    dear = data.front[-1]
    best = f"{rounded(float(data.value[dear]), error)} at {short(float(data.cost[dear]))}"
    if len(data.value) == 1:
        return f"The only result has {best}."

    if len(data.front) == 1:
        return f"#{data.number[dear]} is both the best and the cheapest: {best}."

    least = f"{rounded(float(data.value[cheap]), error)} at {short(float(data.cost[cheap]))}"
    before = data.front[-2]
    step = rounded(abs(float(data.value[dear] - data.value[before])), error)
    factor = float(data.cost[dear]) / max(float(data.cost[before]), 1e-300)
    times = f"{factor:.2g} times the cost" if factor >= 1.05 else "nearly the same cost"
    return f"Along the front, {least} becomes {best}; the last step brings {step} for {times}."


def curves_finding(data: LearningCurves, error: float | None) -> str:
    """Return where the best training ended, and where it was half-way."""
    best = [curve for curve in data.curves if curve.role == "best"][-1]
    finite = np.flatnonzero(np.isfinite(best.values))
    if not len(finite):
        return f"The best training, #{best.number}, has no value on record."

    first, last = finite[0], finite[-1]
    ends = [rounded(float(best.values[row]), error) for row in (first, last)]
    if first == last:
        return f"The best training, #{best.number}, has {data.metric} {ends[1]} after {best.epochs[last]:g} epochs."

    return (
        f"The best training, #{best.number}, went from {data.metric} {ends[0]} after epoch "
        f"{best.epochs[first]:g} to {ends[1]} after {best.epochs[last]:g}."
    )


def predictions_finding(data: PredictedAndObserved) -> str:
    """Return how far predictions were off, and whether their uncertainty fits."""
    within = float(data.coverage([0.6827])[0])
    low, high = CALIBRATED
    verdict = "its uncertainty fits"
    if within < low:
        verdict = "it is too sure of itself"
    elif within > high:
        verdict = "it is less sure than it could be"

    return f"The surrogate is off by {data.rmse:.2g} (root mean square), and {verdict}."


def gains_finding(data: OperationGains) -> str:
    """Return the operation that raised the best value most, and the one that helps most often."""
    most = max(data.operations, key=lambda gain: gain.raised)
    usual = max(data.operations, key=lambda gain: gain.improved / len(gain.gains))
    often = (
        f'{usual.improved} of {len(usual.gains)} uses of "{words.operation(usual.operation)}" made '
        "the child better than its parent"
    )
    if most.raised <= 0.0:
        return f"No operation raised the best value; {often}."

    name = words.operation(most.operation)
    return f'"{name}" raised the best value most, by {most.raised:.2g} in all; {often}.'


def map_finding(path: SearchPath, kept: float) -> str:
    """Return how often the best network moved, and how much of the distances the map shows."""
    drawn = len(np.unique(path.at))
    if drawn < 2:
        return "There is one network so far."

    steps = counted(max(len(path.incumbents) - 1, 0), "time")
    return f"The best network changed {steps} among {drawn:,} networks; the map keeps {kept:.0%} of the variance of their distances."


def hypervolume_finding(number: Sequence[float], volume: Sequence[float]) -> str:
    """Return when most of the hypervolume was reached."""
    last = float(volume[-1])
    reached = next(
        proposal for proposal, part in zip(number, volume, strict=True) if part >= 0.9 * last
    )
    return (
        f"Nine tenths of the final hypervolume, {last:.4g}, were reached at proposal {reached:g}."
    )


def importance_finding(report: ImportanceReport) -> str:
    """Return what explains most of the variance."""
    first, *others = [column for column in report.parameters if column.variance is not None]
    assert first.variance is not None
    share = first.variance
    sentence = (
        f"{first.name} explains {share.share:.0%} of the variance of {report.objective} "
        f"(95 %: {share.low:.0%} to {share.high:.0%})"
    )
    if not others or others[0].variance is None:
        return f"{sentence}."

    return f"{sentence}; the next, {others[0].name}, {others[0].variance.share:.0%}."


def slice_finding(sliced: Slices, part: Slice) -> str:
    """Return where the forest predicts the best and the worst values."""
    better = sign(sliced.direction)
    order = np.argsort(better * part.mean)
    best, worst = int(order[-1]), int(order[0])
    ends = [f"{part.mean[row]:.3g}" for row in (best, worst)]
    if part.axis.scaling == "categories":
        labels = dict(part.axis.ticks)
        names = [labels.get(float(part.grid[row]), "one") for row in (best, worst)]
        return f"The best mean prediction is {ends[0]}, with {names[0]}; the worst {ends[1]}, with {names[1]}."

    position = float(part.grid[best])
    where = "in the middle of its range"
    if not 1 / 3 <= position <= 2 / 3:
        where = f"at the {'low' if position < 0.5 else 'high'} end of its range"

    return (
        f"{part.axis.name} is best {where}: a mean prediction of {ends[0]}, against {ends[1]} at "
        "the worst place."
    )

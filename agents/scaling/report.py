"""Forecast of the designs of studies at a larger scale.

    archive scaling small-decoders --at 1e20

Every result with parameters and tokens counts, also a training that paused at a rung: its loss at the
tokens so far is a result of a shorter training. With learning rates that fall over the training, such a
loss is worse than the loss of a training of this length.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from archive.agents.ask_tell.enqueueing import space_of
from archive.agents.scaling import choice, forecast, laws
from archive.agents.scaling.forecast import COVERAGE, ScalingModel
from archive.agents.scaling.laws import OPERATIONS
from archive.agents.scaling.residuals import ScaledRuns
from archive.agents.surrogates.base import Array
from archive.architecture import texts
from archive.architecture.graph import Architecture
from archive.architecture.parameter_operations import CONFIGURATIONS, configuration_of
from archive.constraints import NO_COSTS
from archive.errors import UsageError
from archive.spaces.base import Space
from archive.values import counted, is_number

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.store.records import Evaluation

LEAST_RUNS = 6
"""Fewest results of a forecast."""
SHOWN = 10
"""Designs that are forecast one by one, at most."""
COMPARED = 5
"""Designs whose orders are compared."""
LEAST_FLIP = 0.2
"""Least probability of a flip that is named."""
SHORTER = (0.01, 0.1, 1.0)
"""Operations of the trainings that may be next, as shares of the question's."""
LEAST_GAIN = 1e-9
"""Least gain in log L of a next training: smaller ones are rounding."""
DRAWS = 2000
_CANDIDATES = 60
_STEPS = 9


@dataclass(frozen=True)
class DesignForecast:
    """One design at the scale of the question.

    Attributes:
        architecture: Key of the network.
        text: It as a text; null where its space has none.
        params: Its parameters.
        tokens: Tokens that the operations allow.
        loss: Median of the forecast.
        low: Lower end of the interval.
        high: Upper end.
        best: Probability that its loss is the least of all designs.
    """

    architecture: str
    text: str | None
    params: float
    tokens: float
    loss: float
    low: float
    high: float
    best: float


@dataclass(frozen=True)
class NextTraining:
    """The training that says most for its operations about the best design.

    Attributes:
        architecture: Key of the network.
        tokens: Tokens to train on.
        flops: Operations.
        gain: Share by which the loss of the chosen design falls on average.
    """

    architecture: str
    tokens: float
    flops: float
    gain: float


@dataclass(frozen=True)
class OrderFlip:
    """Two designs whose order is likely to change.

    Attributes:
        ahead: Key of the network that is ahead at the operations of the largest run.
        behind: Key of the other.
        probability: Probability that their order is another at the scale of the question.
        flops: Operations from which on the other is ahead with a probability of 1/2 or more; null
            where it is not, up to the scale of the question.
    """

    ahead: str
    behind: str
    probability: float
    flops: float | None


@dataclass(frozen=True)
class ScalingDocument:
    """Forecast of the designs of studies.

    Attributes:
        studies: Names of the studies.
        law: Name of the scaling law.
        coefficients: Its coefficients, at the geometric means of the runs, by name.
        runs: Number of results that the model learned from.
        largest: Operations of the largest of them.
        at: Operations of the question.
        probability: Probability of the intervals.
        designs: The designs of the least loss, the best first.
        next: What to train next; null where no training is expected to change the choice.
        flips: Pairs of the best designs whose order may change, the likeliest first.
    """

    studies: list[str]
    law: str
    coefficients: dict[str, float]
    runs: int
    largest: float
    at: float
    probability: float
    designs: list[DesignForecast]
    next: NextTraining | None
    flips: list[OrderFlip]


def scaling(
    archive: Archive,
    studies: Sequence[str],
    at: float,
    *,
    law: str = "chinchilla",
    params: str = "params",
    tokens: str = "tokens",
) -> ScalingDocument:
    """Forecast the designs of studies at a number of operations.

    Args:
        archive: The archive.
        studies: Names of studies of one task, objective and space, whose objective is a loss.
        at: Operations of a training, 6 for each parameter and token.
        law: Name of a scaling law, of `laws.FORMS`.
        params: Metric with the parameters, or a parameter of the space.
        tokens: Metric with the tokens of a training, or a parameter of the space.

    Raises:
        UnknownNameError: There is no such study or law.
        UsageError: The studies are of different tasks, objectives or spaces, their objective is no
            loss, fewer than six results have these metrics, or `at` is not finite or allows less
            than a token.
    """
    if not (math.isfinite(at) and at > 0.0):
        raise UsageError(f"the operations of a forecast must be finite and > 0, got {at:g}")

    form = laws.get(law)
    space = _common_space(archive, studies)
    runs = _read_runs(archive, studies, params, tokens)
    least = OPERATIONS * float(runs.params.max())
    if at < least:
        raise UsageError(
            f"the operations of a forecast must allow a token of each design, {least:.3g} or more, "
            f"got {at:g}"
        )

    rng = np.random.default_rng(0)
    model = forecast.fit(space, runs, form, rng)
    designs = _designs_for(runs, at)
    expected = model.forecast(designs)
    order = np.argsort(expected.median, kind="stable")[:_CANDIDATES]
    designs = designs.take(order)
    drawn = model.sample(designs, rng, DRAWS)
    best = np.bincount(drawn.argmin(axis=1), minlength=len(designs)) / len(drawn)
    shown = []
    for rank, row in enumerate(order[:SHOWN].tolist()):
        network = designs.networks[rank]
        shown.append(
            DesignForecast(
                network.key,
                texts.to_text(network),
                float(designs.params[rank]),
                float(designs.tokens[rank]),
                float(expected.median[row]),
                float(expected.low[row]),
                float(expected.high[row]),
                float(best[rank]),
            )
        )

    coefficients = dict(zip(form.coefficients, model.law.theta.tolist(), strict=True))
    largest = OPERATIONS * float((runs.params * runs.tokens).max())
    return ScalingDocument(
        studies=list(studies),
        law=law,
        coefficients=coefficients,
        runs=len(runs),
        largest=largest,
        at=at,
        probability=COVERAGE,
        designs=shown,
        next=_choose(model, runs, designs, at, rng),
        flips=_flips(model, designs.take(np.arange(min(COMPARED, len(designs)))), largest, at, rng),
    )


def _common_space(archive: Archive, studies: Sequence[str]) -> Space:
    records = [archive.studies.get(study) for study in studies]
    first = records[0]
    for record in records:
        if record.direction != "minimise":
            raise UsageError(
                f"a scaling law is of a loss, and the study {record.name} maximises its objective"
            )

        differences = {
            "tasks": record.task != first.task,
            "objectives": record.objective != first.objective,
            "spaces": (record.space, record.space_config) != (first.space, first.space_config),
        }
        for name, differs in differences.items():
            if differs:
                raise UsageError(
                    f"the studies {first.name} and {record.name} are of different {name}: "
                    "forecast one of them"
                )

    return space_of(archive, first, NO_COSTS)


def _read_runs(archive: Archive, studies: Sequence[str], params: str, tokens: str) -> ScaledRuns:
    networks = []
    rows = []
    for evaluation in archive.studies.evaluations(studies, curves=False):
        values = _numbers_of(evaluation)
        row = (values.get(params), values.get(tokens), evaluation.value)
        if all(number is not None and math.isfinite(number) and number > 0.0 for number in row):
            networks.append(evaluation.architecture)
            rows.append(row)

    if len(rows) < LEAST_RUNS:
        raise UsageError(
            f"a forecast needs {LEAST_RUNS} results with a loss, {params} and {tokens} above 0, and "
            f"{', '.join(studies)} has {counted(len(rows), 'such result')}: name other metrics"
        )

    columns = np.array(rows, np.float64).T
    return ScaledRuns(networks, columns[0], columns[1], columns[2])


def _numbers_of(evaluation: Evaluation) -> Mapping[str, float]:
    """Return metrics, hyperparameters and parameters of a configuration that are numbers."""
    values = dict(evaluation.hyperparameters)
    if evaluation.architecture.space in CONFIGURATIONS:
        values |= configuration_of(evaluation.architecture)

    numbers = {name: float(value) for name, value in values.items() if is_number(value)}
    return {**numbers, **evaluation.metrics}


def _designs_for(runs: ScaledRuns, flops: float) -> ScaledRuns:
    """Return each design once, with the tokens that operations allow."""
    first: dict[str, int] = {}
    for row, network in enumerate(runs.networks):
        first.setdefault(network.functional_key, row)

    designs = runs.take(np.array(list(first.values())))
    return _scale(designs, flops)


def _scale(designs: ScaledRuns, flops: float) -> ScaledRuns:
    """Return designs with the tokens that operations allow."""
    tokens = flops / (OPERATIONS * designs.params)
    return ScaledRuns(designs.networks, designs.params, tokens, np.empty(0))


def _join(parts: Sequence[ScaledRuns]) -> ScaledRuns:
    networks: list[Architecture] = []
    for part in parts:
        networks += part.networks

    return ScaledRuns(
        networks,
        np.concatenate([part.params for part in parts]),
        np.concatenate([part.tokens for part in parts]),
        np.empty(0),
    )


def _choose(
    model: ScalingModel,
    runs: ScaledRuns,
    designs: ScaledRuns,
    flops: float,
    rng: np.random.Generator,
) -> NextTraining | None:
    longest: dict[str, float] = {}
    for network, tokens in zip(runs.networks, runs.tokens.tolist(), strict=True):
        key = network.functional_key
        longest[key] = max(tokens, longest.get(key, 0.0))

    candidates = _join([_scale(designs, share * flops) for share in SHORTER])
    rows = []
    for row, network in enumerate(candidates.networks):
        if candidates.tokens[row] > longest[network.functional_key]:
            rows.append(row)

    if not rows:
        return None

    candidates = candidates.take(np.array(rows))
    drawn = model.sample(_join([designs, candidates]), rng, DRAWS)
    targets = drawn[:, : len(designs)]
    gains = choice.knowledge_gradients(targets, drawn[:, len(designs) :], model.spread)
    if gains.max() < LEAST_GAIN:
        return None

    costs = OPERATIONS * candidates.params * candidates.tokens
    best = int(np.argmax(gains / costs))
    return NextTraining(
        candidates.networks[best].key,
        float(candidates.tokens[best]),
        float(costs[best]),
        float(-np.expm1(-gains[best])),
    )


def _flips(
    model: ScalingModel,
    designs: ScaledRuns,
    largest: float,
    flops: float,
    rng: np.random.Generator,
) -> list[OrderFlip]:
    scales = np.geomspace(largest, flops, _STEPS).tolist()
    scaled = _join([_scale(designs, scale) for scale in scales])
    drawn = model.sample(scaled, rng, DRAWS).reshape(DRAWS, _STEPS, len(designs))
    flips = []
    for first in range(len(designs)):
        for second in range(first + 1, len(designs)):
            flip = _flip(drawn, scales, designs, first, second)
            if flip.probability >= LEAST_FLIP:
                flips.append(flip)

    return sorted(flips, key=lambda flip: -flip.probability)


def _flip(
    drawn: Array, scales: Sequence[float], designs: ScaledRuns, first: int, second: int
) -> OrderFlip:
    if np.mean(drawn[:, 0, first] < drawn[:, 0, second]) < 0.5:
        first, second = second, first

    behind = np.mean(drawn[:, :, second] < drawn[:, :, first], axis=0)
    passed = np.flatnonzero(behind >= 0.5)
    return OrderFlip(
        ahead=designs.networks[first].key,
        behind=designs.networks[second].key,
        probability=choice.flip_probability(
            drawn[:, 0, first], drawn[:, 0, second], drawn[:, -1, first], drawn[:, -1, second]
        ),
        flops=scales[passed[0]] if len(passed) else None,
    )

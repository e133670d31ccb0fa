"""Prediction of a network's result on a task under a protocol, with an interval and evidence.

    archive predict my_model.py:build --task imagenet-1k --protocol timm/a1_in1k@224

The model is fitted to the archive's own results of the task (`process`), whichever they are:
published results, imported tables, studies. Its fit is kept in a file as long as these results do
not change.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from archive import cache
from archive.agents.prediction.features import Features, features
from archive.agents.prediction.process import (
    BY_NAME,
    COVERAGE,
    DEFAULTS,
    Array,
    LeftOutPredictions,
    ProcessFit,
    ResultInputs,
    ResultProcess,
    fit,
    quantiles,
    rows_of,
    standardised,
)
from archive.agents.prediction.protocol_features import read_protocol
from archive.agents.prediction.stored_features import features_of
from archive.agents.prediction.table import LearnedRows, ResultRow
from archive.architecture.graph import Architecture
from archive.architecture.parameter_operations import CONFIGURATIONS
from archive.errors import UsageError
from archive.queries.results_by_task import TaskResult, results_by_task
from archive.store.protocol_names import ProtocolName
from archive.values import counted, require_at_least

if TYPE_CHECKING:
    from archive.api import Archive

LEAST_NETWORKS = 20
"""Fewest different networks that a prediction learns from."""

LEAST_OF_PROTOCOL = 200
"""Networks under one protocol, whatever the side of the images, that need no other protocols."""

MOST_ROWS = 2000
"""Most results that a prediction learns from: the time is cubic in it."""

KIND = "prediction"


@dataclass(frozen=True)
class SimilarResult:
    """A network like the predicted one, with its result under the most similar protocol.

    Attributes:
        architecture: Key of the network.
        model: Name of the model at its source; null without one.
        protocol: Protocol of the result.
        value: The result.
        similarity: Correlation of the two networks in the model, at most 1.
        evaluation: Id of the evaluation.
    """

    architecture: str
    model: str | None
    protocol: str
    value: float
    similarity: float
    evaluation: str


@dataclass(frozen=True)
class PredictionValidation:
    """Predictions of all results that the model learns from, each family from the others.

    A network without a family is left out alone.

    Attributes:
        families: Number of families.
        rank_correlation: Spearman correlation of predictions and results; null where all are equal.
        median_error: Median of the absolute errors.
        coverage: Share of the results inside of their interval, corrected by other families.
    """

    families: int
    rank_correlation: float | None
    median_error: float
    coverage: float


@dataclass(frozen=True)
class PredictionDocument:
    """The predicted result of a network.

    Attributes:
        architecture: Key of the network.
        task: Name of the task.
        protocol: Name of the protocol.
        metric: The metric; null for the objective.
        value: The median of the prediction.
        low: Lower end of the interval.
        high: Upper end of the interval.
        probability: Probability of the interval.
        results: Number of results that the model learned from.
        networks: Number of their networks.
        of_protocol: Number of these results under the protocol itself.
        validation: How well the model predicts families that it has not seen.
        relatives: The most similar networks, the most similar first.
    """

    architecture: str
    task: str
    protocol: str
    metric: str | None
    value: float
    low: float
    high: float
    probability: float
    results: int
    networks: int
    of_protocol: int
    validation: PredictionValidation
    relatives: list[SimilarResult]


def predict(
    archive: Archive,
    network: Architecture | str,
    task: str,
    protocol: str,
    *,
    metric: str | None = None,
    relatives: int = 5,
    notify: Callable[[str], None] | None = None,
) -> PredictionDocument:
    """Predict the result of a network that need not be in the archive.

    Args:
        archive: The archive whose results the model learns from.
        network: A network, or a key or its prefix; a configuration of parameters stands for the
            network that its model builds.
        task: Name of a task with results.
        protocol: Name of a protocol. It may be new: words that it shares with others count, and
            `@SIDE` at its end is the side of the test images.
        metric: Metric to predict; None for the objective.
        relatives: Most similar networks to name, at most.
        notify: Called with a message before a slow step.

    Raises:
        UnknownNameError: The archive has no such network, task or metric.
        UsageError: Too few networks of the space have results, or `relatives` is negative.
    """
    require_at_least(0, relatives=relatives)
    if isinstance(network, str):
        network = archive.architectures.get(archive.architectures.find(network))

    network = archive.builds.network_of(network)
    results = results_of(archive, task, protocol, metric)
    of_space = [result for result in results if result.space == network.space]
    distinct = len({result.architecture for result in of_space})
    if distinct < LEAST_NETWORKS:
        raise UsageError(
            f"a prediction needs results of {LEAST_NETWORKS} networks, and the task {task} has "
            f"those of {counted(distinct, 'network')} of the space {network.space}: evaluate or "
            "import more"
        )

    return _predict(archive, network, task, protocol, metric, relatives, of_space, notify)


class ResultPredictor(NamedTuple):
    """A model of the results of a task, for queries under one protocol.

    Attributes:
        protocol: The protocol.
        results: The results that it learned from.
        table: They and their features.
        process: The fitted process.
    """

    protocol: str
    results: Sequence[TaskResult]
    table: LearnedRows
    process: ResultProcess

    def queries(self, keys: Sequence[str], described: Mapping[str, Features]) -> ResultInputs:
        """Return networks under the protocol as the process reads them.

        Args:
            keys: Keys of the networks.
            described: Their features, by key.
        """
        recipe = read_protocol(self.protocol)
        return self.table.read([ResultRow(key, recipe, family="") for key in keys], described)

    def predict(
        self, keys: Sequence[str], described: Mapping[str, Features]
    ) -> tuple[Array, Array, Array]:
        """Return the values of networks, and the lower and upper ends of their intervals."""
        return self.process.predict(self.queries(keys, described))


def fit_predictor(
    archive: Archive,
    space: str,
    protocol: str,
    results: Sequence[TaskResult],
    notify: Callable[[str], None] | None = None,
) -> ResultPredictor:
    """Return the model of results of networks of one space, fitted unless its file has the fit.

    Args:
        archive: The archive of the results.
        space: The space.
        protocol: Protocol of the queries.
        results: The results; those count that are most like the protocol (`choose`).
        notify: Called with a message before a slow step.
    """
    learned = choose(results, protocol)
    keys = list(dict.fromkeys(result.architecture for result in learned))
    table = LearnedRows(list(map(row_of, learned)), features_of(archive, space, keys, notify))
    process = ResultProcess(table.inputs, table.values, _fit(archive, table, notify))
    return ResultPredictor(protocol, learned, table, process)


def _predict(
    archive: Archive,
    network: Architecture,
    task: str,
    protocol: str,
    metric: str | None,
    relatives: int,
    results: Sequence[TaskResult],
    notify: Callable[[str], None] | None,
) -> PredictionDocument:
    predictor = fit_predictor(archive, network.space, protocol, results, notify)
    learned = predictor.results
    queries = predictor.queries([network.key], {network.key: features(network)})
    value, low, high = predictor.process.predict(queries)
    similarities = predictor.process.similarities(queries)
    return PredictionDocument(
        architecture=network.key,
        task=task,
        protocol=protocol,
        metric=metric,
        value=float(value[0]),
        low=float(low[0]),
        high=float(high[0]),
        probability=COVERAGE,
        results=len(learned),
        networks=len({result.architecture for result in learned}),
        of_protocol=sum(result.protocol == protocol for result in learned),
        validation=validate(predictor.table, predictor.process.fitted),
        relatives=_relatives(learned, protocol, similarities, relatives),
    )


def results_of(
    archive: Archive, task: str, protocol: str, metric: str | None = None
) -> list[TaskResult]:
    """Return the results of networks that are comparable with those under a protocol.

    Values of different objectives are not. A configuration of parameters is replaced by the network
    that its model builds.

    Raises:
        UnknownNameError: The archive has no such task, or no result of it has the metric.
    """
    objective = ProtocolName.parse(protocol).objective
    results = []
    for group in results_by_task(archive.connection, task, metric):
        if metric is not None or ProtocolName.parse(group.protocol).objective == objective:
            results += [row for row in group.rows if math.isfinite(row.value)]

    return _of_networks(archive, results)


def choose(results: Sequence[TaskResult], protocol: str) -> list[TaskResult]:
    """Return the results that a prediction under a protocol learns from.

    Protocols that share more words come first; where the protocol itself has many networks, whatever
    the side of the images, others are not needed. Equally similar ones are in an order that depends on
    nothing but their ids, so that the first of them are a fair sample.
    """
    recipe = read_protocol(protocol)
    same = [result for result in results if read_protocol(result.protocol).stem == recipe.stem]
    if len({result.architecture for result in same}) >= LEAST_OF_PROTOCOL:
        results = same

    def order(result: TaskResult) -> tuple[int, bytes]:
        shared = len(recipe.words & read_protocol(result.protocol).words)
        return -shared, blake2b(result.evaluation.encode(), digest_size=8).digest()

    return sorted(results, key=order)[:MOST_ROWS]


def row_of(result: TaskResult) -> ResultRow:
    """Return a result as a row of the model."""
    return ResultRow(
        network=result.architecture,
        recipe=read_protocol(result.protocol, result.pretraining or ""),
        family=result.family or result.architecture,
        value=result.value,
    )


def validate(table: LearnedRows, fitted: ProcessFit) -> PredictionValidation:
    """Return how well families are predicted that the model has not seen."""
    from scipy.stats import spearmanr

    transform = BY_NAME[fitted.transform]
    targets, centre, spread = standardised(transform, table.values)
    means = fitted.left_out.means
    residuals = (targets - means) / fitted.left_out.stds
    inside = np.zeros(len(targets), np.bool_)
    families = rows_of(table.families)
    for rows in families:
        others = np.delete(residuals, rows)
        low, high = quantiles(others, 0.5 * (1.0 - COVERAGE))
        inside[rows] = (low <= residuals[rows]) & (residuals[rows] <= high)

    differs = np.ptp(targets) > 0.0 and np.ptp(means) > 0.0
    errors = np.abs(transform.restore(centre + spread * means) - table.values)
    return PredictionValidation(
        families=len(families),
        rank_correlation=float(spearmanr(means, targets).statistic) if differs else None,
        median_error=float(np.median(errors)),
        coverage=float(inside.mean()),
    )


def _of_networks(archive: Archive, results: Sequence[TaskResult]) -> list[TaskResult]:
    """Return results with the networks of configurations of parameters in their places."""
    configurations = {r.architecture for r in results if r.space in CONFIGURATIONS}
    if not configurations:
        return list(results)

    builds = archive.builds.of(configurations)
    networks = archive.architectures.get_many(build.network for build in builds.values())
    replaced = []
    for result in results:
        build = builds.get(result.architecture)
        if build is not None and build.network in networks:
            space = networks[build.network].space
            result = result._replace(architecture=build.network, space=space)

        replaced.append(result)

    return replaced


def _relatives(
    results: Sequence[TaskResult], protocol: str, similarities: np.ndarray, most: int
) -> list[SimilarResult]:
    """Return the most similar networks, each with the result of the most similar protocol."""
    recipe = read_protocol(protocol)

    def likeness(index: int) -> tuple[float, bool, int, str]:
        result = results[index]
        shared = len(recipe.words & read_protocol(result.protocol).words)
        exact = result.protocol == protocol
        return (-round(float(similarities[index]), 9), not exact, -shared, result.evaluation)

    named: dict[str, SimilarResult] = {}
    for index in sorted(range(len(results)), key=likeness):
        result = results[index]
        if len(named) >= most:
            break

        if result.architecture not in named:
            named[result.architecture] = SimilarResult(
                architecture=result.architecture,
                model=result.model,
                protocol=result.protocol,
                value=result.value,
                similarity=float(similarities[index]),
                evaluation=result.evaluation,
            )

    return list(named.values())


def _fit(archive: Archive, table: LearnedRows, notify: Callable[[str], None] | None) -> ProcessFit:
    """Return the fit to a table, from its file if there is one."""
    digest = blake2b(digest_size=16)
    for row in table.rows:
        recipe = f"{row.recipe.stem} {row.recipe.side} {sorted(row.recipe.words)}"
        digest.update(f"{row.network} {recipe} {row.family} {row.value!r}\n".encode())

    place = digest.hexdigest()
    home = archive.connection.settings.home
    arrays = cache.read(KIND, place, home)
    if arrays is not None:
        theta = dict(zip(DEFAULTS, arrays["theta"].tolist(), strict=True))
        return ProcessFit(
            str(arrays["transform"]), theta, LeftOutPredictions(arrays["means"], arrays["stds"])
        )

    if notify is not None:
        notify(f"fitting the model to {counted(len(table.rows), 'result')}, once")

    fitted = fit(table.inputs, table.values, table.families)
    arrays = {
        "theta": np.array([fitted.theta[name] for name in DEFAULTS]),
        "transform": np.array(fitted.transform),
        "means": fitted.left_out.means,
        "stds": fitted.left_out.stds,
    }
    cache.write(KIND, place, arrays, home)
    return fitted

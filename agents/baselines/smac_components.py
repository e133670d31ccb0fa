"""SMAC3's components with one difference each, and the search that combines them.

A module of its own: its classes derive from classes of SMAC3, which is an extra, so that only a
search imports it.

| symbol  | meaning                                                             | shape  |
|---------|---------------------------------------------------------------------|--------|
| X       | configurations as ConfigSpace has them, NaN for inactive parameters | (m, D) |
| mu, s^2 | mean and variance of the forest's trees, of log costs               | (m, 1) |
| eta     | least predicted log cost of an evaluated configuration              | scalar |

Lindauer, Eggensperger, Feurer, Biedenkapp, Deng, Benjamins, Ruhkopf, Sass, Hutter: SMAC3 (2022).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from ConfigSpace import Configuration
from numpy.typing import NDArray
from scipy.special import ndtr
from smac import HyperparameterOptimizationFacade, RunHistory, Scenario
from smac.acquisition.function import EI
from smac.acquisition.maximizer import LocalAndSortedRandomSearch, LocalSearch
from smac.runhistory.dataclasses import TrialInfo
from smac.utils.configspace import convert_configurations_to_array

from archive.agents.baselines.configspace_translation import NativeSpace


@dataclass(frozen=True)
class SmacSettings:
    """Settings of SMAC3's facade for hyperparameters.

    Attributes:
        trees: Number of trees of the forest.
        challengers: Random configurations, of which the ten best begin a local search.
        random: Probability of a random configuration in place of the next best one.
    """

    trees: int
    challengers: int
    random: float


@final
class AllowedImprovement(EI):  # type: ignore[misc, unused-ignore]
    """SMAC3's expected improvement of log costs, among allowed configurations.

    exp(eta) Phi(v) - exp(s^2 / 2 + mu) Phi(v - s), v = (eta - mu) / s

    SMAC3 raises an error where rounding makes an improvement of 1e-323 negative.
    """

    def __init__(self, native: NativeSpace | None = None) -> None:
        """Keep the space that allows configurations; None for all."""
        super().__init__(log=True)
        self.native = native

    def __call__(self, configurations: list[Configuration]) -> NDArray[np.float64]:
        """Return the improvement of configurations, (m, 1); -1 where one is not allowed."""
        values: NDArray[np.float64] = super().__call__(configurations)
        if self.native is not None:
            for row, configuration in enumerate(configurations):
                if not self.native.allows(configuration):
                    values[row] = -1.0

        return values

    def _compute(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        model: Any = self.model
        least: Any = self._eta
        mean, variance = model.predict_marginalized(X)
        deviation = np.sqrt(variance)
        ratio = (least - mean) / deviation
        beyond = np.exp(0.5 * variance + mean) * ndtr(ratio - deviation)
        return np.asarray(np.maximum(np.exp(least) * ndtr(ratio) - beyond, 0.0))


@final
class OrderedLocalSearch(LocalSearch):  # type: ignore[misc, unused-ignore]
    """SMAC3's local search, which is the same in every process.

    SMAC3 takes the starting points from a set of texts, whose order differs between processes.
    """

    def _get_init_points_from_previous_configs(
        self, *arguments: Any, **named: Any
    ) -> list[Configuration]:
        points = super()._get_init_points_from_previous_configs(*arguments, **named)
        return sorted(points, key=repr)


def draw_design(native: NativeSpace, count: int, seed: int) -> Iterator[Configuration]:
    """Yield at most `count` configurations of a scrambled Sobol sequence.

    Configurations that constraints refuse are left out.
    """
    scenario = Scenario(native.configspace, seed=seed, n_trials=4 * count)
    design = HyperparameterOptimizationFacade.get_initial_design(scenario, n_configs=count)
    for configuration in design.select_configurations():
        if native.allows(configuration):
            yield configuration


def search(
    native: NativeSpace,
    observed: Sequence[tuple[Configuration, float]],
    pending: Sequence[Configuration],
    settings: SmacSettings,
    seed: int,
) -> Iterator[Configuration]:
    """Yield the configurations of greatest expected improvement, random ones among them.

    Known configurations may be among them, and the last ones need not be allowed.

    Args:
        native: The space.
        observed: Evaluated configurations with their scores, at least one.
        pending: Configurations without a result.
        settings: Settings of the facade.
        seed: Seed of all random choices.
    """
    facade = HyperparameterOptimizationFacade
    scenario = Scenario(native.configspace, seed=seed)
    history = _history(observed, pending)
    encoder = facade.get_runhistory_encoder(scenario)
    encoder.runhistory = history
    inputs, costs = encoder.transform()
    model = facade.get_model(scenario, n_trees=settings.trees)
    model.train(inputs, costs)

    maximiser = LocalAndSortedRandomSearch(
        native.configspace, challengers=settings.challengers, seed=seed
    )
    maximiser._local_search = OrderedLocalSearch(native.configspace, seed=seed)
    # Thousands of random configurations are ranked first, of which ten begin a local search.
    of_all = AllowedImprovement()
    of_allowed = AllowedImprovement(native)
    maximiser.acquisition_function = of_all
    maximiser._local_search.acquisition_function = of_allowed
    means, _ = model.predict_marginalized(inputs)
    for function in (of_all, of_allowed):
        function.update(model=model, eta=float(means.min()))

    random_design = facade.get_random_design(scenario, probability=settings.random)
    yield from maximiser.maximize(history.get_configs(), random_design=random_design)


def _history(
    observed: Sequence[tuple[Configuration, float]], pending: Sequence[Configuration]
) -> RunHistory:
    """Return evaluations and pending proposals as SMAC3 records them.

    Costs are between 0 and 1: the encoder adds 1e-10 to them, which large ones would absorb.
    """
    scores = np.array([score for _, score in observed])
    spread = np.ptp(scores)
    costs = (scores.max() - scores) / (spread if spread > 0 else 1.0)
    history = RunHistory()
    for number, (configuration, _) in enumerate(observed):
        # Repeated evaluations of a configuration have different seeds.
        history.add(configuration, cost=float(costs[number]), seed=number)

    for configuration in pending:
        history.add_running_trial(TrialInfo(configuration, seed=0))

    return history


def vector_of(configuration: Configuration) -> bytes:
    """Return the key of a configuration: its vector, rounded."""
    vector: bytes = np.round(convert_configurations_to_array([configuration]), 9).tobytes()
    return vector

"""Optimisers with one interface: agents of the archive, Optuna, SMAC3, BoTorch.

| name          | optimiser                                                       | space          |
|---------------|-----------------------------------------------------------------|----------------|
| `optuna-tpe`  | TPESampler with its defaults                                    | define-by-run  |
| `optuna-gp`   | GPSampler with its defaults                                     | flat           |
| `optuna-nsga2`| NSGAIISampler with its defaults                                 | flat           |
| `smac3`       | HPO facade by ask and tell, told the number of queries          | ConfigSpace    |
| `botorch`     | SingleTaskGP on one-hot choices, qLogNoisyEI after ten Sobol    | flat           |
|               | points, maximised by `optimize_acqf_mixed_alternating`          |                |
| others        | the agent of this name                                          | `parameters`   |

Gaussian processes of Optuna and BoTorch need one set of parameters. In a flat space, all parameters
are always suggested; a result is recorded with the central values of the parameters that do not
exist, since their values have no effect. `optuna-tpe` and `smac3` know conditions.

With noise, `smac3` may evaluate a configuration up to three times, as its facade does by default.

With several objectives, scores are in the order of the objectives, and there is no recommendation;
`smac3` and `botorch` have one objective here.

Recommended are: of `optuna-…` the best trial, of `smac3` its incumbent, of `botorch` the evaluated
configuration with the greatest posterior mean.
"""

from __future__ import annotations

import tempfile
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from archive import agents, spaces
from archive.agents.base import History, Observation
from archive.agents.objectives.goals import Goals
from archive.errors import UsageError
from archive.parameters.domains import Choice, Constant, json_text
from archive.parameters.parameter_space import ParameterSpace
from archive.parameters.ranges import Integer
from archive.store.records import Objective

Configuration = Mapping[str, Any]


class Optimiser(ABC):
    """An optimiser that is asked for a configuration, then told its score."""

    @abstractmethod
    def ask(self) -> Configuration:
        """Return the next configuration."""

    @abstractmethod
    def tell(self, scores: Sequence[float]) -> None:
        """Record the scores of the configuration that was asked for, one for each objective."""

    @abstractmethod
    def recommended(self) -> Configuration:
        """Return the configuration that it would deliver now."""


def make(
    name: str,
    space: ParameterSpace,
    seed: int,
    *,
    noisy: bool,
    queries: int = 100,
    objectives: int = 1,
) -> Optimiser:
    """Return an optimiser by its name in the table of the module.

    Args:
        name: Its name.
        space: The space.
        seed: Seed of its random choices.
        noisy: Whether evaluations have noise.
        queries: Number of evaluations; only `smac3` uses it.
        objectives: Number of objectives.

    Raises:
        UsageError: The optimiser has one objective only.
    """
    if name == "optuna-tpe":
        return OptunaTpePeer(space, seed, objectives)

    if name.startswith("optuna-"):
        sampler = _flat_sampler(name, seed, noisy=noisy)
        return OptunaFlatPeer(space, sampler, objectives)

    if objectives > 1 and name in ("smac3", "botorch"):
        raise UsageError(f"{name} has one objective here, got {objectives}")

    if name == "smac3":
        return SmacPeer(space, seed, noisy=noisy, queries=queries)

    if name == "botorch":
        return BotorchPeer(space, seed)

    return AgentPeer(name, space, seed, noisy=noisy, objectives=objectives)


class AgentPeer(Optimiser):
    """An agent; with noise, the recommendation has the greatest posterior mean."""

    def __init__(
        self, name: str, space: ParameterSpace, seed: int, *, noisy: bool, objectives: int
    ) -> None:
        self.space = spaces.get("parameters", parameters=space)
        self.agent = agents.registry.configured(name).make(self.space)
        self.goals = _goals(objectives) if objectives > 1 else None
        self.noisy = noisy
        self.rng = np.random.default_rng(seed)
        self.observations: list[Observation] = []
        self.asked: Any = None

    def ask(self) -> Configuration:
        history = History(tuple(self.observations), goals=self.goals)
        (suggestion,) = self.agent.propose(history, 1, self.rng)
        self.asked = suggestion.architecture
        return self.space.named(self.asked)

    def tell(self, scores: Sequence[float]) -> None:
        number = len(self.observations)
        observation = Observation(
            self.asked,
            score=scores[0],
            id=str(number),
            seed=number if self.noisy else None,
            further=tuple(scores[1:]),
        )
        self.observations.append(observation)

    def recommended(self) -> Configuration:
        from archive.agents.configurations.search import estimate

        scores = np.array([observation.score for observation in self.observations])
        if self.noisy and self.agent.kind != "random":
            networks = [observation.architecture for observation in self.observations]
            estimated = estimate(self.space, self.observations, networks)
            assert estimated is not None, "all configurations are of the space"
            scores = estimated[0]

        return self.space.named(self.observations[int(np.argmax(scores))].architecture)


def _goals(objectives: int) -> Goals:
    """Return objectives that are all to be maximised, and all learnt."""
    named = [Objective(f"score {number}", "maximise") for number in range(objectives)]
    return Goals(tuple(named))


def _study(sampler: Any, objectives: int) -> Any:
    """Return a quiet Optuna study that maximises its objectives."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    return optuna.create_study(directions=["maximize"] * objectives, sampler=sampler)


class OptunaTpePeer(Optimiser):
    """Optuna's TPESampler with its defaults, by define-by-run."""

    def __init__(self, space: ParameterSpace, seed: int, objectives: int) -> None:
        import optuna

        self.study = _study(optuna.samplers.TPESampler(seed=seed), objectives)
        self.space = space
        self.trials: dict[int, Configuration] = {}
        self.trial: Any = None

    def ask(self) -> Configuration:
        self.trial = self.study.ask()
        values: dict[str, Any] = {}
        for parameter in self.space.parameters:
            if parameter.exists(values):
                values[parameter.name] = self._suggest(parameter.name, parameter.domain)

        self.trials[self.trial.number] = values
        return values

    def _suggest(self, name: str, domain: Any) -> Any:
        if isinstance(domain, Constant):
            return domain.value

        if isinstance(domain, Choice):
            if domain.ordered and all(isinstance(option, int | float) for option in domain.options):
                return domain.options[self.trial.suggest_int(name, 0, len(domain.options) - 1)]

            texts = {json_text(option): option for option in domain.options}
            return texts[self.trial.suggest_categorical(name, list(texts))]

        if isinstance(domain, Integer):
            return self.trial.suggest_int(
                name, domain.low, domain.high, step=domain.step, log=domain.log
            )

        return self.trial.suggest_float(name, domain.low, domain.high, log=domain.log)

    def tell(self, scores: Sequence[float]) -> None:
        self.study.tell(self.trial, list(scores))

    def recommended(self) -> Configuration:
        return self.trials[self.study.best_trial.number]


class FlatSpace:
    """All parameters of a space with more than one value, as if all existed.

    Args:
        space: The space.

    Attributes:
        parameters: The parameters.
    """

    def __init__(self, space: ParameterSpace) -> None:
        self.space = space
        self.parameters = [parameter for parameter in space.parameters if parameter.domain.size > 1]

    def configuration(self, values: Configuration) -> Configuration:
        """Return the configuration of values of all parameters: of those that exist."""
        return self.space.complete(values)

    def flatten(self, configuration: Configuration) -> dict[str, Any]:
        """Return the values of all parameters, central ones where one does not exist."""
        values = {}
        for parameter in self.parameters:
            values[parameter.name] = configuration.get(parameter.name, parameter.central)

        return values


def _flat_sampler(name: str, seed: int, *, noisy: bool) -> Any:
    """Return a sampler of Optuna that needs one set of parameters."""
    import optuna

    if name == "optuna-nsga2":
        return optuna.samplers.NSGAIISampler(seed=seed)

    return optuna.samplers.GPSampler(seed=seed, deterministic_objective=not noisy)


class OptunaFlatPeer(Optimiser):
    """A sampler of Optuna on the flat space.

    Optuna records the suggested values. A trial that was asked for is therefore dropped, and a
    complete one is added with the values of `FlatSpace.flatten`.
    """

    def __init__(self, space: ParameterSpace, sampler: Any, objectives: int) -> None:
        import optuna

        from archive.agents.baselines.optuna_distributions import NativeDistributions

        self.study = _study(sampler, objectives)
        self.flat = FlatSpace(space)
        self.native = NativeDistributions(spaces.get("parameters", parameters=space), optuna)
        self.configurations: list[Configuration] = []
        self.scores: list[float] = []

    def ask(self) -> Configuration:
        import optuna

        trial = self.study.ask(self.native.distributions)
        self.study.tell(trial, state=optuna.trial.TrialState.FAIL)
        self.configurations.append(
            self.flat.configuration(self.native.values_of_params(trial.params))
        )
        return self.configurations[-1]

    def tell(self, scores: Sequence[float]) -> None:
        import optuna

        params = self.native.params_of_values(self.flat.flatten(self.configurations[-1]))
        self.study.add_trial(
            optuna.trial.create_trial(
                params=params, distributions=self.native.distributions, values=list(scores)
            )
        )
        self.scores.append(scores[0])

    def recommended(self) -> Configuration:
        return self.configurations[int(np.argmax(self.scores))]


class SmacPeer(Optimiser):
    """SMAC3's facade for hyperparameters, by ask and tell."""

    def __init__(self, space: ParameterSpace, seed: int, *, noisy: bool, queries: int) -> None:
        from smac import HyperparameterOptimizationFacade, Scenario

        from archive.agents.baselines.configspace_translation import NativeParameters

        warnings.simplefilter("ignore")
        self.native = NativeParameters(spaces.get("parameters", parameters=space))
        # SMAC3 writes its history into a folder.
        self.folder = tempfile.TemporaryDirectory()
        scenario = Scenario(
            self.native.configspace,
            output_directory=Path(self.folder.name),
            deterministic=not noisy,
            n_trials=queries,
            seed=seed,
        )
        self.facade = HyperparameterOptimizationFacade(
            scenario, _never_called, logging_level=False, overwrite=True
        )
        self.trial: Any = None

    def ask(self) -> Configuration:
        import joblib

        # Threads of its forest cost more than they save.
        with joblib.parallel_config(backend="sequential"):
            self.trial = self.facade.ask()

        return self.native.decode(self.trial.config)

    def tell(self, scores: Sequence[float]) -> None:
        from smac.runhistory.dataclasses import TrialValue

        self.facade.tell(self.trial, TrialValue(cost=-scores[0]), save=False)

    def recommended(self) -> Configuration:
        return self.native.decode(self.facade.intensifier.get_incumbent())


def _never_called(config: Any, seed: int = 0) -> float:
    raise AssertionError("evaluations are told")


class BotorchPeer(Optimiser):
    """BoTorch's Gaussian process with qLogNoisyEI on the codes of the flat space."""

    initial = 10

    def __init__(self, space: ParameterSpace, seed: int) -> None:
        import torch

        torch.manual_seed(seed)
        torch.set_num_threads(1)
        warnings.simplefilter("ignore")
        self.flat = FlatSpace(space)
        self.configurations: list[Configuration] = []
        self.scores: list[float] = []
        engine = torch.quasirandom.SobolEngine(len(self.flat.parameters), scramble=True, seed=seed)
        self.design = engine.draw(self.initial, dtype=torch.float64)

    def ask(self) -> Configuration:
        number = len(self.scores)
        point = self._place(self.design[number]) if number < self.initial else self._maximise()
        values = {}
        for parameter, code in zip(self.flat.parameters, point.tolist(), strict=True):
            values[parameter.name] = parameter.domain.decode(code)

        self.configurations.append(self.flat.configuration(values))
        return self.configurations[-1]

    def tell(self, scores: Sequence[float]) -> None:
        self.scores.append(scores[0])

    def recommended(self) -> Configuration:
        if len(self.scores) < self.initial:
            return self.configurations[int(np.argmax(self.scores))]

        import torch

        model = self._fit()
        with torch.no_grad():
            means = model.posterior(self._inputs()).mean[:, 0].numpy()

        return self.configurations[int(np.argmax(means))]

    @cached_property
    def _bounds(self) -> Any:
        """Least and greatest codes, (2, D)."""
        import torch

        highs = []
        for parameter in self.flat.parameters:
            nominal = _is_nominal(parameter)
            highs.append(float(parameter.domain.size) - 1.0 if nominal else 1.0)

        return torch.tensor([[0.0] * len(highs), highs], dtype=torch.float64)

    @cached_property
    def _categories(self) -> dict[int, list[float]]:
        """Codes of the choices without an order by column."""
        categories = {}
        for column, parameter in enumerate(self.flat.parameters):
            if _is_nominal(parameter):
                categories[column] = [float(code) for code in range(int(parameter.domain.size))]

        return categories

    @cached_property
    def _grids(self) -> dict[int, list[float]]:
        """Codes of the whole numbers and the ordered options by column."""
        grids = {}
        for column, parameter in enumerate(self.flat.parameters):
            domain = parameter.domain
            if column not in self._categories and np.isfinite(domain.size):
                grids[column] = sorted({domain.encode(value) for value in domain.values()})

        return grids

    def _place(self, point: Any) -> Any:
        """Return the codes of a point of the unit cube, (D,)."""
        codes = point.clone()
        for column, options in self._categories.items():
            codes[column] = options[int(point[column] * len(options))]

        return codes

    def _inputs(self) -> Any:
        """Return the codes of the evaluated configurations, (n, D)."""
        import torch

        rows = []
        for configuration in self.configurations[: len(self.scores)]:
            values = self.flat.flatten(configuration)
            rows.append([p.domain.encode(values[p.name]) for p in self.flat.parameters])

        return torch.tensor(rows, dtype=torch.float64)

    def _fit(self) -> Any:
        import torch
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import SingleTaskGP
        from botorch.models.transforms.input import NumericToCategoricalEncoding
        from gpytorch.mlls import ExactMarginalLogLikelihood
        from torch.nn.functional import one_hot

        inputs = self._inputs()
        encoding = None
        if self._categories:
            counts = {column: len(options) for column, options in self._categories.items()}
            encoders = {}
            for column, count in counts.items():
                encoders[column] = partial(one_hot, num_classes=count)

            encoding = NumericToCategoricalEncoding(inputs.shape[1], counts, encoders)

        scores = torch.tensor(self.scores, dtype=torch.float64)[:, None]
        model = SingleTaskGP(inputs, scores, input_transform=encoding)
        fit_gpytorch_mll(
            ExactMarginalLogLikelihood(model.likelihood, model),
            optimizer_kwargs={"options": {"maxiter": 200}},
        )
        return model

    def _maximise(self) -> Any:
        """Return the codes of greatest acquisition, (D,)."""
        from botorch.acquisition.logei import qLogNoisyExpectedImprovement
        from botorch.optim import optimize_acqf, optimize_acqf_mixed_alternating

        effort: dict[str, int] = {"num_restarts": 10, "raw_samples": 512}
        acquisition = qLogNoisyExpectedImprovement(self._fit(), self._inputs(), prune_baseline=True)
        if not self._categories and not self._grids:
            candidates, _ = optimize_acqf(acquisition, self._bounds, q=1, **effort)
            return candidates[0]

        candidates, _ = optimize_acqf_mixed_alternating(
            acquisition,
            self._bounds,
            discrete_dims=self._grids,
            cat_dims=self._categories,
            **effort,
        )
        return candidates[0]


def _is_nominal(parameter: Any) -> bool:
    return isinstance(parameter.domain, Choice) and not parameter.domain.ordered

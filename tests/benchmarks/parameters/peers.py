"""Optimisers with one interface: agents of the archive, Optuna, BoTorch."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np

from archive import agents, spaces
from archive.agents.base import History, Observation
from archive.parameters.domains import Choice, Constant, json_text
from archive.parameters.parameter_space import ParameterSpace
from archive.parameters.ranges import Integer

Configuration = Mapping[str, Any]


class Optimiser(ABC):
    """An optimiser that is asked for a configuration, then told its score."""

    @abstractmethod
    def ask(self) -> Configuration:
        """Return the next configuration."""

    @abstractmethod
    def tell(self, score: float) -> None:
        """Record the score of the configuration that was asked for."""

    @abstractmethod
    def recommended(self) -> Configuration:
        """Return the configuration that it would deliver now."""


def make(name: str, space: ParameterSpace, seed: int, *, noisy: bool) -> Optimiser:
    """Return an optimiser by name: `optuna-tpe`, `optuna-gp`, `botorch` or an agent."""
    if name.startswith("optuna"):
        return OptunaPeer(name.removeprefix("optuna-"), space, seed)

    if name == "botorch":
        return BotorchPeer(space, seed)

    return AgentPeer(name, space, seed, noisy=noisy)


class AgentPeer(Optimiser):
    """An agent; with noise, the recommendation has the greatest posterior mean."""

    def __init__(self, name: str, space: ParameterSpace, seed: int, *, noisy: bool) -> None:
        self.space = spaces.get("parameters", parameters=space)
        self.agent = agents.registry.configured(name).make(self.space)
        self.noisy = noisy
        self.rng = np.random.default_rng(seed)
        self.observations: list[Observation] = []
        self.asked: Any = None

    def ask(self) -> Configuration:
        (suggestion,) = self.agent.propose(History(tuple(self.observations)), 1, self.rng)
        self.asked = suggestion.architecture
        return self.space.named(self.asked)

    def tell(self, score: float) -> None:
        number = len(self.observations)
        seed = number if self.noisy else None
        self.observations.append(Observation(self.asked, score=score, id=str(number), seed=seed))

    def recommended(self) -> Configuration:
        from archive.agents.configurations.search import estimate

        scores = np.array([observation.score for observation in self.observations])
        if self.noisy and self.agent.kind != "random":
            networks = [observation.architecture for observation in self.observations]
            estimated = estimate(self.space, self.observations, networks)
            assert estimated is not None, "all configurations are of the space"
            scores = estimated[0]

        return self.space.named(self.observations[int(np.argmax(scores))].architecture)


class OptunaPeer(Optimiser):
    """Optuna's samplers with their defaults, by define-by-run."""

    def __init__(self, name: str, space: ParameterSpace, seed: int) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        warnings.simplefilter("ignore")
        samplers = {"tpe": optuna.samplers.TPESampler, "gp": optuna.samplers.GPSampler}
        self.study = optuna.create_study(direction="maximize", sampler=samplers[name](seed=seed))
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

    def tell(self, score: float) -> None:
        self.study.tell(self.trial, score)

    def recommended(self) -> Configuration:
        return self.trials[self.study.best_trial.number]


class BotorchPeer(Optimiser):
    """BoTorch's SingleTaskGP with qLogNoisyEI on codes; candidates as for our agent."""

    def __init__(self, space: ParameterSpace, seed: int) -> None:
        import torch

        from archive.agents.configurations.candidates import Candidates

        torch.manual_seed(seed)
        torch.set_num_threads(1)
        warnings.simplefilter("ignore")
        self.space = space
        self.candidates = Candidates(space)
        self.rng = np.random.default_rng(seed)
        self.codes: list[Any] = []
        self.scores: list[float] = []

    def ask(self) -> Configuration:
        from archive.agents.configurations.history import row_keys

        width = len(self.space)
        known = np.array(self.codes).reshape(len(self.codes), width)
        taken = set(row_keys(known))
        if len(self.scores) < 10:
            (code,) = self.candidates.design(1, known, taken, self.rng)
        else:
            rank = self._acquisition()
            order = np.argsort(-np.array(self.scores))[:20]
            self.candidates.__dict__["listed"] = None
            (code,), _ = self.candidates.search(rank, known[order], taken, 1, self.rng)

        self.codes.append(code)
        return self.space.decode(code)

    def tell(self, score: float) -> None:
        self.scores.append(score)

    def recommended(self) -> Configuration:
        if len(self.scores) < 10:
            return self.space.decode(self.codes[int(np.argmax(self.scores))])

        import torch

        model = self._fit()
        with torch.no_grad():
            means = model.posterior(self._inputs(np.array(self.codes))).mean[:, 0].numpy()

        return self.space.decode(self.codes[int(np.argmax(means))])

    def _inputs(self, codes: Any) -> Any:
        import torch

        from archive.agents.configurations.forest import spread

        return torch.tensor(spread(codes, self.space.option_counts), dtype=torch.float64)

    def _fit(self) -> Any:
        import torch
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import SingleTaskGP
        from gpytorch.mlls import ExactMarginalLogLikelihood

        scores = torch.tensor(self.scores, dtype=torch.float64)[:, None]
        model = SingleTaskGP(self._inputs(np.array(self.codes)), scores)
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        return model

    def _acquisition(self) -> Any:
        import torch
        from botorch.acquisition.logei import qLogNoisyExpectedImprovement

        inputs = self._inputs(np.array(self.codes))
        acquisition = qLogNoisyExpectedImprovement(self._fit(), inputs, prune_baseline=True)

        def rank(codes: Any) -> Any:
            with torch.no_grad():
                parts: list[Any] = []
                for block in torch.split(self._inputs(codes), 500):
                    parts.append(acquisition(block[:, None]).numpy())

                return np.concatenate(parts)

        return rank

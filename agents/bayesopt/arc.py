"""Arc: joint search of architecture and conditional hyperparameters (Swersky et al., 2014).

| setting   | default                 | `preset="paper"` | why                                                 |
|-----------|-------------------------|------------------|-----------------------------------------------------|
| tied      | yes                     | no               | 60 observations do not identify 48 hyperparameters  |
| burn_in   | 20 sweeps               | 100              | the chain starts from the best of 21 draws          |
| transform | `compress-below-median` | `standardise`    | low scores carry little information about high ones |

A sweep of slice sampling updates every hyperparameter once. The paper continues its chain by 25
steps from one trial to the next; here a proposal is a function of the history alone, so that every
proposal starts a new chain.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import final

import numpy as np

from archive.agents.acquisition import functions as acquisitions
from archive.agents.base import Agent, AgentInfo, History, Suggestion, check_count, keys_of
from archive.agents.baselines.random_search import samples as draw_samples
from archive.agents.configurations.domain import ConfigurationDomain
from archive.agents.encodings import Perceptrons
from archive.agents.joint.domain import PairDomain
from archive.agents.surrogates import outcome_transforms
from archive.agents.surrogates.base import Array, Posterior
from archive.agents.surrogates.gp.conditional import FittedConditional, learn, learn_separately
from archive.agents.surrogates.gp.slice_sampling import SamplingSchedule
from archive.agents.surrogates.outcome_transforms import Scale
from archive.architecture.operations import MLP
from archive.errors import InvalidArchitectureError, UnknownNameError, UsageError
from archive.kernels.covariance.arc import ArcKernel, CodeKernel, LinearKernel, PaddedKernel
from archive.spaces.base import Space
from archive.spaces.joint import joint_space_of
from archive.spaces.parameters import Parameters
from archive.values import require_at_least

Posteriors = Callable[[Array], Posterior]

MODELS = ("arc", "separate", "padded", "linear")

_RANDOM = 1000
_BEST = 8
_VARIATIONS = 25
"""Numbers of candidates: random ones, best ones that are varied in each round, and variations of
each of these."""
_SCALES = (0.3, 0.2, 0.1, 0.1, 0.05, 0.05, 0.03, 0.02)
_CHECKED = 60
"""Number of ranked configurations checked for a new one within the limits of the space."""


@dataclass(frozen=True)
class ArcPreset:
    """Values of the settings that are None."""

    tied: bool
    burn_in: int
    transform: str


PRESETS = {
    "default": ArcPreset(True, 20, "compress-below-median"),
    "paper": ArcPreset(False, 100, "standardise"),
}


@final
class Arc(Agent):
    """Bayesian optimisation of conditional parameters, by the Arc kernel.

    On the space `parameters`, a configuration is searched as it is. On `mlp`, the networks are
    chains of up to five hidden layers, trained with the hyperparameters of the suggestion
    (`archive.trainer.fit.hyperparameters`). With parameters beside the networks, these take the
    place of the training hyperparameters, and the networks may be of any space with decisions
    (`archive.agents.joint.domain`). The first suggestions are random. Chains of other agents count
    as trained by the protocol. Other networks, and evaluations with hyperparameters outside the
    domain, are ignored.

    A network is proposed once, whatever its hyperparameters, as by every agent. If the network of
    the best configuration is known, one layer gets a few more or fewer units.

    Args:
        space: `parameters`, `mlp`, or networks with parameters beside them; depth 0 is left out
            where the space requires a hidden layer.
        n_random: Number of usable evaluations before the first of the model.
        preset: `default` or `paper`; the following settings have its values where they are None.
        model: `arc`, or a baseline of the poster: `separate` (a Gaussian process for each depth),
            `padded` (absent values are drawn at random) or `linear`.
        activation: Of `mlp`: activation of the hidden layers, or `any`: one for each layer, searched with the
            rest.
        acquisition: `ei` (the poster's), `ucb` or `pi`.
        samples: Number of hyperparameter samples to average over.
        burn_in: Sweeps before the first sample.
        thin: Sweeps between samples.
        tied: Whether a parameter has the same hyperparameters in every layer.
        transform: Outcome transform, applied to scores before learning.

    Raises:
        UnknownNameError: No preset, model, acquisition or transform has this name.
        UsageError: A setting is out of range, or the space is another one.
    """

    kind = "arc"
    info = AgentInfo(
        summary="Gaussian process with the Arc kernel on architecture and training hyperparameters",
        preset="length scales for every layer, a longer Markov chain",
        paper="Swersky et al., 2014 (Raiders of the Lost Architecture)",
        cost="O(n^3) a set of hyperparameters",
        when="joint search of depth, widths, learning rate and dropout",
        spaces=("mlp", "parameters"),
    )
    joint = True

    def __init__(
        self,
        space: Space,
        n_random: int = 10,
        preset: str = "default",
        model: str = "arc",
        activation: str = "relu",
        acquisition: str = "ei",
        samples: int = 10,
        burn_in: int | None = None,
        thin: int = 1,
        tied: bool | None = None,
        transform: str | None = None,
    ) -> None:
        super().__init__(space)
        self._domain: Perceptrons | ConfigurationDomain | PairDomain
        joint = joint_space_of(space)
        if joint is not None:
            self._domain = PairDomain(joint, activation)
        elif isinstance(space, Parameters):
            self._domain = ConfigurationDomain(space)
        else:
            self._domain = Perceptrons(space, activation)

        for setting, name, choices in (("preset", preset, PRESETS), ("model", model, MODELS)):
            if name not in choices:
                raise UnknownNameError(f"{setting} of arc", name, choices)

        if model == "separate" and space.name != MLP.name:
            raise UsageError(
                f"the model separate needs a depth, which the space {space.name} lacks"
            )

        values = PRESETS[preset]
        sweeps = values.burn_in if burn_in is None else burn_in
        require_at_least(1, n_random=n_random, samples=samples, thin=thin)
        require_at_least(0, burn_in=sweeps)
        self.n_random = n_random
        self.preset = preset
        self.model = model
        self.activation = activation
        self.acquisition = acquisition
        self.samples = samples
        self.burn_in = burn_in
        self.thin = thin
        self.tied = tied
        self.transform = transform
        self._schedule = SamplingSchedule(samples, sweeps, thin)
        self._tied = values.tied if tied is None else tied
        self._transform = outcome_transforms.get(
            values.transform if transform is None else transform
        )
        self._acquisition = acquisitions.get_marginal(self.kind, acquisition)

    def propose(self, history: History, n: int, rng: np.random.Generator) -> list[Suggestion]:
        """See `Agent.propose`."""
        check_count(n)
        observed = []
        for entry in history.usable:
            codes = self._domain.encode(entry.architecture, entry.hyperparameters)
            if codes is not None:
                observed.append((codes, entry.score))

        pending = []
        for proposal in history.pending:
            codes = self._domain.encode(proposal.architecture, proposal.hyperparameters)
            if codes is not None:
                pending.append(codes)

        taken = set(history.known)
        missing = self.n_random - len(observed) - len(pending)
        suggestions = self._random(min(n, max(missing, 0) if observed else n), taken, rng)
        if observed and len(suggestions) < n:
            pending += [self._encode(suggestion) for suggestion in suggestions]
            taken |= keys_of(suggestions)
            suggestions += self._model(observed, pending, n - len(suggestions), taken, rng)

        # Networks that remain, if any, are outside the domain.
        taken |= keys_of(suggestions)
        return [*suggestions, *draw_samples(self.space, n - len(suggestions), taken, rng)]

    def _random(self, n: int, taken: Collection[str], rng: np.random.Generator) -> list[Suggestion]:
        suggestions: dict[str, Suggestion] = {}
        drawn = self._domain.sample(n + _CHECKED, rng) if n else ()
        for codes in drawn:
            if len(suggestions) == n:
                break

            suggestion = self._new(codes, {*taken, *suggestions})
            if suggestion is not None:
                suggestions[suggestion.architecture.functional_key] = suggestion

        return list(suggestions.values())

    def _model(
        self,
        observed: Sequence[tuple[Array, float]],
        pending: Sequence[Array],
        n: int,
        taken: Collection[str],
        rng: np.random.Generator,
    ) -> list[Suggestion]:
        codes = np.array([codes for codes, _ in observed])
        scores = np.array([score for _, score in observed])
        scale = self._transform.learn(scores)
        model = self._learn(codes, scale.standardise(scores), rng)
        if pending:
            model = model.hallucinate(np.array(pending))

        starts = codes[np.argsort(-scores, kind="stable")[:_BEST]]
        suggestions: list[Suggestion] = []
        taken = set(taken)
        while len(suggestions) < n:
            suggestion = self._best(partial(_posterior, model, scale), starts, taken, rng)
            if suggestion is None:
                break

            suggestions.append(suggestion)
            taken.add(suggestion.architecture.functional_key)
            model = model.hallucinate(self._encode(suggestion)[None])

        return suggestions

    def _learn(self, codes: Array, values: Array, rng: np.random.Generator) -> FittedConditional:
        kernel = self._kernel(int(rng.integers(2**31)))
        if self.model == "separate":
            return learn_separately(kernel, codes, values, self._schedule, rng, self._domain.depth)

        return learn(kernel, codes, values, self._schedule, rng)

    def _kernel(self, seed: int) -> CodeKernel:
        choices = self._domain.option_counts
        kinds = list(dict.fromkeys(self._domain.kinds))
        groups = (
            [kinds.index(kind) for kind in self._domain.kinds]
            if self._tied
            else list(range(len(choices)))
        )
        if self.model == "arc":
            return ArcKernel(groups, choices)

        return (
            LinearKernel(choices, seed)
            if self.model == "linear"
            else PaddedKernel(groups, choices, seed)
        )

    def _best(
        self, posterior: Posteriors, starts: Array, taken: Collection[str], rng: np.random.Generator
    ) -> Suggestion | None:
        pool = np.vstack([self._domain.sample(_RANDOM, rng), starts])
        ranks = self._acquisition.rank(posterior(pool), rng)
        for step in _SCALES:
            order = np.argsort(-ranks, kind="stable")[:_BEST]
            varied = self._domain.vary(np.repeat(pool[order], _VARIATIONS, axis=0), step, rng)
            pool = np.vstack([pool, varied])
            ranks = np.concatenate([ranks, self._acquisition.rank(posterior(varied), rng)])

        for index in np.argsort(-ranks, kind="stable")[:_CHECKED]:
            suggestion = self._new(pool[index], taken)
            if suggestion is not None:
                return self._predict(suggestion, posterior, rng)

        return None

    def _predict(
        self, suggestion: Suggestion, posterior: Posteriors, rng: np.random.Generator
    ) -> Suggestion:
        """Return the suggestion with the posterior of exactly its network and hyperparameters."""
        prediction = posterior(self._encode(suggestion)[None])
        rank = float(self._acquisition.rank(prediction, rng)[0])
        expected = prediction.in_scores()
        mean = float(expected.mean[0])
        std = float(expected.std[0])
        return replace(suggestion, acquisition=self._acquisition.value(rank), mean=mean, std=std)

    def _new(self, codes: Array, taken: Collection[str]) -> Suggestion | None:
        """Return a configuration as a suggestion, with other units if its network is known.

        Returns:
            None for a configuration beyond the limits of the space, or without an unknown
            neighbour.
        """
        for other in self._domain.renew(codes):
            try:
                architecture, hyperparameters = self._domain.decode(other)
            except InvalidArchitectureError:
                return None

            if not self.space.contains(architecture):
                return None

            if architecture.functional_key not in taken:
                return Suggestion(architecture, hyperparameters=hyperparameters)

        return None

    def _encode(self, suggestion: Suggestion) -> Array:
        codes = self._domain.encode(suggestion.architecture, suggestion.hyperparameters)
        assert codes is not None, "a suggestion outside the domain"
        return codes


def _posterior(model: FittedConditional, scale: Scale, codes: Array) -> Posterior:
    """Return the posterior of the transformed scores of (m, D) codes."""
    standardised = model.posterior(codes)
    return Posterior.of_standardised(
        scale, standardised.means, standardised.variances, standardised.best
    )

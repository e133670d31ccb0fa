"""NASBOT: Bayesian optimisation with optimal transport distances (Kandasamy et al., 2018).

| part            | paper                                        | here                                          |
|-----------------|----------------------------------------------|-----------------------------------------------|
| distance d      | program (3), appendix A.3                    | `archive.kernels.distances.otmann`            |
| covariance      | eq. (4)                                      | `kernels.covariance.base.nasbot_covariance`   |
| hyperparameters | averaged over posterior samples, section 4.1 | `agents.surrogates.gp.slice_sampling`         |
| acquisition     | expected improvement, eq. (2)                | `agents.acquisition.functions`, its logarithm |
| optimiser       | evolution, section 4.2 and appendix B.2      | `agents.acquisition.evolution`                |
| pending         | hallucinated (Ginsbourger et al., 2011)      | at their posterior means, one by one          |
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from archive.agents.acquisition import functions as acquisitions
from archive.agents.acquisition.evolution import Candidate, best_new, evaluations_at, evolve
from archive.agents.base import Agent, AgentInfo, History, Suggestion, check_count, first_of_pool
from archive.agents.baselines.random_search import Rand, samples
from archive.agents.constraints.feasibility import add_feasibility, default_slacks
from archive.agents.surrogates.base import Array, Fitted, Surrogate
from archive.agents.surrogates.gp.distance import DistanceGP
from archive.agents.surrogates.gp.slice_sampling import SamplingSchedule, SliceSampling
from archive.architecture.graph import Architecture
from archive.architecture.networks import architectures_of
from archive.kernels.covariance.base import nasbot_covariance
from archive.kernels.distances.otmann import OTMANN
from archive.kernels.gram import Gram
from archive.spaces.base import Space
from archive.values import require_at_least


class Nasbot(Agent):
    """Gaussian process with the covariance of eq. (4), with an acquisition maximised by evolution.

    The space's initial pool comes first. Then every suggestion maximises the acquisition given all
    finished evaluations, with pending proposals fantasised at their posterior mean, so that
    proposals are possible at any time. While no evaluation is finished, suggestions are
    RAND's.

    Hyperparameters have a log-uniform prior (`surrogates.gp.slice_sampling`).

    Args:
        space: The search space; OTMANN must be defined on its networks.
        n_initial: Number of evaluations of the pool before the first of the model, by default the
            paper's ten; observations of any origin count.
        acquisition: `ei` (the paper's), `ucb` or `pi`.
        samples: Number of hyperparameter samples to average over.
    """

    kind = "nasbot"
    info = AgentInfo(
        summary="Gaussian process on optimal transport distances of networks, EI by evolution",
        paper="Kandasamy et al., 2018 (NASBOT)",
        cost="O(n^3) a hyperparameter sample, and a transport problem a pair of networks",
        when="free-form networks, evaluations of minutes or hours",
    )

    uses_constraints = True
    knows_values = False

    def __init__(
        self, space: Space, n_initial: int = 10, acquisition: str = "ei", samples: int = 10
    ) -> None:
        super().__init__(space)
        require_at_least(0, n_initial=n_initial)
        require_at_least(1, samples=samples)
        self.n_initial = n_initial
        self.acquisition = acquisition
        self.samples = samples
        self._acquisition = acquisitions.get_marginal(self.kind, acquisition)

    @cached_property
    def _gram(self) -> Gram[Any]:
        """Cache of distances: it makes later calls faster and changes none of their results."""
        return Gram(OTMANN())

    @cached_property
    def _surrogate(self) -> Surrogate:
        sampling = SliceSampling(SamplingSchedule(self.samples))
        return DistanceGP(self._gram, nasbot_covariance(), sampling)

    @cached_property
    def _slacks(self) -> Surrogate:
        return default_slacks(self.space)

    @property
    def grams(self) -> tuple[Gram[Any], ...]:
        """See `Agent.grams`."""
        return (self._gram,)

    def propose(self, history: History, n: int, rng: np.random.Generator) -> list[Suggestion]:
        """See `Agent.propose`."""
        check_count(n)
        suggestions = first_of_pool(self.space, history, self.n_initial, n, rng)
        if len(suggestions) == n:
            return suggestions

        history = history.with_pending(suggestions)
        if not history.usable:
            return [*suggestions, *Rand(self.space, 0).propose(history, n - len(suggestions), rng)]

        model = self._learn(history, rng)
        while len(suggestions) < n:
            choice = self._choose(history, model, rng)
            if choice is None:
                # Evolution may reach a part of the space only: the remaining networks are drawn at
                # random.
                return [
                    *suggestions,
                    *samples(self.space, n - len(suggestions), history.known, rng),
                ]

            suggestions.append(choice)
            history = history.with_pending([choice])
            model = model.hallucinate([choice.architecture])

        return suggestions

    def _learn(self, history: History, rng: np.random.Generator) -> Fitted:
        networks = architectures_of(history.usable)
        surrogate = self._surrogate.fit(networks, history.scores, rng, history.variances)
        fitted = add_feasibility(surrogate, history, networks, self._slacks, rng)
        return fitted.hallucinate(architectures_of(history.pending))

    def _choose(
        self, history: History, model: Fitted, rng: np.random.Generator
    ) -> Suggestion | None:
        def rank(architectures: Sequence[Architecture]) -> Array:
            return self._acquisition.rank(model.posterior(architectures), rng)

        start = [
            *self.space.initial_pool(rng),
            *filter(self.space.contains, history.known.values()),
        ]
        t = len(history.usable) + len(history.pending)
        ranked = evolve(
            self.space,
            start,
            rank,
            evaluations_at(t),
            rng,
            logarithmic=self._acquisition.logarithmic,
        )
        best = best_new(ranked, history.known)
        return None if best is None else self._suggest(best.candidate, best.rank, model)

    def _suggest(self, candidate: Candidate, rank: float, model: Fitted) -> Suggestion:
        expected = model.posterior([candidate.architecture]).in_scores()
        return Suggestion(
            candidate.architecture,
            acquisition=self._acquisition.value(rank),
            mean=float(expected.mean[0]),
            std=float(expected.std[0]),
            parent=candidate.parent,
            operations=candidate.operations,
        )

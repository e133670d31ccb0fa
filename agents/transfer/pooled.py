"""Pooled transfer, a baseline: one surrogate for the evaluations of a task and its sources.

| symbol | meaning                                                                     | shape  |
|--------|-----------------------------------------------------------------------------|--------|
| y      | scores of the target task, transformed, of mean 0 and standard deviation 1  | (n,)   |
| y'     | scores of each source task, transformed alike by themselves                 | (n',)  |

The surrogate is fitted to (y, y') without the task as an input. It assumes that the tasks rank
networks alike, whereas `archive.agents.transfer.coordinator` estimates a correlation. The first
`FIRST` proposals maximise the posterior mean of a surrogate of the sources alone, because fewer
than `FIRST` scores cannot be standardised.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from archive.agents.acquisition.candidate_generators import CandidateGenerator
from archive.agents.base import History, Suggestion
from archive.agents.observations import scores_of
from archive.agents.surrogates.base import Array, Fitted, Posterior, Surrogate
from archive.agents.surrogates.transformed import OutcomeTransformed
from archive.agents.transfer.source_model import group_sources
from archive.agents.transfer.source_tasks import too_little
from archive.architecture.graph import Architecture
from archive.architecture.networks import architectures_of, functional_forms
from archive.spaces.base import Space

FIRST = 5
"""Evaluations before the first fit to the target's scores."""


@final
class PooledSources:
    """Use of the source studies of a space by one pooled surrogate.

    Args:
        space: The space that the agent searches; sources of other spaces are ignored.
        surrogate: The agent's surrogate.
    """

    def __init__(self, space: Space, surrogate: OutcomeTransformed) -> None:
        self.space = space
        self.surrogate = surrogate

    def suggest_first(
        self, history: History, generator: CandidateGenerator, n: int, rng: np.random.Generator
    ) -> tuple[list[Suggestion], int | None]:
        """See `archive.agents.transfer.coordinator.Transfer.suggest_first`."""
        networks, values = self._pool(history)
        if not networks:
            return [], None

        model = self.surrogate.surrogate.fit(networks, values, rng)
        missing = FIRST - len(history.usable) - len(history.pending)

        def rank(candidates: Sequence[Architecture]) -> Array:
            return model.posterior(functional_forms(candidates)).mean

        ranked = generator.candidates(history, rank, min(missing, n), rng) if missing > 0 else []
        suggestions = []
        for best in ranked:
            network = best.candidate.architecture
            suggestions.append(Suggestion(network, parent=best.candidate.parent))

        return suggestions, FIRST

    def with_sources(self, cold: Surrogate, history: History) -> Surrogate:
        """Return the surrogate of a history, pooled with its usable sources, if there are any."""
        networks, values = self._pool(history)
        if not networks:
            return cold

        return OutcomeTransformed(
            PooledSurrogate(self.surrogate.surrogate, tuple(networks), values),
            self.surrogate.transform,
        )

    def _pool(self, history: History) -> tuple[list[Architecture], Array]:
        """Return the networks of all usable sources, and y'."""
        networks: list[Architecture] = []
        values: list[Array] = []
        for group in group_sources(history.sources):
            if group.space != self.space.name or too_little(*group.sources):
                continue

            observations = group.sample()
            scores = scores_of(observations)
            networks += functional_forms(architectures_of(observations))
            values.append(self.surrogate.transform.learn(scores).standardise(scores))

        return networks, np.concatenate(values) if values else np.empty(0)


@final
class PooledSurrogate(Surrogate):
    """A surrogate fitted to standardised scores of a task and of its sources together.

    Args:
        surrogate: The surrogate.
        networks: Networks of the sources.
        values: (n',) float64: y'.
    """

    def __init__(
        self, surrogate: Surrogate, networks: tuple[Architecture, ...], values: Array
    ) -> None:
        self.surrogate = surrogate
        self.networks = networks
        self.values = values

    def fit(
        self,
        architectures: Sequence[Architecture],
        scores: Array,
        rng: np.random.Generator,
        variances: Array | None = None,
    ) -> FittedPooled:
        """See `Surrogate.fit`."""
        together = [*architectures, *self.networks]
        if variances is not None:
            variances = np.concatenate([variances, np.zeros(len(self.values))])

        pooled = np.concatenate([scores, self.values])
        fitted = self.surrogate.fit(together, pooled, rng, variances)
        return FittedPooled(fitted, float(scores.max()))


@final
@dataclass(frozen=True, eq=False)
class FittedPooled(Fitted):
    """A fitted `PooledSurrogate`.

    Attributes:
        fitted: The surrogate of all tasks.
        best: The incumbent's y among evaluations and fantasies of the target task.
    """

    fitted: Fitted
    best: float

    def posterior(self, architectures: Sequence[Architecture], *, joint: bool = False) -> Posterior:
        """See `Fitted.posterior`."""
        inner = self.fitted.posterior(architectures, joint=joint)
        return replace(inner, best=np.full(len(inner.means), self.best))

    def hallucinate(self, architectures: Sequence[Architecture]) -> FittedPooled:
        """See `Fitted.hallucinate`."""
        if len(architectures) == 0:
            return self

        best = max(self.best, float(self.fitted.posterior(architectures).mean.max()))
        return FittedPooled(self.fitted.hallucinate(architectures), best)

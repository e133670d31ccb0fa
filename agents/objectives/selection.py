"""Suggestions for several objectives: the networks of greatest expected hypervolume improvement.

    history -> a surrogate for each learnt objective, exact values of the known ones
            -> candidates ranked by log EHVI over the front of results
            (`archive.agents.objectives.front`) and pending
               proposals, plus log PoF, the probability that they meet the constraints of the study
               (`archive.agents.constraints.feasibility`)
            -> one by one, each selected network a point of the front at its expected scores

The posterior of each surrogate is taken in score units (`Posterior.in_scores`), so that volumes
have the units of the objectives whatever outcome transform an agent has. Learnt objectives are
modelled independently.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from archive.agents.acquisition.ehvi import LogEhvi, free_boxes
from archive.agents.acquisition.evolution import Rank, Ranked, best_first
from archive.agents.base import History, Suggestion
from archive.agents.constraints.feasibility import SlackModels
from archive.agents.objectives.front import estimate_front
from archive.agents.objectives.goals import Goals
from archive.agents.surrogates.base import Array, Fitted, Posterior, Surrogate
from archive.architecture.graph import Architecture
from archive.architecture.networks import architectures_of, functional_forms, take

if TYPE_CHECKING:
    from archive.agents.bayesopt.model_based import Method


def choose(
    method: Method, slacks: Surrogate, history: History, n: int, rng: np.random.Generator
) -> list[Suggestion]:
    """Return up to n suggestions for the goals of a history.

    Args:
        method: Configuration of the agent; its acquisition and batch rule are for one objective,
            and not used.
        slacks: Model of the measured quantities of constraints.
        history: A history with goals. At least one observation has all objectives.
        n: Most networks to return.
        rng: Source of randomness.
    """
    assert history.goals is not None
    models = ObjectiveModels.fit(method, slacks, history, history.goals, rng)
    pending = architectures_of(history.pending)
    front, reference = estimate_front(history, models.fitted, posterior=method.repeats)
    # Whether to search for the first result that meets the constraints, by models of measured
    # quantities.
    searching = bool(models.slacks.fitted) and not len(front)
    front = np.vstack([front, models.expect(pending)])
    models = models.hallucinate(pending)

    rank = models.feasible if searching else models.ranking(front, reference)
    ranked = method.source.candidates(
        history, rank, max(method.shortlist, n), rng, logarithmic=True
    )
    if method.has_many(history):
        # Among thousands of candidates, only the promising ones had an exact posterior.
        ranked = _sort(ranked, rank)

    suggestions: list[Suggestion] = []
    while ranked and len(suggestions) < n:
        best, *ranked = ranked
        network = best.candidate.architecture
        suggestions.append(_suggestion(best, models))
        if len(suggestions) < n and ranked:
            front = np.vstack([front, models.expect([network])])
            models = models.hallucinate([network])
            rank = models.feasible if searching else models.ranking(front, reference)
            ranked = _sort(ranked, rank)

    return suggestions


def _sort(candidates: Sequence[Ranked], rank: Rank) -> list[Ranked]:
    """Return candidates by their rank, the best first."""
    if not candidates:
        return []

    ranks = rank(architectures_of(candidates))
    return best_first(map(Ranked.with_rank, candidates, ranks.tolist()))


@dataclass(frozen=True)
class ObjectiveModels:
    """Fitted surrogates of the learnt objectives, with the functions of the known ones.

    Attributes:
        goals: The objectives.
        fitted: Position of a learnt objective to its surrogate.
        slacks: Models of the measured quantities of constraints.
    """

    goals: Goals
    fitted: dict[int, Fitted]
    slacks: SlackModels

    @classmethod
    def fit(
        cls,
        method: Method,
        slacks: Surrogate,
        history: History,
        goals: Goals,
        rng: np.random.Generator,
    ) -> ObjectiveModels:
        """Fit the surrogate of a method to each learnt objective; sources inform the first one."""
        scores = goals.scores(history.usable)
        networks = history.inputs
        fitted = {}
        for position in goals.learnt:
            rows = np.flatnonzero(np.isfinite(scores[:, position]))
            surrogate = method.model(history, transfers=not position)
            variances = None
            if not position and history.variances is not None:
                # Only the first objective is projected to whole trainings.
                variances = history.variances[rows]

            inputs = take(networks, rows)
            fitted[position] = surrogate.fit(inputs, scores[rows, position], rng, variances)

        return cls(goals, fitted, SlackModels.fit(slacks, history, rng))

    def hallucinate(self, architectures: Sequence[Architecture]) -> ObjectiveModels:
        """Return the models conditioned on fantasies of networks; see `Fitted.hallucinate`."""
        functional = functional_forms(architectures)
        fitted = {}
        for position, model in self.fitted.items():
            fitted[position] = model.hallucinate(functional)

        return replace(self, fitted=fitted, slacks=self.slacks.hallucinate(functional))

    def posteriors(self, architectures: Sequence[Architecture]) -> list[Posterior | Array]:
        """Return the arguments of `LogEhvi`: posteriors in score units, values if known."""
        values = self.goals.known_scores(architectures)
        functional = functional_forms(architectures)
        posteriors: list[Posterior | Array] = []
        for position in range(len(self.goals.objectives)):
            if position in self.fitted:
                posteriors.append(self.fitted[position].posterior(functional).in_scores())
            else:
                posteriors.append(values[:, position])

        return posteriors

    def ranking(self, front: Array, reference: Array) -> Rank:
        """Return the function log (EHVI PoF) of networks over a front (n, M) and r (M,)."""
        gain = LogEhvi(*free_boxes(front, reference))
        return lambda architectures: (
            gain(self.posteriors(architectures)) + self.feasible(architectures)
        )

    def feasible(self, architectures: Sequence[Architecture]) -> Array:
        """Return log PoF of networks: (m,) float64."""
        return self.slacks.log_probability(architectures)

    def expect(self, architectures: Sequence[Architecture]) -> Array:
        """Return expected scores of at most m networks: (k, M) float64, k <= m.

        Networks of unknown cost, and networks with a probability of feasibility below 1/2, are left
        out.
        """
        probable = self.feasible(architectures) >= np.log(0.5)
        architectures = take(architectures, np.flatnonzero(probable))
        if not architectures:
            return np.empty((0, len(self.goals.objectives)))

        columns = []
        for values in self.posteriors(architectures):
            columns.append(values.mean if isinstance(values, Posterior) else values)

        scores: Array = np.stack(columns, axis=1)
        return scores[np.isfinite(scores).all(axis=1)]


def _suggestion(ranked: Ranked, models: ObjectiveModels) -> Suggestion:
    first = models.posteriors([ranked.candidate.architecture])[0]
    assert isinstance(first, Posterior)
    return Suggestion(
        ranked.candidate.architecture,
        acquisition=float(np.exp(ranked.rank)),
        mean=float(first.mean[0]),
        std=float(first.std[0]),
        parent=ranked.candidate.parent,
        operations=ranked.candidate.operations,
        task_correlations=models.fitted[0].task_correlations(),
    )

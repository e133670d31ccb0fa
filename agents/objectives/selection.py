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

from archive.agents.acquisition.evolution import Rank, Ranked
from archive.agents.base import History, Suggestion
from archive.agents.constraints.feasibility import SlackModels
from archive.agents.objectives.decomposition import free_boxes
from archive.agents.objectives.ehvi import LogEhvi
from archive.agents.objectives.front import estimated_front
from archive.agents.objectives.goals import Goals
from archive.agents.surrogates.base import Array, Fitted, Posterior, Surrogate
from archive.architecture.graph import Architecture

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
    pending = [one.architecture for one in history.pending]
    front, reference = estimated_front(history, models.fitted, posterior=method.repeats)
    # Whether to search for the first result that meets the constraints, by models of measured
    # quantities.
    searching = bool(models.slacks.fitted) and not len(front)
    front = np.vstack([front, models.expected(pending)])
    models = models.hallucinate(pending)

    rank = models.feasible if searching else models.ranking(front, reference)
    ranked = method.source.candidates(
        history, rank, max(method.shortlist, n), rng, logarithmic=True
    )
    if method.has_many(history):
        # Among thousands of candidates, only the promising ones had an exact posterior.
        ranked = _ranked(ranked, rank)

    chosen: list[Suggestion] = []
    while ranked and len(chosen) < n:
        best, *ranked = ranked
        network = best.candidate.architecture
        chosen.append(_suggestion(best, models))
        if len(chosen) < n and ranked:
            front = np.vstack([front, models.expected([network])])
            models = models.hallucinate([network])
            rank = models.feasible if searching else models.ranking(front, reference)
            ranked = _ranked(ranked, rank)

    return chosen


def _ranked(candidates: Sequence[Ranked], rank: Rank) -> list[Ranked]:
    """Return candidates by their rank, the best first."""
    ranks = rank([one.candidate.architecture for one in candidates]) if candidates else np.empty(0)
    return [
        Ranked(candidates[at].candidate, float(ranks[at]))
        for at in np.argsort(-ranks, kind="stable")
    ]


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
        """Fit the surrogate of a method to each learnt objective; sources of other tasks inform the
        first one.
        """
        scores = goals.scores(history.usable)
        networks = [observation.architecture.functional for observation in history.usable]
        fitted = {}
        for at in goals.learnt:
            known = np.flatnonzero(np.isfinite(scores[:, at]))
            surrogate = method.model(history, transfers=not at)
            # Only the first objective is projected to whole trainings.
            variances = None if at or history.variances is None else history.variances[known]
            fitted[at] = surrogate.fit(
                [networks[row] for row in known], scores[known, at], rng, variances
            )

        return cls(goals, fitted, SlackModels.fit(slacks, history, rng))

    def hallucinate(self, architectures: Sequence[Architecture]) -> ObjectiveModels:
        """Return the models conditioned on fantasies of these networks; see
        `Fitted.hallucinate`.
        """
        functional = [one.functional for one in architectures]
        fitted = {at: model.hallucinate(functional) for at, model in self.fitted.items()}
        return replace(self, fitted=fitted, slacks=self.slacks.hallucinate(functional))

    def posteriors(self, architectures: Sequence[Architecture]) -> list[Posterior | Array]:
        """Return what `LogEhvi` takes: posteriors in score units, and the values of the known
        objectives.
        """
        known = self.goals.known_scores(architectures)
        functional = [one.functional for one in architectures]
        return [
            self.fitted[at].posterior(functional).in_scores() if at in self.fitted else known[:, at]
            for at in range(len(self.goals.objectives))
        ]

    def ranking(self, front: Array, reference: Array) -> Rank:
        """Return the function that gives log (EHVI PoF) of networks over a front:

        (n, M) and (M,) float64.
        """
        gain = LogEhvi(*free_boxes(front, reference))
        return lambda architectures: (
            gain(self.posteriors(architectures)) + self.feasible(architectures)
        )

    def feasible(self, architectures: Sequence[Architecture]) -> Array:
        """Return log PoF of networks: (m,) float64."""
        return self.slacks.log_probability(architectures)

    def expected(self, architectures: Sequence[Architecture]) -> Array:
        """Return expected scores of at most m networks: (k, M) float64, k <= m.

        Networks of unknown cost, and networks with a probability of feasibility below 1/2, are left
        out.
        """
        probable = self.feasible(architectures) >= np.log(0.5)
        architectures = [one for one, each in zip(architectures, probable, strict=True) if each]
        if not architectures:
            return np.empty((0, len(self.goals.objectives)))

        columns = [
            one.mean if isinstance(one, Posterior) else one
            for one in self.posteriors(architectures)
        ]
        scores: Array = np.stack(columns, axis=1)
        return scores[np.isfinite(scores).all(axis=1)]


def _suggestion(one: Ranked, models: ObjectiveModels) -> Suggestion:
    first = models.posteriors([one.candidate.architecture])[0]
    assert isinstance(first, Posterior)
    return Suggestion(
        one.candidate.architecture,
        acquisition=float(np.exp(one.rank)),
        mean=float(first.mean[0]),
        std=float(first.std[0]),
        parent=one.candidate.parent,
        operations=one.candidate.operations,
        task_correlations=models.fitted[0].task_correlations(),
    )

"""Base of the agents with a surrogate: the steps from the history to a batch.

    initial design -> surrogate fitted to observations -> pending fantasised -> candidates -> batch
    rule

| symbol | meaning                                                                  |
|--------|--------------------------------------------------------------------------|
| n      | networks to suggest at once                                              |
| L      | short list: networks of greatest acquisition, the input of a batch rule  |

A repeat is another evaluation of an observed network, where it promises more than the best new one.
The gains are from `archive.agents.surrogates.noisy_incumbent`, for any acquisition that ranks
the new networks. A repeat adds nothing where the model is certain of a network, or certain that it
is not the best. Once all networks of a space are known, the rest of the budget goes to repeats.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from archive.agents.acquisition.batch import BatchSelection, Top
from archive.agents.acquisition.candidate_generators import CandidateGenerator, listing_of
from archive.agents.acquisition.evolution import Ranked
from archive.agents.acquisition.functions import Acquisition, ExpectedImprovement, repeat_gains
from archive.agents.base import (
    Agent,
    History,
    Suggestion,
    by_key,
    check_count,
    first_of_pool,
    keys_of,
)
from archive.agents.baselines.random_search import samples
from archive.agents.constraints.feasibility import add_feasibility, default_slacks
from archive.agents.objectives import selection
from archive.agents.objectives.goals import points
from archive.agents.surrogates.base import Array, Fitted, Surrogate
from archive.agents.surrogates.distance_cache import CachedDistances
from archive.agents.surrogates.many.surrogate import ManyEvaluations
from archive.agents.surrogates.noisy_incumbent import NoisyIncumbent
from archive.architecture.graph import Architecture
from archive.architecture.networks import architectures_of, functional_forms, networks_by_key, take
from archive.kernels.gram import Gram
from archive.spaces.base import Space
from archive.values import require_at_least


class SourceUse(Protocol):
    """Use of source studies: `archive.agents.transfer.coordinator.Transfer`, or another."""

    def suggest_first(
        self, history: History, generator: CandidateGenerator, n: int, rng: np.random.Generator
    ) -> tuple[list[Suggestion], int | None]:
        """Return the suggestions that open a study, and the size of its initial design.

        None without sources.
        """

    def with_sources(self, cold: Surrogate, history: History) -> Surrogate:
        """Return the surrogate extended by usable sources of a history, or unchanged."""


@dataclass(frozen=True)
class Method:
    """Configuration of a model-based agent.

    Attributes:
        surrogate: Model of the scores.
        acquisition: Ranking of networks for the short list; its value is recorded with a
            suggestion.
        source: Generator of the candidates.
        rule: Selection of the batch from the short list.
        shortlist: L, at least 1.
        transfer: Use of source studies of other tasks; None ignores them.
        repeats: Whether, in a history with noise (`archive.agents.observations`), the incumbent is chosen by
            `NoisyIncumbent` and networks may be evaluated again. No effect with constraints on
            measured quantities.
        slacks: Model of the measured quantities of constraints; None for `default_slacks`.
        many: Surrogate for more than `many.first` evaluated networks; it uses no sources. None
            keeps `surrogate`.
    """

    surrogate: Surrogate
    acquisition: Acquisition
    source: CandidateGenerator
    rule: BatchSelection
    shortlist: int = 300
    transfer: SourceUse | None = None
    repeats: bool = False
    slacks: Surrogate | None = None
    many: ManyEvaluations | None = None

    def has_many(self, history: History) -> bool:
        """Return whether a history has more evaluated networks than `surrogate` is fitted to."""
        return self.many is not None and self.many.applies(history.inputs)

    def model(self, history: History, *, transfers: bool = True) -> Surrogate:
        """Return the surrogate for a history.

        Args:
            history: The history.
            transfers: Whether the modelled quantity is informed by sources.
        """
        if self.many is not None and self.has_many(history):
            combined = history.goals is not None or (
                history.constraints is not None and history.constraints.measured
            )
            return self.many.everywhere() if combined else self.many

        if transfers and self.transfer:
            return self.transfer.with_sources(self.surrogate, history)

        return self.surrogate


CHOICE = 3
"""Length of the short list in relation to the batch: a batch rule needs more candidates than it
selects."""


class ModelBased(Agent):
    """An agent that suggests the networks of greatest acquisition under a surrogate.

    The space's initial pool comes first; while no evaluation is finished, random networks. Then the
    surrogate is fitted to all finished evaluations, pending proposals are fantasised at their
    posterior mean, and a batch is selected. Networks enter the surrogate without layers on no path
    from input to output: these do not affect the training.

    Args:
        space: The search space.
        n_initial: Number of evaluations of the pool before the first of the model; observations of
            any origin count.
        method: Configuration of the search.

    Of a study with several objectives, the networks of greatest expected hypervolume improvement
    are suggested (`archive.agents.objectives.selection`), whatever the acquisition and the batch
    rule. Under constraints, both are multiplied by the probability of feasibility
    (`archive.agents.constraints.feasibility`).

    Raises:
        UsageError: `n_initial` or the length of the short list is out of range.
    """

    several_objectives = True
    uses_constraints = True
    knows_values = False

    def __init__(self, space: Space, n_initial: int, method: Method) -> None:
        super().__init__(space)
        require_at_least(0, n_initial=n_initial)
        require_at_least(1, shortlist=method.shortlist)
        self.n_initial = n_initial
        self.method = method

    @property
    def transfers(self) -> bool:
        """See `Agent.transfers`."""
        return self.method.transfer is not None

    @property
    def grams(self) -> tuple[Gram[Any], ...]:
        """See `Agent.grams`."""
        pairwise = getattr(self.method.surrogate, "pairwise", None)
        if isinstance(pairwise, CachedDistances):
            return tuple(pairwise.grams)

        return (pairwise,) if isinstance(pairwise, Gram) else ()

    @cached_property
    def slacks(self) -> Surrogate:
        """Model of the measured quantities of constraints."""
        return self.method.slacks or default_slacks(self.space, listing_of(self.method.source))

    def propose(self, history: History, n: int, rng: np.random.Generator) -> list[Suggestion]:
        """See `Agent.propose`."""
        check_count(n)
        suggestions = self._first(history, n, rng)
        history = history.with_pending(suggestions)
        if len(suggestions) < n and history.usable:
            choose = self._choose if history.goals is None else self._choose_for_goals
            choice = choose(history, n - len(suggestions), rng)
            suggestions = [*suggestions, *choice]
            history = history.with_pending(choice)

        # The candidate generator may reach a part of the space only: the remaining networks are
        # drawn at random.
        drawn = []
        if len(suggestions) < n:
            drawn = samples(self.space, n - len(suggestions), history.known, rng)

        suggestions = [*suggestions, *drawn]
        history = history.with_pending(drawn)
        return [*suggestions, *self._repeats(history, n - len(suggestions), rng)]

    def _first(self, history: History, n: int, rng: np.random.Generator) -> list[Suggestion]:
        transfer = self.method.transfer
        opening = list[Suggestion]()
        initial = None
        if transfer is not None:
            opening, initial = transfer.suggest_first(history, self.method.source, n, rng)

        initial = self.n_initial if initial is None else min(self.n_initial, initial)
        pending = history.with_pending(opening)
        return [*opening, *first_of_pool(self.space, pending, initial, n - len(opening), rng)]

    def _choose(self, history: History, n: int, rng: np.random.Generator) -> list[Suggestion]:
        model = self._learn(history, rng)
        ranked = self._rank(history, model, max(self.method.shortlist, CHOICE * n), rng)
        if not ranked:
            return []

        repeated: list[Suggestion] = []
        if self.method.repeats and isinstance(model, NoisyIncumbent):
            repeated, model = repeats(history, model, ranked[0].architecture, n, self.space)

        if len(repeated) == n:
            return repeated

        batch = self._batch(history, model, ranked, n - len(repeated), rng)
        return [*repeated, *self._suggest(batch, model)]

    def _rank(
        self, history: History, model: Fitted, length: int, rng: np.random.Generator
    ) -> list[Ranked]:
        """Return the short list of candidates, of greatest acquisition first."""
        acquisition = self.method.acquisition

        def rank(architectures: Sequence[Architecture]) -> Array:
            posterior = model.posterior(functional_forms(architectures), joint=acquisition.joint)
            return acquisition.rank(posterior, rng)

        return self.method.source.candidates(
            history, rank, length, rng, logarithmic=acquisition.logarithmic
        )

    def _batch(
        self,
        history: History,
        model: Fitted,
        ranked: Sequence[Ranked],
        n: int,
        rng: np.random.Generator,
    ) -> list[Ranked]:
        """Return at most n candidates by the batch rule.

        A rule that ranks by a random acquisition would draw again, among those that the first draw
        favoured. Each of its networks is instead the greatest of a draw over all candidates.
        """
        rule = self.method.rule
        if not (
            self.method.acquisition.random
            and getattr(rule, "acquisition", None) is self.method.acquisition
        ):
            networks = functional_forms(architectures_of(ranked))
            return take(ranked, rule.select(model, networks, n, rng))

        if isinstance(rule, Top):
            return list(ranked[:n])

        batch = list(ranked[:1])
        while ranked and len(batch) < n:
            network = ranked[0].architecture
            history = history.with_pending([Suggestion(network)])
            model = model.hallucinate([network.functional])
            ranked = self._rank(history, model, 1, rng)
            batch += ranked[:1]

        return batch

    def _repeats(self, history: History, n: int, rng: np.random.Generator) -> list[Suggestion]:
        """Return repeats in place of new networks that the space no longer has.

        The list is empty for a history without noise and for several objectives.
        """
        if n == 0 or not self.method.repeats or not history.usable or history.goals is not None:
            return []

        model = self._learn(history, rng)
        if not isinstance(model, NoisyIncumbent):
            return []

        return repeats(history, model, None, n, self.space)[0]

    def _choose_for_goals(
        self, history: History, n: int, rng: np.random.Generator
    ) -> list[Suggestion]:
        # Without a result that has all objectives there is no front: networks are drawn at random.
        if not points(history)[0]:
            return []

        return selection.choose(self.method, self.slacks, history, n, rng)

    def _learn(self, history: History, rng: np.random.Generator) -> Fitted:
        scores = history.scores
        networks = history.inputs
        fitted: Fitted = self.method.model(history).fit(networks, scores, rng, history.variances)
        constraints = history.constraints
        met = history.met
        if self.method.repeats and met.any() and fitted.noises() is not None and history.noisy:
            feasible = take(networks, np.flatnonzero(met))
            many = self.method.many
            if many is not None and many.applies(feasible):
                incumbents = many.incumbents(feasible, scores[met])
            else:
                incumbents = tuple(networks_by_key(feasible).values())

            fitted = NoisyIncumbent(fitted, incumbents)

        if constraints is not None and not (
            isinstance(fitted, NoisyIncumbent) and not constraints.measured
        ):
            fitted = add_feasibility(fitted, history, networks, self.slacks, rng)

        return fitted.hallucinate(functional_forms(architectures_of(history.pending)))

    def _suggest(self, batch: Sequence[Ranked], model: Fitted) -> list[Suggestion]:
        expected = model.posterior(functional_forms(architectures_of(batch))).in_scores()
        means = expected.mean
        stds = expected.std
        correlations = model.task_correlations()
        suggestions = []
        for entry, mean, std in zip(batch, means.tolist(), stds.tolist(), strict=True):
            suggestion = Suggestion(
                entry.architecture,
                task_correlations=correlations,
                acquisition=self.method.acquisition.value(entry.rank),
                mean=mean,
                std=std,
                parent=entry.candidate.parent,
                operations=entry.candidate.operations,
            )
            suggestions.append(suggestion)

        return suggestions


_UNUSED = np.random.default_rng(0)
"""Argument of `ExpectedImprovement.rank`, which draws no random numbers."""


def repeats(
    history: History, model: NoisyIncumbent, best_new: Architecture | None, n: int, space: Space
) -> tuple[list[Suggestion], NoisyIncumbent]:
    """Return the repeats among the next `n` suggestions, and the model with their fantasies.

    Args:
        history: The history.
        model: The fitted surrogate, conditioned on fantasies of pending proposals.
        best_new: The new network of the greatest acquisition; None if there is none: any gain then
            justifies a repeat.
        n: Number of suggestions, at least 1.
        space: The search space.
    """
    allowed = _repeatable(history, by_key(model.networks).keys(), space)
    repeated: list[Suggestion] = []
    while len(repeated) < n and allowed:
        gains = repeat_gains(model.observed)
        repeatable = []
        for row, network in enumerate(model.networks):
            if network.functional_key in allowed:
                repeatable.append(row)

        best = max(repeatable, key=gains.__getitem__, default=None)
        if best is None or not gains[best] > _new_gain(model, best_new):
            break

        network = model.networks[best]
        predicted = model.posterior([network]).in_scores()
        repeated.append(
            Suggestion(
                allowed.pop(network.functional_key),
                acquisition=float(np.exp(gains[best])),
                mean=float(predicted.mean[0]),
                std=float(predicted.std[0]),
                task_correlations=model.task_correlations(),
                repeat=True,
            )
        )
        model = model.hallucinate([network])

    return repeated, model


def _new_gain(model: NoisyIncumbent, network: Architecture | None) -> float:
    if network is None:
        return -np.inf

    return float(ExpectedImprovement().rank(model.posterior([network.functional]), _UNUSED)[0])


def _repeatable(history: History, keys: Set[str], space: Space) -> dict[str, Architecture]:
    """Return the networks that may be evaluated again, by key: not pending, not failed.

    Args:
        history: The history.
        keys: Functional keys to look for. Checking that networks belong to the space takes too long
            for all results of a long history.
        space: The search space.

    Returns:
        For each key, the network of its latest evaluation.
    """
    missing = set(keys) - keys_of(history.pending) - by_key(history.failed).keys()
    repeatable: dict[str, Architecture] = {}
    for observation in reversed(history.usable):
        if not missing:
            break

        network = observation.architecture
        # An evaluation with hyperparameters is of another configuration, which the surrogate does
        # not model.
        if (
            network.functional_key in missing
            and not observation.hyperparameters
            and space.contains(network)
        ):
            repeatable[network.functional_key] = network
            missing.remove(network.functional_key)

    return repeatable

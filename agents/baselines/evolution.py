"""NASBOT's evolutionary baseline (appendix C.1), on real evaluations."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from archive.agents.acquisition.evolution import selection_probabilities
from archive.agents.base import AgentInfo, History, Suggestion, draw_new, keys_of, members_among
from archive.agents.baselines.random_search import Pooled, samples
from archive.agents.surrogates.base import Array
from archive.architecture.graph import Architecture


class Evolution(Pooled):
    """Mutations of networks, with pi proportional to exp(score / standard deviation).

    The paper draws `N_mut = 10` parents a generation from the scores of all earlier generations.
    Here a suggestion is drawn at the request, from all scores recorded until then: for ten
    suggestions at once the two are the same, for fewer this agent uses more scores.

    Args:
        space: The search space.
        n_initial: Number of networks of the space's initial pool that come first.
    """

    kind = "evolution"
    info = AgentInfo(
        summary="NASBOT's optimiser on real scores: mutations of evaluated networks, good ones "
        "more often",
        paper="Kandasamy et al., 2018 (NASBOT)",
        cost="milliseconds",
        when="baseline; cheap evaluations, many at once",
    )
    joint = True

    def beyond(
        self, history: History, n: int, taken: Mapping[str, Architecture], rng: np.random.Generator
    ) -> list[Suggestion]:
        """See `Pooled.beyond`."""
        parents, scores = self._parents(history, rng)
        probabilities = selection_probabilities(scores)

        def mutant() -> Suggestion:
            parent = parents[rng.choice(len(parents), p=probabilities)]
            mutation = self.space.mutate(parent, rng)
            return Suggestion(mutation.child, parent=parent, operations=mutation.operations)

        mutants = draw_new(mutant, n, taken)
        unavailable = {*taken, *keys_of(mutants)}
        return [*mutants, *samples(self.space, n - len(mutants), unavailable, rng)]

    def _parents(
        self, history: History, rng: np.random.Generator
    ) -> tuple[list[Architecture], Array]:
        finished = members_among(self.space, history.usable)
        if not finished:
            # No evaluation is finished, so that selection is impossible: all networks of the pool
            # have equal weight.
            pool = self.space.initial_pool(rng)
            return pool, np.zeros(len(pool))

        return [observation.architecture for observation in finished], np.array(
            [observation.score for observation in finished]
        )

"""An agent: mutations of the best network so far."""

import numpy as np

from archive.agents.base import (
    Agent,
    AgentInfo,
    History,
    Suggestion,
    check_count,
    draw_new,
    first_of_pool,
)
from archive.agents.baselines.random_search import samples
from archive.spaces.base import Space


class BestMutant(Agent):
    """Mutations of the best network so far, after the space's initial pool.

    Args:
        space: Where to search.
        n_initial: How many networks of the initial pool come first.
    """

    kind = "best-mutant"
    info = AgentInfo(
        summary="mutations of the best network so far", cost="milliseconds", when="an example"
    )

    def __init__(self, space: Space, n_initial: int = 10) -> None:
        """Keep the setting."""
        super().__init__(space)
        self.n_initial = n_initial

    def propose(self, history: History, n: int, rng: np.random.Generator) -> list[Suggestion]:
        """See `Agent.propose`."""
        check_count(n)
        suggestions = first_of_pool(self.space, history, self.n_initial, n, rng)
        taken = {*history.known, *(one.architecture.functional_key for one in suggestions)}
        if history.usable:
            best = max(history.usable, key=lambda observation: observation.score).architecture

            def mutant() -> Suggestion:
                mutation = self.space.mutate(best, rng)
                return Suggestion(mutation.child, parent=best, operations=mutation.operations)

            suggestions += draw_new(mutant, n - len(suggestions), taken)
            taken |= {one.architecture.functional_key for one in suggestions}

        # The neighbourhood of the best may be exhausted before the space is.
        return [*suggestions, *samples(self.space, n - len(suggestions), taken, rng)]

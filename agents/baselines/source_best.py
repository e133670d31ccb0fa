"""The best networks of the sources first, then another agent: the baseline of every warm start.

An agent with transfer must find better networks sooner than this agent to show that it has learnt
more than a list.
"""

from __future__ import annotations

from typing import final

import numpy as np

from archive.agents import registry
from archive.agents.base import Agent, AgentInfo, History, Suggestion, check_count
from archive.agents.observations import replicates
from archive.errors import UsageError
from archive.spaces.base import Space
from archive.values import require_at_least


@final
class SourceBest(Agent):
    """Evaluates the best networks of the source studies, then follows another agent.

    Sources take turns. Networks of a source are in the order of their mean scores.
    Networks of other spaces are left out. Without sources it is the other agent alone.

    Args:
        space: The search space.
        top: Number of networks of the sources, all together.
        then: Name of the agent of all later suggestions; it sees no sources.

    Raises:
        UnknownNameError: There is no such agent.
        UsageError: A setting is out of range.
    """

    kind = "source-best"
    info = AgentInfo(
        summary="the ten best networks of the sources, then regularized evolution",
        paper="a baseline of transfer",
        cost="the other agent's",
        when="to measure what a warm start is worth",
        transfers=True,
    )

    def __init__(self, space: Space, top: int = 10, then: str = "regularized-evolution") -> None:
        """Look the name up."""
        super().__init__(space)
        require_at_least(1, top=top)
        if then == self.kind:
            raise UsageError(f"then must be another agent than {self.kind}, got {then!r}")

        self.top = top
        self._then = registry.get(then, space)

    @property
    def transfers(self) -> bool:
        """See `Agent.transfers`."""
        return True

    def propose(self, history: History, n: int, rng: np.random.Generator) -> list[Suggestion]:
        """See `Agent.propose`."""
        check_count(n)
        ranked = self._rank(history)
        new = [
            suggestion
            for suggestion in ranked
            if suggestion.architecture.functional_key not in history.known
        ][:n]
        missing = n - len(new)
        return (
            [*new, *self._then.propose(history.with_pending(new), missing, rng)] if missing else new
        )

    def _rank(self, history: History) -> list[Suggestion]:
        """Return the best networks of the sources, known ones included, at most `top`."""
        orders = []
        for source in history.sources:
            groups = replicates(History(source.observations).usable)
            groups.sort(
                key=lambda group: -float(np.mean([observation.score for observation in group]))
            )
            order = []
            for group in groups:
                network = group[0].architecture
                if network.space == self.space.name and self.space.contains(network):
                    order.append(network)

            orders.append(order)

        suggestions: dict[str, Suggestion] = {}
        for rank in range(self.top):
            for order in orders:
                if rank < len(order) and len(suggestions) < self.top:
                    suggestions.setdefault(order[rank].functional_key, Suggestion(order[rank]))

        return list(suggestions.values())

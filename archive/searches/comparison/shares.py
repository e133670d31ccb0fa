"""Shares of the members of a team: turns, improvements, and the proposers of the networks that they
improved on.

An evaluation is an improvement when it is better than all earlier ones of its study. The proposer
of the previous best is another agent, the same agent, or the agent of the random starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

STARTS = "starts"
"""Proposer of the random networks at the start."""


@dataclass
class Share:
    """Counts of one agent over all studies of a contestant.

    Attributes:
        agent: Its id; `starts` for the random networks that come first.
        evaluations: Number of evaluations of its proposals.
        improvements: Number of these that were better than all earlier evaluations of the study.
        on_others: Number of improvements on the best network of another agent.
        bests: Number of studies in which it proposed the best network, the first of equal ones.
        known: Mean number of evaluations of other agents' proposals at its own proposals.
    """

    agent: str
    evaluations: int = 0
    improvements: int = 0
    on_others: int = 0
    bests: int = 0
    known: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return asdict(self)


def shares(studies: Sequence[Sequence[tuple[str, float]]]) -> tuple[Share, ...]:
    """Return the share of every agent, in the order of their first evaluations.

    Args:
        studies: For each study, proposer and regret of each network, in the order of evaluation.
    """
    by_agent: dict[str, Share] = {}
    for study in studies:
        best = float("inf")
        holder = None
        of_agent: dict[str, int] = {}
        for at, (agent, regret) in enumerate(study):
            share = by_agent.setdefault(agent, Share(agent))
            # A running mean of the evaluations of others until then.
            others = at - of_agent.get(agent, 0)
            share.known += (others - share.known) / (share.evaluations + 1)
            share.evaluations += 1
            of_agent[agent] = of_agent.get(agent, 0) + 1
            if regret < best:
                share.improvements += 1
                share.on_others += holder is not None and holder != agent
                best = regret
                holder = agent

        if holder is not None:
            by_agent[holder].bests += 1

    return tuple(by_agent.values())


def maker(agent: str, number: int, starts: int) -> str:
    """Return the proposer: the agent, or the random starts."""
    return STARTS if number < starts else agent

"""The implementation of `ask`: claim waiting proposals first, then let an agent propose.

    ask ──> claim waiting proposals ──> room in the budget? ──> agent proposes ──> claim again
                                                              │
           other searches took the suggestions: repeat, with their proposals in the history

Threads that share a study propose in turns, so that each agent sees the proposals of the others.
Searches in other processes propose concurrently: the store refuses a network that the study already
has, and the caller tries again.
"""

from __future__ import annotations

import os
import platform
import secrets
from threading import Lock
from typing import TYPE_CHECKING

from archive import __version__
from archive.agents import registry
from archive.agents.ask_tell.types import Batch, LeasedProposal
from archive.agents.base import Agent, check_count
from archive.agents.searcher import ProposeOutcome, Searcher
from archive.constraints import NO_COSTS, KnownCosts
from archive.errors import UsageError
from archive.spaces.stored_spaces import member_of
from archive.store.records import State

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.spaces.base import Space
    from archive.store.records import Evaluation, Proposal
    from archive.store.studies.builds import ConfigurationBuilder


class Asker:
    """A worker of one study.

    Agents by name are cached, so that their preparation serves later calls.

    Thread-safe.

    Args:
        archive: The archive of the study.
        study: Name of the study.
        space: Space of the study.
        costs: Known costs of its networks.
        builder: Builds the networks of configurations; None for none.
    """

    def __init__(
        self,
        archive: Archive,
        study: str,
        space: Space,
        costs: KnownCosts = NO_COSTS,
        builder: ConfigurationBuilder | None = None,
    ) -> None:
        """Register as a worker."""
        self._archive = archive
        self._study = study
        self._space = space
        self._worker = f"{platform.node()}-{os.getpid()}-{secrets.token_hex(3)}"
        self._searcher = Searcher(archive, costs, builder, waits=False)
        self._agents: dict[str, Agent] = {}
        # Two locks: a proposal may take long, and claiming waiting proposals does not depend on it.
        self._making = Lock()
        self._proposing = Lock()
        archive.proposals.register_worker(self._worker, platform.node(), "ask and tell")

    def ask(self, agent: str | Agent, n: int, lease_seconds: float, retrain: bool) -> Batch:
        """Return the proposals to evaluate next; see `AskTellStudy.ask`."""
        check_count(n)
        searcher = self._agent(agent)
        leased = self._claim(n, lease_seconds)
        made: list[Proposal] = []
        while len(leased) < n:
            proposed = self._propose(searcher, n - len(leased), retrain)
            made += proposed.made
            claimed = self._claim(n - len(leased), lease_seconds)
            leased += claimed
            # After a lost race there may be room for more; the winner's proposals are then in the
            # history.
            if not (proposed.made or claimed or proposed.lost):
                break

        return Batch(
            sorted(leased, key=lambda lease: lease.proposal.number), self._find_answers(made)
        )

    def _agent(self, agent: str | Agent) -> Agent:
        searcher = self._find_agent(agent) if isinstance(agent, str) else agent
        if searcher.space != self._space:
            raise UsageError(
                f"the agent must search the study's space {self._space!r}, got {searcher.space!r}: "
                "make it with the space of the study, study.space"
            )

        return searcher

    def _find_agent(self, name: str) -> Agent:
        with self._making:
            if name not in self._agents:
                self._agents[name] = registry.get(name, self._space)

            return self._agents[name]

    def _claim(self, n: int, lease_seconds: float) -> list[LeasedProposal]:
        leased: list[LeasedProposal] = []
        while len(leased) < n:
            claims = self._archive.proposals.claim_many(
                self._worker, n - len(leased), study=self._study, lease_seconds=lease_seconds
            )
            if not claims:
                break

            for claim in claims:
                hyperparameters = claim.proposal.hyperparameters
                member = member_of(self._space.config, claim.architecture, hyperparameters)
                parameters = self._space.parameters_of(member)
                leased.append(
                    LeasedProposal(claim.proposal, claim.architecture, claim.token, parameters)
                )

        return leased

    def _propose(self, agent: Agent, n: int, retrain: bool) -> ProposeOutcome:
        """Let an agent propose up to n networks, within the budget."""
        with self._proposing:
            study = self._archive.studies.get(self._study)
            counts = self._archive.studies.counts(self._study)
            room = min(n, study.budget - sum(counts.values()) + counts[State.FAILED])
            if room < 1:
                return ProposeOutcome()

            id_ = self._archive.proposals.register_agent(agent.kind, agent.config, __version__)
            return self._searcher.propose(study, agent, id_, room, retrain=retrain)

    def _find_answers(self, made: list[Proposal]) -> list[Evaluation]:
        ids = {proposal.id for proposal in made if proposal.state is State.COMPLETE}
        return (
            [seen for seen in self._archive.studies.evaluations(self._study) if seen.id in ids]
            if ids
            else []
        )

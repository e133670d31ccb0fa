"""Asking a study for what to evaluate next: first what waits, then what an agent proposes.

    ask ──> claim what waits ──> room in the budget? ──> agent proposes ──> claim again
                                                              │
                                             another search was faster: once more, with its proposal known

Threads that share a study take turns to propose, so that each agent is told of the proposals of the others. Searches in
other processes propose at the same time: the archive refuses what is there already, and the loser asks again.
"""

from __future__ import annotations

import os
import platform
import secrets
from threading import Lock
from typing import TYPE_CHECKING

from archive import __version__
from archive.agents.ask_tell.types import Batch, LeasedProposal
from archive.agents.base import Agent, check_count
from archive.agents.searcher import ProposeOutcome, Searcher
from archive.errors import UsageError
from archive.store.records import State

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.spaces.base import Space
    from archive.store.records import Evaluation, Proposal


class Asker:
    """A worker of one study that asks agents by name, and keeps them: what an agent has prepared serves the next call.

    Safe to use from several threads.

    Args:
        archive: Where the study is.
        study: Its name.
        space: Where it searches.
    """

    def __init__(self, archive: Archive, study: str, space: Space) -> None:
        """Become known to the archive as a worker."""
        self._archive, self._study, self._space = archive, study, space
        self._worker = f"{platform.node()}-{os.getpid()}-{secrets.token_hex(3)}"
        self._searcher = Searcher(archive)
        self._agents: dict[str, Agent] = {}
        # Two locks: an agent may think for long, and a claim of what waits needs none of its results.
        self._making, self._proposing = Lock(), Lock()
        archive.proposals.register_worker(self._worker, platform.node(), "ask and tell")

    def ask(self, agent: str | Agent, n: int, lease_seconds: float, retrain: bool) -> Batch:
        """Return what to evaluate next; see `archive.agents.ask_tell.study.Study.ask`."""
        check_count(n)
        searcher = self._agent(agent)
        asked = self._claim(n, lease_seconds)
        made: list[Proposal] = []
        while len(asked) < n:
            proposed = self._propose(searcher, n - len(asked), retrain)
            made += proposed.made
            claimed = self._claim(n - len(asked), lease_seconds)
            asked += claimed
            # Where another search was faster there may be room for more, and its proposals are known now.
            if not (proposed.made or claimed or proposed.lost):
                break
        return Batch(sorted(asked, key=lambda each: each.proposal.number), self._answered(made))

    def _agent(self, agent: str | Agent) -> Agent:
        found = self._named(agent) if isinstance(agent, str) else agent
        if found.space != self._space:
            raise UsageError(f"the agent must search the study's space {self._space!r}, got {found.space!r}")
        return found

    def _named(self, name: str) -> Agent:
        from archive import agents

        with self._making:
            if name not in self._agents:
                self._agents[name] = agents.get(name, self._space)
            return self._agents[name]

    def _claim(self, n: int, lease_seconds: float) -> list[LeasedProposal]:
        asked: list[LeasedProposal] = []
        while len(asked) < n:
            claims = self._archive.proposals.claim_many(
                self._worker, n - len(asked), study=self._study, lease_seconds=lease_seconds
            )
            if not claims:
                break
            asked += [LeasedProposal(claim.proposal, claim.architecture, claim.token) for claim in claims]
        return asked

    def _propose(self, agent: Agent, n: int, retrain: bool) -> ProposeOutcome:
        """Let an agent propose as many as the budget has room for."""
        with self._proposing:
            study = self._archive.studies.get(self._study)
            counts = self._archive.studies.counts(self._study)
            room = min(n, study.budget - sum(counts.values()) + counts[State.FAILED])
            if room < 1:
                return ProposeOutcome()
            id_ = self._archive.proposals.register_agent(agent.kind, agent.config, __version__)
            return self._searcher.propose(study, agent, id_, room, retrain=retrain)

    def _answered(self, made: list[Proposal]) -> list[Evaluation]:
        ids = {proposal.id for proposal in made if proposal.state is State.COMPLETE}
        return [seen for seen in self._archive.studies.evaluations(self._study) if seen.id in ids] if ids else []

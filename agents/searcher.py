"""One search among others on a study: asks an agent, and writes what it suggests.

    history ──> agent.propose(history, wanted + spare, generator of the stream) ──> the first `wanted` that are new
                                   ^                                                        │
                                   └─────── stream, spare <── another search was first? <───┘

Two searches that read the same history would propose the same networks, and all but one of them would have worked in
vain. A search that is alone draws from random stream 0 and asks for as many networks as it needs, so that it can be
repeated from the study's seed. One that meets another search

- draws from a stream of its own from then on, which keeps agents apart that draw at random;
- asks for spare suggestions for a while, which keeps those apart that choose the best of a list: what the other search
  has taken is replaced by the next best, chosen as if the first were pending.

Each proposal records the stream and how many were asked for (`archive.agents.provenance`), so that it can be asked for
again. Two searches with `tw` on the 15,625 cells of NAS-Bench-201 lost 24 of 64 calls without the spare ones, and 4 of
44 with them.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from archive.agents import provenance
from archive.agents.base import Agent

if TYPE_CHECKING:
    from archive.agents.base import History, Suggestion
    from archive.agents.distance_sync import DistanceSync
    from archive.api import Archive
    from archive.store.records import Proposal, Study

MOST_SPARE = 8
"""Spare suggestions of one call: a batch grows by that many models of the history at most."""

QUIET = 5
"""Calls in a row without another search after which one spare suggestion less is asked for."""


@dataclass(frozen=True)
class ProposeOutcome:
    """Outcome of one call of an agent.

    Attributes:
        made: The new proposals.
        lost: Whether there are fewer of them than wanted because other searches were first. Otherwise the agent has
            nothing left where there are none.
    """

    made: tuple[Proposal, ...] = ()
    lost: bool = False


@final
class Searcher:
    """Proposes in one study for one search; threads that share it must take turns.

    Args:
        archive: Where the study is.

    Attributes:
        stream: Of the random numbers, see `archive.agents.provenance.generator`.
        spare: How many suggestions more than wanted the next call asks for.
    """

    def __init__(self, archive: Archive) -> None:
        """Begin as a search that is alone."""
        self._archive = archive
        self.stream, self.spare = 0, 0
        self._quiet = 0

    def propose(
        self,
        study: Study,
        agent: Agent,
        agent_id: str,
        wanted: int,
        *,
        retrain: bool = False,
        keeper: DistanceSync | None = None,
    ) -> ProposeOutcome:
        """Ask an agent for proposals and write them.

        Args:
            study: The study, as it stands.
            agent: Makes the suggestions.
            agent_id: Its id in the archive.
            wanted: How many proposals to add at most.
            retrain: Also leave those to be evaluated whose result under the study's protocol the archive has.
            keeper: Fills the agent's memories of distances from the archive.
        """
        history, known = provenance.history_of(self._archive, study)
        if keeper is not None and agent.grams:
            # Those of other studies are needed by agents that compare networks, and stored for the next one.
            keeper.keep({seen.architecture.key: seen.architecture for seen in history.usable})
        asked = {**known, "wanted": wanted + self.spare, **({"stream": self.stream} if self.stream else {})}
        began = time.process_time()
        suggestions = agent.propose(
            history, wanted + self.spare, provenance.generator(study.seed, history, self.stream)
        )
        seconds = time.process_time() - began
        answers = [None] * len(suggestions) if retrain else self._archive.answers.known(study, suggestions)
        made = self._archive.proposals.create(
            *(study.name, agent_id, suggestions),
            budget=study.budget,
            outcomes=answers,
            basis={**asked, **provenance.coupling(suggestions)},
            seconds=seconds,
            most=wanted,
        )
        lost = self._notice([one for one in suggestions if not _is_known(one, history)], made, wanted)
        return ProposeOutcome(tuple(made), lost)

    def _notice(self, suggestions: Sequence[Suggestion], made: Sequence[Proposal], wanted: int) -> bool:
        """Notice another search by what it took; return whether it took so much that too little is left."""
        keys = list(dict.fromkeys(one.architecture.functional_key for one in suggestions))
        lost = len(made) < min(wanted, len(keys))
        met = lost or any(proposal.functional_key not in keys[:wanted] for proposal in made)
        self._quiet = 0 if met else self._quiet + 1
        if met and not self.stream:
            self.stream = 1 + secrets.randbelow(provenance.STREAMS)
        if lost:
            self.spare = min(self.spare + 1, MOST_SPARE)
        elif self._quiet >= QUIET:
            self.spare = max(self.spare - 1, 0)
        return lost


def _is_known(suggestion: Suggestion, history: History) -> bool:
    # An agent that suggests what it was told of has lost nothing to others.
    return suggestion.architecture.functional_key in history.known

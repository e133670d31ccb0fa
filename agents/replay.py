"""Asking agents again: does each proposal of a study follow from what it was based on?

    recheck(archive, "study").differing      # () where all do

A proposal is a pure function of the history, the agent's settings and a seed, all of which are on record
(`archive.agents.provenance`). What was proposed beside other searches and trainers can be recomputed like everything
else. Another release, or another machine's linear algebra, may decide otherwise where two networks are nearly as good.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any

from archive import agents, spaces
from archive.agents.base import Agent, History, Pending
from archive.agents.provenance import Basis, count_in, generator, networks_of, numbers_in, observations_of
from archive.agents.rung_scores import as_of
from archive.agents.transfer.source_tasks import split
from archive.architecture.graph import Architecture
from archive.errors import UsageError
from archive.store.properties import from_json
from archive.store.records import Evaluation, Proposal

if TYPE_CHECKING:
    from archive.api import Archive

AGENT = "MATCH (a:Agent {id: $id}) RETURN a.kind, a.config"


@dataclass(frozen=True)
class ReplayReport:
    """What asking again has shown.

    Attributes:
        same: Ids of the proposals that the agent would make again.
        differing: Ids of those that it would not make.
        unexplained: Ids of those whose basis is not on record: people's, and those of other releases.
    """

    same: tuple[str, ...]
    differing: tuple[str, ...]
    unexplained: tuple[str, ...]


def recheck(archive: Archive, study: str) -> ReplayReport:
    """Ask the agents of a study again for every one of its proposals, and compare.

    Args:
        archive: Where the study is.
        study: Its name.

    Raises:
        UnknownNameError: There is no such study, or one of its agents is not installed here.
        UsageError: Something that a proposal was based on is not there.
    """
    past = StudyReplay(archive, study)
    same: list[str] = []
    differing: list[str] = []
    unexplained: list[str] = []
    for proposals in past.calls():
        if not _explains(proposals[0].based_on):
            unexplained += [proposal.id for proposal in proposals]
            continue
        again = past.ask(proposals[0])
        for proposal in proposals:
            # Some of a call may have been left out, for the budget or another search; the order is the agent's.
            found = proposal.architecture_key in again
            (same if found else differing).append(proposal.id)
            again = again[again.index(proposal.architecture_key) + 1 :] if found else again
    return ReplayReport(tuple(same), tuple(differing), tuple(unexplained))


def _explains(basis: Basis) -> bool:
    """Return whether a basis names all that a history is made of."""
    kinds = {"observations": Mapping, "pending": str, "failed": str, "wanted": int}
    return all(isinstance(basis.get(part), kind) for part, kind in kinds.items())


class StudyReplay:
    """A study with everything that its proposals were based on, read once.

    Args:
        archive: Where it is.
        study: Its name.
    """

    def __init__(self, archive: Archive, study: str) -> None:
        """Read the proposals."""
        self._archive = archive
        self.study = archive.studies.get(study)
        self.space = spaces.get(self.study.space, **self.study.space_config)
        self.proposals = {proposal.number: proposal for proposal in archive.proposals.list(study)}
        self._agents: dict[str, Agent] = {}

    def calls(self) -> Iterable[Sequence[Proposal]]:
        """Yield the proposals of each call of an agent, by number."""
        # Additions to a study happen one after the other: those of one call have consecutive numbers.
        ordered = [self.proposals[number] for number in sorted(self.proposals)]
        for _, of_call in groupby(ordered, lambda proposal: (proposal.request, proposal.agent)):
            yield list(of_call)

    def ask(self, proposal: Proposal) -> list[str]:
        """Return the keys of what its agent suggests in the call that made a proposal."""
        history = self.history(proposal.based_on)
        rng = generator(self.study.seed, history, proposal.based_on.get("stream", 0))
        suggestions = self._agent(str(proposal.agent)).propose(history, proposal.based_on["wanted"], rng)
        return [suggestion.architecture.key for suggestion in suggestions]

    def history(self, basis: Basis) -> History:
        """Return the history that a basis describes.

        Raises:
            UsageError: Something that it names is not there.
        """
        own, sources = split(self._as_they_stood(self._seen(basis), basis), self.study)
        return History(
            observations=observations_of(own, self.study.objective),
            sources=sources,
            pending=tuple(
                Pending(network, self.proposals[number].hyperparameters)
                for number, network in zip(numbers_in(basis["pending"]), self._networks(basis["pending"]), strict=True)
            ),
            failed=tuple(self._networks(basis["failed"])),
        )

    def _seen(self, basis: Basis) -> Sequence[Evaluation]:
        """Return the evaluations that a basis names, once it is sure that all is there."""
        named, others = basis["observations"], [basis["pending"], basis["failed"]]
        partial = [text for lengths in basis.get("partial", {}).values() for text in lengths.values()]
        # Counted before they are listed: a basis that was loaded may name more numbers than memory has room for.
        most = max(len(self._evaluations), len(self.proposals))
        if all(sum(map(count_in, texts)) <= most for texts in (named.values(), others, partial)):
            wanted = {(name, number) for name, text in named.items() for number in numbers_in(text)}
            seen = [one for one in self._evaluations if (one.study, one.number) in wanted]
            missing = {number for text in others for number in numbers_in(text)} - self.proposals.keys()
            if not missing and len(seen) == len(wanted):
                return seen
        raise UsageError(f"not all is there that a proposal of the study {self.study.name!r} was based on: {basis}")

    def _as_they_stood(self, seen: Sequence[Evaluation], basis: Basis) -> Sequence[Evaluation]:
        """Return evaluations with what they knew when they had paused at a rung, if they had."""
        paused = {
            (name, number): int(epochs)
            for name, lengths in basis.get("partial", {}).items()
            for epochs, numbers in lengths.items()
            for number in numbers_in(numbers)
        }
        at = [paused.get((str(one.study), int(one.number or 0))) for one in seen]
        objective = self.study.objective
        return [one if e is None else as_of(one, e, objective) for one, e in zip(seen, at, strict=True)]

    @cached_property
    def _evaluations(self) -> Sequence[Evaluation]:
        """Those of every study that a basis names, this one's first, as `Studies.history` orders them."""
        named = {name for proposal in self.proposals.values() for name in proposal.based_on.get("observations", ())}
        found = self._archive.studies.evaluations(sorted(named)) if named else []
        return sorted(found, key=lambda one: one.study != self.study.name)

    def _networks(self, numbers: str) -> Sequence[Architecture]:
        return networks_of(self._archive, [self.proposals[number] for number in numbers_in(numbers)])

    def _agent(self, id_: str) -> Agent:
        if id_ not in self._agents:
            kind, config = self._archive.query(AGENT, {"id": id_}).rows[0]
            settings: Mapping[str, Any] = from_json(config)
            self._agents[id_] = agents.get(kind, self.space, **settings)
        return self._agents[id_]

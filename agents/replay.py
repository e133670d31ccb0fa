"""Replay: call agents again with the recorded inputs and compare their proposals.

    recheck(archive, "study", costs).differing      # () where all proposals are reproduced

A proposal is a pure function of the history, the agent's settings and a seed, all of which are
recorded (`archive.agents.provenance`), also where other searches and trainers ran at the same time.
Another release, or the linear algebra of another machine, may choose differently between two
networks that are nearly equally good.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, groupby, repeat
from typing import TYPE_CHECKING, Any

from archive.agents import registry
from archive.agents.base import Agent, History, Pending
from archive.agents.constraints.slacks import adapt
from archive.agents.provenance import (
    Basis,
    constraints_of,
    count_in,
    generator,
    goals_of,
    networks_of,
    numbers_in,
    observations_of,
    pending_of,
)
from archive.agents.proxies.study_scores import proxies_of
from archive.agents.rungs import as_of
from archive.agents.transfer.source_tasks import split
from archive.architecture.graph import Architecture
from archive.architecture.layer import BESIDE
from archive.constraints import NO_COSTS, KnownCosts
from archive.errors import UsageError
from archive.queries.proposals import AGENT
from archive.spaces import stored_spaces
from archive.spaces.constrained import constrain
from archive.store.properties import from_json, to_json
from archive.store.records import Evaluation, Proposal

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.store.proxies import ProxyTable


@dataclass(frozen=True)
class ReplayReport:
    """Result of a replay.

    Attributes:
        same: Ids of the reproduced proposals.
        differing: Ids of the proposals that are not reproduced.
        unexplained: Ids of the proposals without a recorded basis: users' proposals, and proposals
            of other releases.
    """

    same: tuple[str, ...]
    differing: tuple[str, ...]
    unexplained: tuple[str, ...]


def recheck(archive: Archive, study: str, costs: KnownCosts = NO_COSTS) -> ReplayReport:
    """Replay every call that made a proposal of a study, and compare.

    Args:
        archive: The archive of the study.
        study: Its name.
        costs: Known costs of its networks, as in the search.

    Raises:
        UnknownNameError: There is no such study, or one of its agents is not installed here.
        UsageError: An evaluation or proposal that a basis names is missing.
    """
    replay = StudyReplay(archive, study, costs)
    same: list[str] = []
    differing: list[str] = []
    unexplained: list[str] = []
    for proposals in replay.calls():
        if not _explains(proposals[0].based_on):
            unexplained += [proposal.id for proposal in proposals]
            continue

        again = replay.ask(proposals[0])
        for proposal in proposals:
            # Some suggestions of a call may have been dropped, for the budget or another search;
            # the order is kept.
            key = replay.key_of(proposal)
            reproduced = key in again
            (same if reproduced else differing).append(proposal.id)
            again = again[again.index(key) + 1 :] if reproduced else again

    return ReplayReport(tuple(same), tuple(differing), tuple(unexplained))


def _explains(basis: Basis) -> bool:
    """Return whether a basis names all parts of a history."""
    kinds = {"observations": Mapping, "pending": str, "failed": str, "wanted": int}
    whole = all(isinstance(basis.get(part), kind) for part, kind in kinds.items())
    # A call on a part of the space depends on which part it was.
    return whole and "fixed" not in basis


class StudyReplay:
    """A study with the data that its proposals were based on, read once.

    Args:
        archive: The archive of the study.
        study: Its name.
        costs: Known costs of its networks.
    """

    def __init__(self, archive: Archive, study: str, costs: KnownCosts = NO_COSTS) -> None:
        """Read the proposals."""
        self._archive = archive
        self._costs = costs
        self.study = archive.studies.get(study)
        home = archive.connection.settings.home
        whole = stored_spaces.of_record(self.study.space, self.study.space_config, home)
        self.space = constrain(whole, self.study.constraints, costs)
        self.proposals = {proposal.number: proposal for proposal in archive.proposals.list(study)}
        self._agents: dict[str, Agent] = {}
        self._tables: dict[str, ProxyTable | None] = {}

    def calls(self) -> Iterable[Sequence[Proposal]]:
        """Yield the proposals of each call of an agent, by number."""
        # Additions to a study are serialised: the proposals of one call have consecutive numbers.
        ordered = [self.proposals[number] for number in sorted(self.proposals)]
        for _, of_call in groupby(ordered, lambda proposal: (proposal.request, proposal.agent)):
            yield list(of_call)

    def ask(self, proposal: Proposal) -> list[tuple[str, str]]:
        """Replay the call that made a proposal; returns its suggestions as `key_of` does."""
        history = self.history(proposal.based_on)
        agent = self._agent(str(proposal.agent))
        rng = generator(self.study.seed, history, proposal.based_on.get("stream", 0))
        seen = adapt(agent, history.seen_from(agent.space))
        suggestions = agent.propose(seen, proposal.based_on["wanted"], rng)
        keys = []
        for suggestion in suggestions:
            member = suggestion.architecture
            keys.append((member.network.key, to_json(member.configuration)))

        return keys

    def key_of(self, proposal: Proposal) -> tuple[str, str]:
        """Return the key of a proposal's network, and the text of the parameters beside it."""
        joint = BESIDE in self.study.space_config
        return proposal.architecture_key, to_json(proposal.hyperparameters if joint else {})

    def history(self, basis: Basis) -> History:
        """Return the history that a basis describes.

        Raises:
            UsageError: An evaluation or proposal that it names is missing.
        """
        evaluated, sources = split(
            self._as_of_call(self._find_evaluations(basis), basis), self.study
        )
        return History(
            observations=observations_of(evaluated, self.study, self._costs),
            sources=sources,
            goals=goals_of(self.study, self._costs),
            constraints=constraints_of(self.study, self._costs),
            pending=self._pending(basis["pending"]),
            failed=tuple(entry.architecture for entry in self._pending(basis["failed"])),
            proxies=self._proxies(basis.get("proxies")),
        )

    def _pending(self, numbers: str) -> tuple[Pending, ...]:
        networks = self._networks(numbers)
        pending = []
        for number, network in zip(numbers_in(numbers), networks, strict=True):
            hyperparameters = self.proposals[number].hyperparameters
            pending.append(pending_of(self.study, network, hyperparameters))

        return tuple(pending)

    def _find_evaluations(self, basis: Basis) -> Sequence[Evaluation]:
        """Return the evaluations of a basis, after a check that all its entries exist."""
        named = basis["observations"]
        others = [basis["pending"], basis["failed"]]
        partial: list[str] = []
        for lengths in basis.get("partial", {}).values():
            partial += lengths.values()

        # The numbers are counted before they are listed: an imported basis may name more of them
        # than memory holds.
        most = max(len(self._evaluations), len(self.proposals))
        if all(sum(map(count_in, texts)) <= most for texts in (named.values(), others, partial)):
            requested: set[tuple[str | None, int | None]] = set()
            for name, text in named.items():
                requested.update(zip(repeat(name), numbers_in(text)))

            evaluations = []
            for evaluation in self._evaluations:
                if (evaluation.study, evaluation.number) in requested:
                    evaluations.append(evaluation)

            missing = set(chain.from_iterable(map(numbers_in, others))) - self.proposals.keys()
            if not missing and len(evaluations) == len(requested):
                return evaluations

        name = self.study.name
        raise UsageError(
            f"a proposal of the study {name!r} was based on "
            f"evaluations or proposals that are missing: {basis}"
        )

    def _as_of_call(self, evaluations: Sequence[Evaluation], basis: Basis) -> Sequence[Evaluation]:
        """Return the evaluations as of the call: paused trainings with the score at the rung."""
        paused: dict[tuple[str, int], int] = {}
        for name, lengths in basis.get("partial", {}).items():
            for epochs, numbers in lengths.items():
                paused |= dict.fromkeys(zip(repeat(name), numbers_in(numbers)), int(epochs))

        names = {str(evaluation.study) for evaluation in evaluations} if paused else ()
        studies = {name: self._archive.studies.get(name) for name in names}
        at_call = []
        for evaluation in evaluations:
            name = str(evaluation.study)
            length = paused.get((name, int(evaluation.number or 0)))
            if length is not None:
                evaluation = as_of(evaluation, length, self.study.objective, studies[name])

            at_call.append(evaluation)

        return at_call

    def _proxies(self, entry: Mapping[str, Any] | None) -> ProxyTable | None:
        """Return the proxies that an entry of a basis names."""
        if not entry:
            return None

        name = f"{entry['source']} {entry['until']}"
        if name not in self._tables:
            self._tables[name] = proxies_of(self._archive, self.study, entry)

        return self._tables[name]

    @cached_property
    def _evaluations(self) -> Sequence[Evaluation]:
        """Evaluations of every study in the bases, this study's first."""
        named: set[str] = set()
        for proposal in self.proposals.values():
            named.update(proposal.based_on.get("observations", ()))

        evaluations = self._archive.studies.evaluations(sorted(named)) if named else []
        return sorted(evaluations, key=lambda evaluation: evaluation.study != self.study.name)

    def _networks(self, numbers: str) -> Sequence[Architecture]:
        return networks_of(self._archive, [*map(self.proposals.__getitem__, numbers_in(numbers))])

    def _agent(self, id_: str) -> Agent:
        if id_ not in self._agents:
            kind, config = self._archive.query(AGENT, {"id": id_}).rows[0]
            settings: Mapping[str, Any] = from_json(config)
            self._agents[id_] = registry.get(kind, self.space, **settings)

        return self._agents[id_]

"""One search on a study that other searches may share: calls an agent and stores its suggestions.

    history ──> agent.propose(history, count + spare, generator of the stream) ──> the first `count`
    that are new
                                   ^                                                        │
                                   └────── stream, spare <── did another search interfere? ─┘

Two searches that read the same history would propose the same networks, and all but one call would
be wasted. A search that is alone draws from random stream 0 and requests exactly the networks that
it needs, so that it can be repeated from the study's seed. A search that meets another one

- draws from a separate random stream from then on, which separates agents that draw at random;
- requests spare suggestions for a while, which separates agents that take the best of a list: a
  network that the other search has taken is replaced by the next best, chosen as if the first were
  pending.

Each proposal records the stream and the number requested (`archive.agents.provenance`), so that the
call can be replayed. Two searches with `tw` on the 15,625 cells of NAS-Bench-201 lost 24 of 64
calls without spare suggestions, and 4 of 44 with them.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from archive.agents import provenance, study_setup
from archive.agents.base import Agent, Suggestion
from archive.agents.constraints.slacks import adapt
from archive.architecture.graph import Architecture
from archive.architecture.networks import architectures_of
from archive.constraints import NO_COSTS, KnownCosts
from archive.errors import InvalidArchitectureError, UsageError
from archive.queue.reuse import RETRAIN
from archive.spaces.stored_spaces import fixed_values
from archive.store.properties import to_json

if TYPE_CHECKING:
    from archive.agents.base import History
    from archive.agents.distance_sync import DistanceSync
    from archive.api import Archive
    from archive.spaces.base import Space
    from archive.store.records import Proposal, Result, Study
    from archive.store.studies.builds import Build, ConfigurationBuilder

MOST_SPARE = 8
"""Most spare suggestions of one call, each of which costs a fantasy update of the model."""

QUIET = 5
"""Consecutive calls without interference after which the number of spare suggestions drops by
one."""


@dataclass(frozen=True)
class ProposeOutcome:
    """Outcome of one call of an agent.

    Attributes:
        made: The new proposals.
        lost: Whether other searches took so many suggestions that fewer than requested are new. If
            false and `made` is empty, the agent has no further suggestion.
    """

    made: tuple[Proposal, ...] = ()
    lost: bool = False


@final
class Searcher:
    """Proposes in one study for one search; not thread-safe.

    Args:
        archive: The archive of the study.
        costs: Known costs of its networks.
        builder: Builds the networks of configurations; None for none.
        waits: Whether configurations wait for the results of their twins: a result that is told is
            none of a twin.

    Attributes:
        stream: Random stream, see `archive.agents.provenance.generator`.
        spare: Spare suggestions that the next call requests.
    """

    def __init__(
        self,
        archive: Archive,
        costs: KnownCosts = NO_COSTS,
        builder: ConfigurationBuilder | None = None,
        *,
        waits: bool = True,
    ) -> None:
        """Start as a search that is alone."""
        self._archive = archive
        self._costs = costs
        self._builder = builder
        self._waits = waits
        self.stream = 0
        self.spare = 0
        self._quiet = 0

    def propose(
        self,
        study: Study,
        agent: Agent,
        agent_id: str,
        count: int,
        *,
        retrain: bool = False,
        distance_sync: Callable[[], DistanceSync] | None = None,
    ) -> ProposeOutcome:
        """Let an agent propose, and store its proposals.

        Args:
            study: The study as last read.
            agent: The agent.
            agent_id: Its id in the archive.
            count: Largest number of proposals to add.
            retrain: Also evaluate networks for which the archive has a result of the study's
                protocol.
            distance_sync: Returns what fills the agent's distance caches from the archive.

        Raises:
            UsageError: The study has several objectives, and the agent searches for one; or its
                suggestions break the contract of `Agent.propose`.
        """
        study_setup.check_agent(agent, study)
        history, basis = provenance.history_of(self._archive, study, self._costs)
        if distance_sync is not None and history.usable and agent.grams:
            # Agents that compare networks also need the distances of other studies' networks.
            networks = [member.network for member in architectures_of(history.usable)]
            distance_sync().keep({network.key: network for network in networks})

        requested = count + self.spare
        basis = {**basis, "wanted": requested, **_part_of(agent.space)}
        if self.stream:
            basis["stream"] = self.stream

        if retrain:
            basis[RETRAIN] = True

        began = time.process_time()
        suggestions = ask_agent(agent, study, history, requested, self.stream)
        seconds = time.process_time() - began
        suggestions = self._store_networks(study, suggestions, history, retrain)
        proposals = self._archive.proposals.create(
            study.name,
            agent_id,
            suggestions,
            budget=study.budget,
            outcomes=self._known_outcomes(study, suggestions, retrain),
            basis={**basis, **provenance.correlations_of(suggestions)},
            seconds=seconds,
            most=count,
        )
        new = []
        for suggestion in suggestions:
            if not _is_known(suggestion, history):
                new.append(suggestion)

        lost = self._adapt_to_others(new, proposals, count)
        return ProposeOutcome(tuple(proposals), lost)

    def _store_networks(
        self, study: Study, suggestions: list[Suggestion], history: History, retrain: bool
    ) -> list[Suggestion]:
        """Store the networks of configurations, and return the suggestions to add now.

        A configuration that may be one training with an open proposal is left out: when that has
        its result, the agent may suggest the configuration again, which is then answered.
        """
        builds: list[Build] = []
        if self._builder is not None:
            for build in self._builder.builds(architectures_of(suggestions)):
                if build is not None:
                    builds.append(build)

        if not builds:
            return suggestions

        self._archive.builds.add(builds)
        if retrain or not self._waits:
            return suggestions

        twins = self._archive.builds.twins(build.configuration.key for build in builds)
        keys = []
        for of_key in twins.values():
            keys += [twin.key for twin in of_key]

        open_keys = self._archive.builds.open(study.name, keys)
        added = []
        for suggestion in suggestions:
            key = suggestion.architecture.key
            is_open = any(twin.key in open_keys for twin in twins.get(key, ()))
            if suggestion.repeat or not is_open:
                added.append(suggestion)
                if not _is_known(suggestion, history):
                    open_keys.add(key)

        return added

    def _known_outcomes(
        self, study: Study, suggestions: Sequence[Suggestion], retrain: bool
    ) -> list[Result | None]:
        """Return the known outcome of each suggestion; None for a suggestion to be trained."""
        if retrain:
            return [None] * len(suggestions)

        outcomes = self._archive.answers.known(study, suggestions)
        # A repeat needs another training: the known result is the one that it repeats.
        for position, suggestion in enumerate(suggestions):
            if suggestion.repeat:
                outcomes[position] = None

        return outcomes

    def _adapt_to_others(
        self, suggestions: Sequence[Suggestion], proposals: Sequence[Proposal], count: int
    ) -> bool:
        """Adapt stream and spare suggestions to the suggestions that other searches took.

        Args:
            suggestions: Suggestions of networks that were new to the agent.
            proposals: The proposals that were stored.
            count: Number of proposals requested.

        Returns:
            Whether other searches took so many suggestions that fewer than requested are new.
        """
        keys = list(dict.fromkeys(map(_identity, suggestions)))
        # Others took networks, and too few were left.
        lost = len(proposals) < min(count, len(keys))
        # Or a spare suggestion was stored in place of a network that another search took.
        joint = any(suggestion.architecture.configuration for suggestion in suggestions)
        stored = {_identity_of_stored(proposal, joint=joint) for proposal in proposals}
        interfered = lost or not stored <= set(keys[:count])
        self._quiet = 0 if interfered else self._quiet + 1
        if interfered and not self.stream:
            self.stream = 1 + secrets.randbelow(provenance.STREAMS)

        if lost:
            self.spare = min(self.spare + 1, MOST_SPARE)
        elif self._quiet >= QUIET:
            self.spare = max(self.spare - 1, 0)

        return lost


def ask_agent(
    agent: Agent, study: Study, history: History, count: int, stream: int = 0
) -> list[Suggestion]:
    """Return the suggestions of an agent for a study; nothing is stored.

    Args:
        agent: The agent.
        study: The study, whose seed decides the random numbers.
        history: The history of the study.
        count: Number of suggestions.
        stream: Random stream, see `archive.agents.provenance.generator`.

    Raises:
        UsageError: The suggestions break the contract of `Agent.propose`.
    """
    rng = provenance.generator(study.seed, history, stream)
    searched = history.seen_from(agent.space)
    if history.constraints is not None:
        searched = adapt(agent, searched)

    return _check(agent, agent.propose(searched, count, rng))


def _identity(suggestion: Suggestion) -> tuple[str, str]:
    """Return what a study has once: a network, and the parameters beside it."""
    member = suggestion.architecture
    return member.network.functional_key, to_json(member.configuration)


def _identity_of_stored(proposal: Proposal, *, joint: bool) -> tuple[str, str]:
    return proposal.functional_key, to_json(proposal.hyperparameters if joint else {})


def _part_of(space: Space) -> dict[str, Any]:
    """Return the entry of a basis for the part of the space that an agent searches."""
    fixed = fixed_values(space)
    return {"fixed": fixed} if fixed else {}


def _is_known(suggestion: Suggestion, history: History) -> bool:
    # A suggestion that was in the history already was not lost to another search.
    return not suggestion.repeat and suggestion.architecture.functional_key in history.known


_PREDICTION = ("acquisition", "mean", "std")


def _check(agent: Agent, suggestions: Any) -> list[Suggestion]:
    """Return the suggestions as a list that meets the contract of `Agent.propose`.

    Agents of other packages meet their mistakes here, and not in the archive: a network of another
    space would become a result of the study.

    Raises:
        UsageError: They are no list of `Suggestion`, one is no member of the space, or a prediction
            is no number.
    """
    if not isinstance(suggestions, list | tuple):
        raise UsageError(
            f"{_name_of(agent)} must propose a list of Suggestion, got {type(suggestions).__name__}"
        )

    for suggestion in suggestions:
        if not isinstance(suggestion, Suggestion):
            raise UsageError(
                f"{_name_of(agent)} must propose a list of Suggestion, got {type(suggestion).__name__} in it"
            )

        _check_network(agent, agent.space, suggestion.architecture)
        for name in _PREDICTION:
            _check_number(agent, name, getattr(suggestion, name))

    return list(suggestions)


def _check_network(agent: Agent, space: Space, network: Any) -> None:
    if not isinstance(network, Architecture):
        raise UsageError(
            f"{_name_of(agent)} must suggest an Architecture, got {type(network).__name__}"
        )

    try:
        space.validate(network)
    except InvalidArchitectureError as error:
        raise UsageError(
            f"{_name_of(agent)} suggests a network outside the space {space.name}: {error}"
        ) from error


def _check_number(agent: Agent, name: str, value: Any) -> None:
    try:
        float(0 if value is None else value)
    except (TypeError, ValueError):
        raise UsageError(
            f"the {name} of a suggestion of {_name_of(agent)} must be a number, got {value!r}"
        ) from None


def _name_of(agent: Agent) -> str:
    return f"agent {getattr(agent, 'kind', type(agent).__name__)}"

"""Proposals: from an agent's suggestion, through a worker's lease, to a result or a failure.

Agents and trainers meet here and nowhere else. Concurrency rules of the queue:

- Every call is one retryable, idempotent transaction; a claim reads before it. `create` and `claim`
  carry a token that identifies a repetition; the other calls name the state that they lead to.
- Additions to a study lock the study first (`archive.queue.admission`), proposals are locked in the
  order of their ids (`archive.queue.leases`), and studies before proposals
  (`archive.queue.successive_halving`).
- Exactly one worker holds a proposal, as its token proves. Only the server's clock decides about
  leases.
- The first result to arrive is kept, even after its lease was lost (`archive.queue.completion`).
"""

from __future__ import annotations

import builtins
import uuid
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from archive.architecture.graph import Architecture
from archive.database.write_lock import LONG
from archive.errors import ArchiveError
from archive.queue import cancellation, claims, leases, lookups, updates, workers
from archive.queue.admission import (
    Request,
    SuggestionLike,
    admit,
    checked_priority,
    separate,
)
from archive.queue.capabilities import ClaimFilter
from archive.queue.claimer import Claimer
from archive.queue.updates import (
    LEASE_SECONDS,
    Answer,
    Completion,
    Failure,
    Notice,
    Release,
    Report,
)
from archive.store.architectures import Architectures
from archive.store.records import Claim, Curve, Proposal, Result, State
from archive.store.studies import creation
from archive.store.wake_up import CANCELLED, wake_searches, wake_trainers

if TYPE_CHECKING:
    from archive.database.connection import Connection

__all__ = ["Claim", "Proposal", "Proposals", "Result", "State", "SuggestionLike"]

MAX_ATTEMPTS = 3


class Proposals:
    """The work queue. Safe to share between threads and, through the database, machines."""

    def __init__(
        self,
        connection: Connection,
        architectures: Architectures,
        *,
        max_attempts: int = MAX_ATTEMPTS,
    ):
        """Read and write through this connection.

        After `max_attempts` lost attempts a proposal becomes FAILED.
        """
        self._connection = connection
        self._architectures = architectures
        self._limit = max_attempts
        self.registered = set[str]()

    @cached_property
    def _claimer(self) -> Claimer:
        # A search only proposes.
        return Claimer(self._connection, self._architectures)

    def create(
        self,
        study: str,
        agent_id: str,
        suggestions: Sequence[SuggestionLike],
        budget: int | None = None,
        *,
        outcomes: Sequence[Result | str | None] | None = None,
        most: int | None = None,
        after: int | None = None,
        unique: bool = True,
        token: str | None = None,
        basis: Mapping[str, Any] | None = None,
        seconds: float | None = None,
    ) -> list[Proposal]:
        """Add suggestions to a study, in their order, as far as the budget goes.

        Architectures, layers, edges, proposals, known results and `MORPHED_INTO` are one
        transaction. Searches that add to one study at the same moment do so one after the other.

        Args:
            study: Name of the study.
            agent_id: Return value of `register_agent`.
            suggestions: Networks to evaluate; see `archive.queue.admission.SuggestionLike`. Members
                of a space with parameters beside its networks are stored as the network, with the
                parameters as hyperparameters.
            budget: The caller's limit on the study's proposals that have not failed, in addition to
                the study's.
            outcomes: For each suggestion, its result where that is known already (from a table, or
                from `archive.queue.reuse`), or the reason why it failed; None for a suggestion that
                has to be evaluated.
            most: Number of suggestions to add at most, the first ones that are new; None for all.
            after: Number of proposals that the study must have; with another number, another search
                was faster, and nothing is stored.
            unique: Whether to leave out networks whose functional key the study has, in any state;
                with parameters beside them, the networks that it has with equal parameters.
            token: Identifies a repetition of an earlier call, whose proposals are then returned.
            basis: The agent's knowledge when it made the suggestions, as JSON-compatible values.
            seconds: Time that the agent took to suggest.

        Returns:
            The new proposals; fewer than requested where the budget or a repeated network forbids
            more.

        Raises:
            UnknownNameError: There is no such study or agent.
            UsageError: The priority of a suggestion is not a finite number.
        """
        for suggestion in suggestions:
            checked_priority(getattr(suggestion, "priority", None) or 0.0)

        separated = list(map(separate, suggestions))
        joint = any(suggestion.architecture.configuration for suggestion in suggestions)
        request = Request(
            study,
            agent_id,
            separated,
            budget,
            unique=unique,
            token=token or uuid.uuid4().hex,
            basis=basis,
            seconds=seconds,
            outcomes=None if outcomes is None else list(outcomes),
            after=after,
            most=most,
            pairs=joint,
        )
        proposals = admit(self._connection, request, again=token is not None)
        if proposals:
            keys = {proposal.architecture_key for proposal in proposals}
            networks = {
                suggestion.architecture.key: suggestion.architecture for suggestion in separated
            }
            self._architectures.keep(networks[key] for key in networks.keys() & keys)
            self._restart_claims()

        return proposals

    def claim(
        self, worker: str, *, study: str | None = None, lease_seconds: float = LEASE_SECONDS
    ) -> Claim | None:
        """Claim the next proposal, of one study or of any; None when the queue is empty.

        A proposal with an expired lease can be claimed again, until `max_attempts` workers have
        lost it.
        """
        request = claims.ClaimRequest(
            worker, uuid.uuid4().hex, study, leases.milliseconds(lease_seconds), self._limit
        )
        return next(iter(self._claimer.claim(request)), None)

    def claim_many(
        self,
        worker: str,
        most: int,
        *,
        study: str | None = None,
        lease_seconds: float = LEASE_SECONDS,
        whole: bool = False,
        claim_filter: ClaimFilter | None = None,
        token: str | None = None,
        again: bool = False,
    ) -> builtins.list[Claim]:
        """Claim at most `most` proposals, under one token and in one transaction.

        They are sorted by number.

        The worker gets at most its fair share of the queue. `archive.queue.claims.ClaimRequest`
        describes `whole`, by which it may get more, and `claim_filter` and `again`.
        """
        request = claims.ClaimRequest(
            worker,
            token or uuid.uuid4().hex,
            study,
            leases.milliseconds(lease_seconds),
            self._limit,
            most,
            whole,
            claim_filter=claim_filter or ClaimFilter(),
            again=again,
        )
        return self._claimer.claim(request) if most > 0 else []

    def settle(self, several: Sequence[Notice]) -> builtins.list[Answer]:
        """Store the notices of a worker, in one transaction unless they are large.

        See `archive.queue.updates`.

        Args:
            several: Reports, completions, failures and releases, of any proposals.

        Returns:
            For each notice, True if it was stored, False if another worker's result was first, or
            the error that refuses it (`LeaseLostError`, `UnknownNameError`).

        Raises:
            UsageError: The lists of a curve differ in length; nothing is stored then.
            MessageTooLargeError: A curve is larger than an embedded server takes; other notices may
                be stored.
        """
        updates.check(several)
        return [*chain.from_iterable(map(self._settle_part, updates.parts(several)))]

    def heartbeat(self, id_: str, token: str, lease_seconds: float = LEASE_SECONDS) -> None:
        """Renew a lease from now on.

        Raises:
            LeaseLostError: Another worker holds the proposal, it is back in the queue, or it has
                ended.
        """
        self._settle(Report(id_, token, None, lease_seconds))

    def held(self, leases: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
        """Return the pairs (id, token) that hold their proposals, by a read without locks.

        A lease may end after the read: only the answer to a notice is certain.
        """
        return lookups.held(self._connection, leases)

    def report(
        self, id_: str, token: str, curve: Curve, lease_seconds: float = LEASE_SECONDS
    ) -> None:
        """Store the whole curve so far, one value per metric and epoch, and renew the lease.

        Raises:
            LeaseLostError: Another worker holds the proposal, it is back in the queue, or it has
                ended.
            UsageError: The lists of the curve differ in length.
        """
        self._settle(Report(id_, token, curve, lease_seconds))

    def complete(self, id_: str, token: str, result: Result, *, pruned: bool = False) -> bool:
        """Store a result: evaluation, curve, metrics and weights.

        They are stored in one transaction with the proposal's state.

        Without an earlier result, a worker that has lost its lease may deliver one, too, even for a
        FAILED proposal.

        Returns:
            Whether the result on record is this worker's; False if another worker's was first.
        """
        return self._settle(Completion(id_, token, result, pruned))

    def fail(
        self, id_: str, token: str, reason: str, retry: bool = False, log: str | None = None
    ) -> None:
        """Store why training failed; with `retry`, let another worker try while attempts are left.

        Raises:
            LeaseLostError: Another worker holds the proposal, or it has ended.
        """
        self._settle(Failure(id_, token, reason, retry, log))

    def release(self, id_: str, token: str) -> None:
        """Return a proposal to the queue; an orderly departure of a worker costs it no attempt.

        Raises:
            LeaseLostError: Another worker holds the proposal, or it has ended.
        """
        self._settle(Release(id_, token))

    def prioritise(self, id_: str, priority: float) -> None:
        """Set the priority of a proposal: larger is claimed first; proposals of agents have 0.

        Raises:
            UnknownNameError: There is no such proposal.
            UsageError: The priority is not a finite number, or the proposal has its result.
        """
        lookups.prioritise(self._connection, id_, priority)
        self._claimer.forget()

    def cancel(self, id_: str, reason: str | None = None) -> bool:
        """Cancel a proposal that waits or runs, and return whether this call did.

        See `archive.queue.cancellation`.

        Raises:
            ProposalStateError: It has a result, or has failed.
            UnknownNameError: There is no such proposal.
        """
        cancelled = cancellation.cancel(self._connection, [id_], reason)[0]
        wake_trainers(self._connection.settings, CANCELLED)
        return cancelled

    def retry(self, id_: str) -> bool:
        """Put a proposal that failed or was cancelled back into the queue.

        Return whether this call did.

        Raises:
            ProposalStateError: It is running, or has a result.
            UnknownNameError: There is no such proposal.
        """
        retried = cancellation.retry(self._connection, [id_])[0]
        self._restart_claims()
        return retried

    def expire(self, study: str | None = None) -> int:
        """Put proposals with an expired lease back into the queue, and return their number.

        `claim` does the same; this method is for a study that no worker serves any more.
        """
        ids = self._connection.read(lambda tx: claims.expired(tx, study))
        if not ids:
            return 0

        expired = self._connection.write(lambda tx: claims.expire(tx, ids, self._limit))
        self._claimer.forget()
        return expired

    def list(self, study: str, states: Iterable[State] | None = None) -> builtins.list[Proposal]:
        """Return the proposals of a study by number, all or those in some states."""
        return lookups.of_study(self._connection, study, states)

    def get(self, id_: str) -> Proposal:
        """Return one proposal.

        Raises:
            UnknownNameError: There is no such proposal.
        """
        proposals = lookups.of_ids(self._connection, [id_])
        if not proposals:
            raise lookups.unknown(id_)

        return proposals[0]

    def pending(self, study: str) -> builtins.list[tuple[Proposal, Architecture]]:
        """Return waiting and running proposals with their architectures.

        Agents must not propose these again.
        """
        proposals = self.list(study, [State.WAITING, State.RUNNING])
        networks = self._architectures.get_many(proposal.architecture_key for proposal in proposals)
        return [(proposal, networks[proposal.architecture_key]) for proposal in proposals]

    def register_agent(self, kind: str, config: Mapping[str, Any], version: str) -> str:
        """Store an agent and return its id.

        The id is the same for the same kind, configuration and version.
        """
        return creation.register_agent(self._connection, kind, config, version)

    def register_worker(
        self, worker: str, host: str | None = None, device: str | None = None
    ) -> None:
        """Store a worker, or its changed properties; closing the archive stores its end."""
        workers.beat(self._connection, worker, host=host, device=device)
        self.registered.add(worker)

    def worker_heartbeat(self, worker: str) -> None:
        """Store that a worker is alive, whether or not it holds a proposal."""
        workers.beat(self._connection, worker)

    def _restart_claims(self) -> None:
        """Wake trainers, and forget the candidates of an earlier look.

        Other proposals may come first now.
        """
        self._claimer.forget()
        wake_trainers(self._connection.settings)

    def _settle_part(self, part: Sequence[Notice]) -> builtins.list[Answer]:
        """Store a part of notices in one transaction.

        `settle_held` stores reports and results in few statements, if all senders hold their
        proposals. Otherwise `settle` decides about each notice.
        """
        alone = len(part) > LONG
        settle = partial(updates.settle_held, notices=part)
        reports = all(isinstance(notice, Report) for notice in part)
        if updates.may_be_held(part) and self._connection.write(settle, alone=alone, single=True):
            answers: builtins.list[Answer] = [True] * len(part)
        else:
            answers = self._connection.write(
                partial(updates.settle, notices=part, limit=self._limit), alone=alone
            )
            if not reports:
                self._restart_claims()

        if not reports:
            wake_searches(self._connection.settings)

        return answers

    def _settle(self, notice: Notice) -> bool:
        if isinstance(answer := self.settle([notice])[0], ArchiveError):
            raise answer

        return answer

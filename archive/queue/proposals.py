"""Proposals: from an agent's suggestion, through a worker's lease, to a result or the reason of a failure.

Agents and trainers meet here and nowhere else. Every call is one retryable transaction, and a repetition of the same
call changes nothing more: `create` and `claim` carry a token for that, the others name the state that they lead to.
A lost lease does not lose a result: the first result to arrive is kept.
"""

from __future__ import annotations

import builtins
import math
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

from archive.architecture.graph import Architecture
from archive.database.write_lock import LONG
from archive.errors import ArchiveError, UnknownNameError
from archive.queue import cancellation, claims, lookups, updates, workers
from archive.queue.admission import Request, Suggestion, admit
from archive.queue.updates import LEASE_SECONDS, Answer, Completion, Failure, Notice, Release, Report, milliseconds
from archive.store import participants, studies
from archive.store.architectures import Architectures
from archive.store.records import Claim, Curve, Proposal, Result, State, Study

if TYPE_CHECKING:
    from neo4j import ManagedTransaction

    from archive.database.connection import Connection

__all__ = ["Claim", "Proposal", "Proposals", "Result", "State", "Suggestion"]

MAX_ATTEMPTS = 3
LOST_SECONDS = 1.0  # minimum interval between searches for expired leases by a caller that polls


class Proposals:
    """Creates, leases and completes proposals. Safe to share between threads and, through the database, machines."""

    def __init__(
        self, connection: Connection, architectures: Architectures, *, max_attempts: int = MAX_ATTEMPTS
    ) -> None:
        """Read and write through this connection; a proposal FAILS when `max_attempts` workers have lost it."""
        self._connection, self._architectures, self._limit = connection, architectures, max_attempts
        self._studies: dict[str, Study] = {}
        self._lost_at: dict[str | None, float] = {}

    def create(
        self,
        study: str,
        agent_id: str,
        suggestions: Sequence[Suggestion],
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

        Architectures, layers, edges, proposals, known results and `MORPHED_INTO` are one transaction. Searches that add
        to one study at the same moment do so one after the other.

        Args:
            study: Name of the study.
            agent_id: Return value of `register_agent`.
            suggestions: Networks to evaluate; see `archive.queue.admission.Suggestion`.
            budget: The caller's own limit on the study's proposals that have not failed, beside the study's.
            outcomes: For each suggestion, its result where that is known already (from a table, or from
                `archive.queue.reuse`), or the reason why it failed; None for a suggestion that has to be evaluated.
            most: Number of suggestions to add at most, the first ones that are new; None for all.
            after: Number of proposals that the study must have; with another number, another search was faster, and
                nothing is stored.
            unique: Whether to leave out networks whose functional key the study has, whatever became of them.
            token: Makes a call known as a repetition of an earlier one, whose proposals it then returns.
            basis: The agent's knowledge when it suggested, JSON-able.
            seconds: Time that the agent took to suggest.

        Returns:
            The new proposals; fewer than asked for where the budget or a repeat forbids.

        Raises:
            UnknownNameError: There is no such study or agent.
        """
        request = Request(
            study,
            agent_id,
            list(suggestions),
            budget,
            unique=unique,
            token=token or uuid.uuid4().hex,
            basis=basis,
            seconds=seconds,
            outcomes=None if outcomes is None else list(outcomes),
            after=after,
            most=most,
        )
        return admit(self._connection, request, again=token is not None)

    def claim(self, worker: str, *, study: str | None = None, lease_seconds: float = LEASE_SECONDS) -> Claim | None:
        """Take the next proposal, of one study or of any; None when nothing waits.

        Exactly one of all callers gets a proposal. A proposal whose lease ran out is to be had again, until
        `max_attempts` workers have lost it.
        """
        wish = claims.Wish(worker, uuid.uuid4().hex, study, milliseconds(lease_seconds), self._limit)
        return next(iter(self._claim(wish)), None)

    def claim_many(
        self,
        worker: str,
        most: int,
        *,
        study: str | None = None,
        lease_seconds: float = LEASE_SECONDS,
        whole: bool = False,
    ) -> builtins.list[Claim]:
        """Take several proposals in one transaction, by number, under one token; none when nothing waits.

        Never more than the worker's part of what waits, so that others who work on the same queue get theirs; with
        `whole`, for who answers at once, as many as wait. See `archive.queue.claims.Wish` for what that leaves out.
        """
        wish = claims.Wish(worker, uuid.uuid4().hex, study, milliseconds(lease_seconds), self._limit, most, whole)
        return self._claim(wish) if most > 0 else []

    def settle(self, several: Sequence[Notice]) -> builtins.list[Answer]:
        """Store what a worker has to say of its proposals in one transaction; see `archive.queue.updates`.

        Args:
            several: Reports, completions, failures and releases, of any proposals.

        Returns:
            To each notice, True where it stands, False where another's result was first, or why it was refused
            (`LeaseLostError`, `UnknownNameError`).

        Raises:
            UsageError: The lists of a curve differ in length; then nothing is stored.
        """
        updates.check(several)
        work, alone = partial(updates.settle, notices=several, limit=self._limit), len(several) > LONG
        return self._connection.write(work, alone=alone) if several else []

    def heartbeat(self, id_: str, token: str, lease_seconds: float = LEASE_SECONDS) -> None:
        """Lengthen a lease from now on.

        Raises:
            LeaseLostError: The proposal is another worker's, back in the queue, or done.
        """
        self._settle(Report(id_, token, None, lease_seconds))

    def report(self, id_: str, token: str, curve: Curve, lease_seconds: float = LEASE_SECONDS) -> None:
        """Store the whole curve so far, one value a metric and epoch, and lengthen the lease.

        Raises:
            LeaseLostError: The proposal is another worker's, back in the queue, or done.
            UsageError: The lists of the curve differ in length.
        """
        self._settle(Report(id_, token, curve, lease_seconds))

    def complete(self, id_: str, token: str, result: Result, *, pruned: bool = False) -> bool:
        """Store a result: evaluation, curve, metrics and checkpoint in one transaction with the proposal's state.

        A result is taken from a worker that has lost its lease too, and for a proposal given up as FAILED, unless
        there is a result already.

        Returns:
            Whether the result on record is this worker's; False when another's was first.
        """
        return self._settle(Completion(id_, token, result, pruned))

    def fail(self, id_: str, token: str, reason: str, retry: bool = False, log: str | None = None) -> None:
        """Store why training failed; with `retry`, let another worker try while attempts are left.

        Raises:
            LeaseLostError: The proposal is another worker's, or done.
        """
        self._settle(Failure(id_, token, reason, retry, log))

    def release(self, id_: str, token: str) -> None:
        """Hand a proposal back untried: a worker that leaves in order costs it no attempt.

        Raises:
            LeaseLostError: The proposal is another worker's, or done.
        """
        self._settle(Release(id_, token))

    def prioritise(self, id_: str, priority: float) -> None:
        """Set the priority of a proposal: larger is claimed first, and agents' own have 0.

        Raises:
            UnknownNameError: There is no such proposal.
        """
        lookups.prioritise(self._connection, id_, float(priority))

    def cancel(self, id_: str, reason: str | None = None) -> bool:
        """Cancel a proposal that waits or runs, and return whether this call did; see `archive.queue.cancellation`.

        Raises:
            ProposalStateError: It has a result, or has failed.
            UnknownNameError: There is no such proposal.
        """
        return cancellation.cancel(self._connection, [id_], reason)[0]

    def retry(self, id_: str) -> bool:
        """Put a proposal that failed or was cancelled back into the queue, and return whether this call did.

        Raises:
            ProposalStateError: It is running, or has a result.
            UnknownNameError: There is no such proposal.
        """
        return cancellation.retry(self._connection, [id_])[0]

    def expire(self, study: str | None = None) -> int:
        """Put proposals whose lease ran out back into the queue, and return how many there were.

        `claim` does as much; this is for a study that no worker serves any more.
        """
        ids = self._connection.read(lambda tx: claims.expired(tx, study))
        return self._connection.write(lambda tx: claims.expire(tx, ids, self._limit)) if ids else 0

    def list(self, study: str, states: Iterable[State] | None = None) -> builtins.list[Proposal]:
        """Return the proposals of a study by number, all or those in some states."""
        return lookups.of_study(self._connection, study, states)

    def get(self, id_: str) -> Proposal:
        """Return one proposal.

        Raises:
            UnknownNameError: There is no such proposal.
        """
        found = lookups.of_ids(self._connection, [id_])
        if not found:
            raise UnknownNameError("proposal", id_, ())
        return found[0]

    def pending(self, study: str) -> builtins.list[tuple[Proposal, Architecture]]:
        """Return what waits or runs, with the architectures, for agents that must not propose it again."""
        found = self.list(study, [State.WAITING, State.RUNNING])
        networks = self._architectures.get_many(proposal.architecture_key for proposal in found)
        return [(proposal, networks[proposal.architecture_key]) for proposal in found]

    def register_agent(self, kind: str, config: Mapping[str, Any], version: str) -> str:
        """Store what an agent is and return its id, the same for the same kind, configuration and version."""
        return participants.register_agent(self._connection, kind, config, version)

    def register_worker(self, worker: str, host: str | None = None, device: str | None = None) -> None:
        """Store a worker, or what is new about it."""
        workers.beat(self._connection, worker, host=host, device=device)

    def worker_heartbeat(self, worker: str) -> None:
        """Store that a worker is alive, whether or not it holds a proposal."""
        workers.beat(self._connection, worker)

    def _claim(self, wish: claims.Wish) -> builtins.list[Claim]:
        many, runs, seen = wish.count > LONG, count(), None
        if many:
            # Callers that claim many poll often and usually find nothing: a cheap read comes first.
            lost = time.monotonic() - self._lost_at.get(wish.study, -math.inf) > LOST_SECONDS
            seen = self._connection.read(lambda tx: claims.look(tx, wish, lost=lost))
            if wish.whole and lost and not seen.waiting:
                self._lost_at[wish.study] = time.monotonic()
            if not seen:
                return []

        def work(tx: ManagedTransaction) -> builtins.list[claims.Taken]:
            # A second run means that the first one's acknowledgement may be what was lost.
            repeated = next(runs) > 0
            return claims.claim(tx, wish, again=repeated, seen=None if repeated else seen)

        # Callers that claim many collide: all of them want the head of the queue.
        taken = self._connection.write(work, lane="claims" if many else None)
        # The leases of those that cannot be read here run out.
        networks = self._architectures.get_readable(one.proposal.architecture_key for one in taken)
        return [
            Claim(one.proposal, network, self._study(one.proposal.study, one.study_created), wish.token)
            for one in taken
            if (network := networks.get(one.proposal.architecture_key)) is not None
        ]

    def _settle(self, notice: Notice) -> bool:
        (answer,) = self.settle([notice])
        if isinstance(answer, ArchiveError):
            raise answer
        return answer

    def _study(self, name: str, created: int | None) -> Study:
        # What a claim tells of a study never changes, but for the budget, which is no worker's concern. A study of the
        # same name that was made later, in an archive that was emptied or replaced meanwhile, is another one.
        study = self._studies.get(name)
        if study is None or study.created != created:
            study = self._studies[name] = studies.read(self._connection, name)
        return study

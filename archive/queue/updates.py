"""Notices of a worker about the proposals that it holds, any number of them in one transaction.

    Report        new entries of the curve, or only a heartbeat: renews the lease
    Completion    the result
    Failure       the reason why there is no result
    Release       the return to the queue without an attempt; with a cause, the worker does not get it again

Each notice gets a separate answer: whether the result on record is the sender's, or the error that
refuses the notice. Repeated notices change nothing more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from archive.database import messages
from archive.errors import ArchiveError, LeaseLostError
from archive.queue import leases, lookups, promotions, workers
from archive.queue.causes import Cause, MemoryNeed
from archive.queue.completion import ProposalResult, complete, complete_held
from archive.queue.leases import End, ProposalChange, Row, milliseconds
from archive.queue.successive_halving import RungResult
from archive.store import properties
from archive.store.properties import curve_properties, result_properties, study_of
from archive.store.records import Curve, Result, State

if TYPE_CHECKING:
    from neo4j import ManagedTransaction

LEASE_SECONDS = 15.0
_REST_BYTES = 6000  # of a notice without its curve and metrics, with the end of a log

# Locks, tests and changes in one step; `reaches` and `extended` are of `archive.store.properties`.
RENEW = """
UNWIND $rows AS row
MATCH (p:Proposal {{id: row.id}})
USING INDEX SEEK p:Proposal(id)
SET p.touched = timestamp()
WITH p, row WHERE p.state = 'RUNNING' AND p.token = row.token{reaches}
SET {curve}p.lease = row.lease, p.lease_until = timestamp() + row.lease, p.suspected = null
RETURN count(*) AS renewed
"""


@dataclass(frozen=True, slots=True)
class Report:
    """A trial is running.

    Attributes:
        id: Id of the proposal.
        token: Token of the claim.
        curve: The whole curve so far, one value per metric and epoch; None if nothing is new.
        lease_seconds: Duration of the lease from now on.
        begin: Number of entries of each list that the store has, as far as the sender knows: they
            are not sent.
    """

    id: str
    token: str
    curve: Curve | None = None
    lease_seconds: float = LEASE_SECONDS
    begin: int = 0


@dataclass(frozen=True, slots=True)
class Completion:
    """A trial has its result.

    Attributes:
        id: Id of the proposal.
        token: Token of the claim.
        result: The result.
        pruned: Whether the training stopped before its end; at a rung, it may continue.
        rung: Index of the rung that it was trained to, in a study with rungs; None for a whole
            training.
        architecture: Key of the network that was trained; None where the sender does not know. In
            an archive that was emptied and filled again, the id may belong to another network.
    """

    id: str
    token: str
    result: Result
    pruned: bool = False
    rung: int | None = None
    architecture: str | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """A trial has failed.

    Attributes:
        id: Id of the proposal.
        token: Token of the claim.
        reason: Reason in words.
        retry: Whether another worker may try while attempts are left.
        log: End of the trial's log.
        cause: Kind of the reason.
        memory: Memory of a trial that ran out of it, which decides instead of `retry`.
    """

    id: str
    token: str
    reason: str
    retry: bool = False
    log: str | None = None
    cause: Cause | None = None
    memory: MemoryNeed | None = None


@dataclass(frozen=True, slots=True)
class Release:
    """A trial was not finished, for a reason outside the trial.

    Attributes:
        id: Id of the proposal.
        token: Token of the claim.
        reason: Reason in words.
        cause: Cause of the worker's failure to train it; the worker does not get the proposal
            again. None for an orderly return.
        log: End of the trial's log.
    """

    id: str
    token: str
    reason: str | None = None
    cause: Cause | None = None
    log: str | None = None


Notice = Report | Completion | Failure | Release
Answer = bool | ArchiveError


def check(notices: Sequence[Notice]) -> None:
    """Check that all notices can be stored, before any is.

    Raises:
        UsageError: The lists of a curve differ in length.
    """
    for notice in notices:
        if isinstance(notice, Report) and notice.curve is not None:
            curve_properties(notice.curve)
        elif isinstance(notice, Completion):
            result_properties(notice.result)


def parts(notices: Sequence[Notice]) -> Iterator[list[Notice]]:
    """Cut notices, in their order, into parts that fit in a message to the server.

    Each part is one transaction.
    """
    return messages.parts(notices, _bytes)


def may_be_held(notices: Sequence[Notice]) -> bool:
    """Return whether notices are reports, or results without rungs.

    `settle_held` may store these.
    """
    if all(isinstance(notice, Report) for notice in notices):
        return True

    whole = {
        notice.id for notice in notices if isinstance(notice, Completion) and notice.rung is None
    }
    return len(whole) == len(notices)


def settle_held(tx: ManagedTransaction, notices: Sequence[Notice]) -> bool:
    """Store reports or results in a few statements.

    False if some were not stored, and `settle` must store all.

    Args:
        tx: A transaction, or a session.
        notices: The notices (`may_be_held`), whose senders most likely hold their proposals.
    """
    results = [_result_of(notice) for notice in notices if isinstance(notice, Completion)]
    if results:
        return complete_held(tx, results) == len(notices)

    return _renew_held(tx, [notice for notice in notices if isinstance(notice, Report)]) == len(
        notices
    )


def settle(tx: ManagedTransaction, notices: Sequence[Notice], limit: int) -> list[Answer]:
    """Store notices, in their order, and return an answer to each.

    Senders may have lost their proposals.

    Args:
        tx: The transaction.
        notices: The notices.
        limit: Number of workers that may lose a proposal.
    """
    at_rungs = []
    out_of_memory = False
    for notice in notices:
        if isinstance(notice, Completion) and notice.rung is not None:
            at_rungs.append(_study(notice))
        elif isinstance(notice, Failure) and notice.memory is not None:
            out_of_memory = True

    rungs = promotions.lock(tx, at_rungs)
    rows = leases.lock(tx, map(attrgetter("id"), notices))
    largest = workers.largest_memory(tx) if out_of_memory else 0
    answers: list[Answer] = []
    changes: list[ProposalChange] = []
    ended: list[RungResult] = []
    results: list[ProposalResult] = []
    for notice in notices:
        answer, change = _decide(rows.get(notice.id), notice, limit, largest)
        answers.append(answer)
        if change is None:
            continue

        if isinstance(notice, Completion):
            outcome = _result_at_rung(rows[notice.id], notice)
            change = outcome.change(change, rungs.get(_study(notice)))
            ended.append(outcome)
            again = bool(outcome.before)
            results.append(
                ProposalResult(
                    notice.id, _state(notice), outcome.result, change.properties, again=again
                )
            )
        else:
            changes.append(change)

        rows[notice.id] = leases.after(rows[notice.id], change)

    leases.apply(tx, changes)
    complete(tx, results)
    promotions.pause(tx, ended)
    promotions.promote(tx, rungs, ended)
    return answers


def _renew_held(tx: ManagedTransaction, reports: Iterable[Report]) -> int:
    """Renew the leases that are held, and return their number.

    There is one statement for each set of lists to extend.
    """
    alike: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for report in sorted(reports, key=attrgetter("id")):
        curve = {} if report.curve is None else curve_properties(report.curve, report.begin)
        row = {
            "id": report.id,
            "token": report.token,
            "lease": milliseconds(report.lease_seconds),
            "curve": curve,
        }
        names = tuple(sorted(curve)) if report.begin else ()
        alike.setdefault(names, []).append({**row, "begin": report.begin})

    renewed = 0
    for names, rows in alike.items():
        renewed += int(tx.run(_renewal(names), rows=rows).single(strict=True)["renewed"])

    return renewed


@lru_cache
def _renewal(names: tuple[str, ...]) -> str:
    """Return the statement that renews leases and extends these lists.

    Lists in the rows are replaced instead.
    """
    if not names:
        return RENEW.format(reaches="", curve="p += row.curve, ")

    extended = properties.extend_curve("p", "row.begin", "row.curve", names)
    return RENEW.format(
        reaches=f" AND {properties.curve_reaches('p', 'row.begin', names)}", curve=f"{extended}, "
    )


def _result_of(notice: Completion) -> ProposalResult:
    return ProposalResult(
        notice.id,
        _state(notice),
        notice.result,
        holder=notice.token,
        architecture=notice.architecture,
    )


def _state(notice: Completion) -> State:
    return State.PRUNED if notice.pruned else State.COMPLETE


def _decide(
    row: Row | None, notice: Notice, limit: int, largest: int
) -> tuple[Answer, ProposalChange | None]:
    """Return the answer to a notice, and the change of the locked proposal.

    None for the change if nothing is left to change.
    """
    if row is None:
        return lookups.unknown(notice.id), None

    try:
        change = _change(row, notice, limit, largest)
    except ArchiveError as error:
        return error, None

    return (row["token"] == notice.token if change is None else True), change


def _change(row: Row, notice: Notice, limit: int, largest: int) -> ProposalChange | None:
    """Return what a notice changes; None where nothing is left to change."""
    match notice:
        case Report():
            return leases.renew(row, notice.token, milliseconds(notice.lease_seconds), notice.curve)
        case Completion():
            if notice.architecture not in (None, row["architecture"]):
                raise LeaseLostError(notice.id, "it belongs to another network here")

            # The first result stays. A worker that has lost its lease may deliver it, too.
            return (
                None
                if _has_result(row, notice)
                else leases.finish(row, notice.token, _state(notice))
            )
        case Failure():
            end = End("failed", notice.reason, notice.cause, notice.log)
            if notice.memory is not None:
                return leases.exhaust(row, notice.token, end, limit, notice.memory, largest)

            return leases.fail(row, notice.token, end, limit, retry=notice.retry)
        case Release():
            refusal = (
                None
                if notice.cause is None
                else End("returned", notice.reason, notice.cause, notice.log)
            )
            return leases.release(row, notice.token, refusal)


def _has_result(row: Row, notice: Completion) -> bool:
    state = State(row["state"])
    if notice.rung is None or state is State.COMPLETE:
        return state.evaluated

    # A late result may find the proposal promoted, and training to a later rung.
    return len(row["rung_values"] or ()) > notice.rung


def _result_at_rung(row: Row, notice: Completion) -> RungResult:
    result = replace(notice.result, partial=notice.pruned)
    before = tuple(row["rung_values"] or ())
    constrained = tuple(row["rung_constrained"] or ())
    return RungResult(notice.id, notice.token, notice.rung, result, before, constrained)


def _study(notice: Completion | RungResult) -> str:
    return study_of(notice.id)


def _bytes(notice: Notice) -> int:
    match notice:
        case Report(curve=curve, begin=begin):
            return _REST_BYTES + 9 * sum(len(values) - begin for values in (curve or {}).values())
        case Completion(result=result):
            return (
                _REST_BYTES
                + 9 * sum(map(len, result.curve.values()))
                + messages.encoded_size(result.metrics)
            )

    return _REST_BYTES

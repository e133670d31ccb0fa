"""Notices: what a worker has to say of the proposals that it holds, any number of them in one transaction.

    Report        the curve so far, or only that it still trains: the lease begins anew
    Completion    the result
    Failure       why there is none
    Release       it goes back into the queue as if it had never been claimed

Each is answered for itself: whether the result on record is the sender's, or why the notice was refused. The same
notices again change nothing more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from archive.errors import ArchiveError, LeaseLostError, UnknownNameError
from archive.queue import leases, successive_halving
from archive.queue.completion import ProposalResult, complete, complete_held
from archive.queue.leases import Change, Row
from archive.queue.successive_halving import Ended
from archive.store.properties import curve_properties, result_properties, study_of
from archive.store.records import Curve, Result, State

if TYPE_CHECKING:
    from neo4j import ManagedTransaction

LEASE_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Report:
    """A trial goes on; `curve` is all of it so far, one value a metric and epoch, None where nothing is new."""

    id: str
    token: str
    curve: Curve | None = None
    lease_seconds: float = LEASE_SECONDS


@dataclass(frozen=True, slots=True)
class Completion:
    """A trial has its result.

    Attributes:
        id: Of the proposal.
        token: Of the claim.
        result: What was found.
        pruned: Whether the training could go on: at a rung, it may.
        rung: The rung that it was trained to, in a study that has some; None for a training of the whole.
        architecture: Key of the network that was trained; None where the sender does not know. In an archive that
            was made anew, the id may be another network's.
    """

    id: str
    token: str
    result: Result
    pruned: bool = False
    rung: int | None = None
    architecture: str | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """A trial has none; with `retry`, another worker may try while attempts are left. `log` is its own log's end."""

    id: str
    token: str
    reason: str
    retry: bool = False
    log: str | None = None


@dataclass(frozen=True, slots=True)
class Release:
    """A trial was not finished, through no fault of its own."""

    id: str
    token: str


Notice = Report | Completion | Failure | Release
Answer = bool | ArchiveError


def check(notices: Sequence[Notice]) -> None:
    """See that the notices can be stored, before anything is.

    Raises:
        UsageError: The lists of a curve differ in length.
    """
    for notice in notices:
        if isinstance(notice, Report) and notice.curve is not None:
            curve_properties(notice.curve)
        elif isinstance(notice, Completion):
            result_properties(notice.result)


def settle(tx: ManagedTransaction, notices: Sequence[Notice], limit: int) -> list[Answer]:
    """Store notices, in their order, and return an answer to each.

    Args:
        tx: The transaction.
        notices: What to store.
        limit: How many workers may lose a proposal.
    """
    if _at_once(tx, notices):
        return [True] * len(notices)
    # Senders that hold their proposal no longer get an answer of their own.
    racing = successive_halving.lock(
        tx, [_study(each) for each in notices if isinstance(each, Completion) and each.rung is not None]
    )
    rows = leases.lock(tx, [notice.id for notice in notices])
    answers: list[Answer] = []
    changes: list[Change] = []
    ended: list[Ended] = []
    results: list[ProposalResult] = []
    for notice in notices:
        answer, change = _decide(rows.get(notice.id), notice, limit)
        answers.append(answer)
        if change is None:
            continue
        if isinstance(notice, Completion):
            one = _ended(rows[notice.id], notice)
            change = one.change(change, racing.get(_study(notice)))
            ended.append(one)
            results.append(
                ProposalResult(one.id, _state(notice), one.result, change.properties, again=bool(one.before))
            )
        else:
            changes.append(change)
        rows[notice.id] = leases.after(rows[notice.id], change)
    leases.apply(tx, changes)
    complete(tx, results)
    successive_halving.pause(tx, ended)
    for study in sorted({_study(one) for one in ended} & racing.keys()):
        successive_halving.promote(tx, study, *racing[study])
    return answers


def _at_once(tx: ManagedTransaction, notices: Sequence[Notice]) -> bool:
    """Store what can be stored in one step; False where that was not all, which does no harm to say again."""
    reports = [one for one in notices if isinstance(one, Report)]
    if len(reports) == len(notices):
        renewals = ((one.id, one.token, milliseconds(one.lease_seconds), one.curve) for one in reports)
        return leases.renew_held(tx, renewals) == len(notices)
    results = {one.id: _held(one) for one in notices if isinstance(one, Completion) and one.rung is None}
    return len(results) == len(notices) == complete_held(tx, [*results.values()])


def _held(notice: Completion) -> ProposalResult:
    return ProposalResult(
        notice.id, _state(notice), notice.result, holder=notice.token, architecture=notice.architecture
    )


def _state(notice: Completion) -> State:
    return State.PRUNED if notice.pruned else State.COMPLETE


def _decide(row: Row | None, notice: Notice, limit: int) -> tuple[Answer, Change | None]:
    """Return the answer to a notice, and the change of the locked proposal; None where nothing is left to change."""
    if row is None:
        return UnknownNameError("proposal", notice.id, ()), None
    try:
        change = _change(row, notice, limit)
    except ArchiveError as error:
        return error, None
    return (row["token"] == notice.token if change is None else True), change


def _change(row: Row, notice: Notice, limit: int) -> Change | None:
    """Return what a notice changes; None where nothing is left to change."""
    match notice:
        case Report():
            return leases.renew(row, notice.token, milliseconds(notice.lease_seconds), notice.curve)
        case Completion():
            if notice.architecture not in (None, row["architecture"]):
                raise LeaseLostError(notice.id, "it is of another network here")
            # The first result stays, and one is taken from a worker that has lost its lease, too.
            return None if _has_result(row, notice) else leases.finish(row, notice.token, _state(notice))
        case Failure():
            return leases.fail(row, notice.token, notice.reason, limit, retry=notice.retry, log=notice.log)
        case Release():
            return leases.release(row, notice.token)


def _has_result(row: Row, notice: Completion) -> bool:
    state = State(row["state"])
    if notice.rung is None or state is State.COMPLETE:
        return state.evaluated
    # One that comes late may find the proposal promoted, and on its way to a rung that it does not speak of.
    return len(row["rung_values"] or ()) > notice.rung


def _ended(row: Row, notice: Completion) -> Ended:
    result, before = replace(notice.result, partial=notice.pruned), tuple(row["rung_values"] or ())
    return Ended(notice.id, notice.token, notice.rung, result, before)


def _study(notice: Completion | Ended) -> str:
    return study_of(notice.id)


def milliseconds(seconds: float) -> int:
    """Return the whole milliseconds of a lease, at least one."""
    return max(1, round(1000 * seconds))

"""Event log of a study: suggestions, attempts and outcomes of its proposals, in the order of time.

    proposed ──> claimed ──> complete | pruned                       with the value
                    ├──────> failed                                  with the reason and the end of the trial's log
                    ├──────> lost | returned ──> claimed ──> …       claimed by another worker
                    └──────> pruned ──> promoted ──> claimed ──> …   from one rung to the next
                    (`archive.queue.successive_halving`)
    cancelled | failed ──> retried ──> claimed ──> …                 by a user (`archive.queue.cancellation`)

Every claim is a `CLAIMED` relationship, which also holds how it ended if it gave no result. All
times are the server's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal

from archive.errors import UnknownNameError
from archive.store.properties import from_json
from archive.store.records import CANCELLED, State, is_cancelled

if TYPE_CHECKING:
    from neo4j import ManagedTransaction

    from archive.database.connection import Connection

Event = Literal[
    "proposed",
    "claimed",
    "failed",
    "lost",
    "returned",
    "complete",
    "pruned",
    "promoted",
    "cancelled",
    "retried",
]

Row = Mapping[str, Any]

PROPOSALS = """
MATCH (:Study {name: $study})-[:PROPOSED]->(p:Proposal)
WHERE ($id IS NULL OR p.id = $id)
      AND ($since IS NULL OR p.created >= $since OR p.touched >= $since OR p.finished >= $since)
OPTIONAL MATCH (p)-[:RESULTED_IN]->(e:Evaluation)
RETURN p.id AS id, p.number AS number, p.state AS state, p.architecture AS architecture, p.agent AS agent,
       p.acquisition AS acquisition, p.mean AS mean, p.std AS std, p.fidelity AS fidelity,
       p.hyperparameters AS hyperparameters, p.based_on AS based_on, p.worker AS worker, p.token AS token,
       p.reason AS reason, p.created AS created, p.finished AS finished, p.cancelled AS cancelled,
       p.retried AS retried,
       e.value AS value, e.epochs AS epochs, e.seconds AS seconds, e.device AS device,
       e.answered_from AS answered_from
"""

CLAIMS = """
UNWIND $ids AS id
MATCH (p:Proposal {id: id})
MATCH (p)<-[c:CLAIMED]-(w:Worker)
RETURN p.id AS id, w.id AS worker, c.token AS token, c.at AS at, c.ended AS ended, c.outcome AS outcome,
       c.reason AS reason, c.cause AS cause, c.log AS log, c.promoted AS promoted, c.rung AS rung, c.value AS value,
       c.epochs AS epochs
ORDER BY id, at
"""

# Numbers of open and of evaluated proposals, the budget, and the server's time.
PROGRESS = """
MATCH (s:Study {name: $study})
OPTIONAL MATCH (s)-[:PROPOSED]->(p:Proposal)
WHERE $id IS NULL OR p.id = $id
RETURN s.budget AS budget, timestamp() AS now,
       sum(CASE WHEN p.state IN ['WAITING', 'RUNNING'] THEN 1 ELSE 0 END) AS open,
       sum(CASE WHEN p.state IN ['COMPLETE', 'PRUNED'] THEN 1 ELSE 0 END) AS evaluated
"""

OVERLAP = 60_000
"""Milliseconds by which two reads overlap: a late commit bears the time at which its transaction
began."""

STUDY = "MATCH (s:Study) RETURN s.name AS name ORDER BY s.created, name"


@dataclass(frozen=True)
class Entry:
    """One event.

    Attributes:
        at: Time in milliseconds since 1970, by the server's clock; None where it is not on record.
        proposal: Id of the proposal.
        number: Its number in the study.
        event: What happened.
        who: Id of the agent for `proposed`, of the worker for all other events; None for events
            that a user or the queue itself caused.
        details: Further properties: of a proposal its architecture, acquisition and basis; of a
            claim the attempt; of a failure the reason and its cause; of a result value, epochs,
            seconds and device, or the id of the evaluation that is reused.
        log: End of the trial's log, for a failure that left one.
    """

    at: int | None
    proposal: str
    number: int
    event: Event
    who: str | None
    details: Mapping[str, Any] = field(default_factory=dict)
    log: str | None = None


def read(connection: Connection, study: str, proposal: str | None = None) -> list[Entry]:
    """Return the events of a study, or of one proposal of it, the oldest first.

    Raises:
        UnknownNameError: There is no such study, or no such proposal in it.
    """
    entries = _entries(connection, study, proposal, None)
    if not entries:
        _check_names(connection, study, proposal)

    return entries


class EventFollower:
    """Incremental reader of the events of a study, or of one proposal.

    Each call reads only changed proposals.

    Args:
        connection: Connection to the archive.
        study: Name of the study.
        proposal: Id of the one proposal to follow; None for all.

    Attributes:
        done: Whether no event can follow: all proposals have ended, and the budget is spent.
    """

    def __init__(self, connection: Connection, study: str, proposal: str | None = None) -> None:
        """Begin before the first event."""
        self.done = False
        self._connection = connection
        self._study = study
        self._proposal = proposal
        self._since: int | None = None
        self._seen: set[tuple[int | None, str, str]] = set()

    def look(self) -> list[Entry]:
        """Return the events since the last call, the oldest first; the first call returns all.

        Raises:
            UnknownNameError: There is no such study, or no such proposal in it.
        """
        # This query comes first, so that a proposal that ends between the two queries is still
        # reported.
        parameters = {"study": self._study, "id": self._proposal}
        progress = self._connection.read(lambda tx: tx.run(PROGRESS, parameters).single())
        entries = _entries(self._connection, self._study, self._proposal, self._since)
        if progress is None or (self._since is None and not entries):
            _check_names(self._connection, self._study, self._proposal)

        if progress is not None:
            self.done = not progress["open"] and bool(
                self._proposal or progress["evaluated"] >= progress["budget"]
            )
            self._since = progress["now"] - OVERLAP

        new = []
        seen = self._seen.copy()
        for entry in entries:
            identity = (entry.at, entry.proposal, entry.event)
            if identity not in self._seen:
                new.append(entry)
                seen.add(identity)

        self._seen = seen
        return new


def _entries(
    connection: Connection, study: str, proposal: str | None, since: int | None
) -> list[Entry]:
    def work(tx: ManagedTransaction) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        # Not sorted by the server: ArcadeDB sorts in its heap, which many thousand records exceed.
        rows = tx.run(PROPOSALS, study=study, id=proposal, since=since).data()
        proposals = sorted(rows, key=lambda row: row["number"])
        return proposals, tx.run(CLAIMS, ids=[row["id"] for row in proposals]).data()

    proposals, claims = connection.read(work)
    by_proposal = {id_: list(rows) for id_, rows in groupby(claims, key=lambda row: str(row["id"]))}
    entries: list[Entry] = []
    for row in proposals:
        entries += _of_proposal(row, by_proposal.get(row["id"], []))

    # The sort is stable: events of equal time keep their causal order.
    return sorted(entries, key=lambda entry: (entry.at is None, entry.at or 0))


def _check_names(connection: Connection, study: str, proposal: str | None) -> None:
    names = [row["name"] for row in connection.read(lambda tx: tx.run(STUDY).data())]
    if study not in names:
        raise UnknownNameError("study", study, names, "the archive has none yet")

    if proposal is not None:
        raise UnknownNameError("proposal", proposal, (), f"study {study} has none of this id")


def _of_proposal(row: Row, claims: Sequence[Row]) -> list[Entry]:
    """Return the events of a proposal in their causal order."""
    cancelled = is_cancelled(State(row["state"]), row["reason"])
    failed = row["state"] == "FAILED" and not cancelled
    # Where the last attempt failed for good, its end is the end of the proposal.
    by_attempt = failed and bool(claims) and claims[-1]["outcome"] == "failed"
    times = row["cancelled"] or []
    entries = [_entry(row, row["created"], "proposed", row["agent"], _suggestion(row))]
    for time in row["retried"] or ():
        entries.append(_entry(row, time, "retried"))

    for time in times:
        reason = row["reason"] if cancelled and time == times[-1] else None
        entries.append(_entry(row, time, "cancelled", details={"reason": reason}))

    entries += _attempts(row, claims, by_attempt)
    if failed and not by_attempt:
        # One transaction records both ends, the claim's a moment after the proposal's. A user's
        # query records none.
        last = row["finished"]
        if last is not None and claims:
            last = max(last, claims[-1]["ended"] or 0)

        entries.append(_entry(row, last, "failed", row["worker"], {"reason": row["reason"]}))

    return [*entries, *_result(row, claims)]


def _attempts(row: Row, claims: Sequence[Row], by_attempt: bool) -> Iterator[Entry]:
    """Yield the claims of a proposal, their ends without a result, and its promotions.

    Args:
        row: The proposal.
        claims: Its claims, the first one first.
        by_attempt: Whether the last claim's end is the proposal's end, and has its reason.
    """
    attempt = 1
    retries = list(row["retried"] or ())
    for claim in claims:
        if retries and retries[0] <= claim["at"]:
            retries = [moment for moment in retries if moment > claim["at"]]
            attempt = 1

        yield _entry(row, claim["at"], "claimed", claim["worker"], {"attempt": attempt})
        if claim["outcome"] not in (None, CANCELLED):
            final = by_attempt and claim is claims[-1]
            reason = row["reason"] if final else claim["reason"]
            end = {"attempt": attempt, "reason": reason, "cause": claim["cause"]}
            if claim["outcome"] == "pruned":
                end = {
                    "value": claim["value"],
                    "epochs": claim["epochs"],
                    "rung": claim["rung"] + 1,
                }

            yield _entry(row, claim["ended"], claim["outcome"], claim["worker"], end, claim["log"])

        if claim["promoted"] is not None:
            yield _entry(row, claim["promoted"], "promoted", details={"rung": claim["rung"] + 2})

        # A returned claim costs no attempt, and a promotion resets the count.
        attempt = 1 if claim["promoted"] is not None else attempt + (claim["outcome"] != "returned")


def _result(row: Row, claims: Sequence[Row]) -> Iterator[Entry]:
    """Yield the result of a proposal, unless the end of a claim at a rung tells it."""
    outcomes = map(itemgetter("outcome"), claims)
    at_rung = row["state"] == "PRUNED" and "pruned" in outcomes
    if row["state"] not in ("COMPLETE", "PRUNED") or at_rung:
        return

    # The first result may have come from a worker that had lost its lease.
    sender = row["worker"]
    for claim in claims:
        if row["token"] is not None and claim["token"] == row["token"]:
            sender = claim["worker"]
            break

    result = {name: row[name] for name in ("value", "epochs", "seconds", "device", "answered_from")}
    yield _entry(row, row["finished"], row["state"].lower(), sender, result)


def _entry(
    row: Row,
    at: int | None,
    event: Event,
    who: str | None = None,
    details: Row | None = None,
    log: str | None = None,
) -> Entry:
    stored = {name: value for name, value in (details or {}).items() if value is not None}
    return Entry(at, row["id"], row["number"], event, who, stored, log or None)


def _suggestion(row: Row) -> dict[str, Any]:
    return {
        "architecture": row["architecture"],
        "acquisition": row["acquisition"],
        "mean": row["mean"],
        "std": row["std"],
        "fidelity": row["fidelity"],
        "hyperparameters": from_json(row["hyperparameters"]) or None,
        "based_on": from_json(row["based_on"]) or None,
    }

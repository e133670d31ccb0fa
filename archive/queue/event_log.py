"""What happened to the proposals of a study, in the order of time: who suggested, who tried, what came of it.

    proposed ──> claimed ──> complete | pruned                       with the value
                    ├──────> failed                                  with the reason and the end of the trial's log
                    ├──────> lost | returned ──> claimed ──> …       another worker's turn
                    └──────> pruned ──> promoted ──> claimed ──> …   from one rung to the next
                    (`archive.queue.successive_halving`)
    cancelled | failed ──> retried ──> claimed ──> …                 at a user's wish (`archive.queue.cancellation`)

Every claim is a `CLAIMED` relationship, which also says how it ended when it gave no result. All times are the
server's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal

from archive.errors import UnknownNameError
from archive.store.properties import from_json
from archive.store.records import CANCELLED, State, is_cancelled

if TYPE_CHECKING:
    from neo4j import ManagedTransaction

    from archive.database.connection import Connection

Event = Literal[
    "proposed", "claimed", "failed", "lost", "returned", "complete", "pruned", "promoted", "cancelled", "retried"
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
ORDER BY number
"""

CLAIMS = """
UNWIND $ids AS id
MATCH (p:Proposal {id: id})
MATCH (p)<-[c:CLAIMED]-(w:Worker)
RETURN p.id AS id, w.id AS worker, c.token AS token, c.at AS at, c.ended AS ended, c.outcome AS outcome,
       c.reason AS reason, c.log AS log, c.promoted AS promoted, c.rung AS rung, c.value AS value, c.epochs AS epochs
ORDER BY id, at
"""

# What is open, what counts towards the budget, and what time it is for the server.
STANDING = """
MATCH (s:Study {name: $study})
OPTIONAL MATCH (s)-[:PROPOSED]->(p:Proposal)
WHERE $id IS NULL OR p.id = $id
RETURN s.budget AS budget, timestamp() AS now,
       sum(CASE WHEN p.state IN ['WAITING', 'RUNNING'] THEN 1 ELSE 0 END) AS open,
       sum(CASE WHEN p.state IN ['COMPLETE', 'PRUNED'] THEN 1 ELSE 0 END) AS evaluated
"""

OVERLAP = 60_000
"""Milliseconds that two looks have in common: what is committed late bears the time at which it began."""

STUDY = "MATCH (s:Study) RETURN s.name AS name ORDER BY s.created, name"


@dataclass(frozen=True)
class Entry:
    """One thing that happened.

    Attributes:
        at: When, in milliseconds since 1970 by the server's clock; None where it is not on record.
        proposal: Id of the proposal.
        number: Its number in the study.
        event: What happened.
        who: The agent that proposed, or the worker that did the rest.
        details: What else is known: of a proposal its architecture, acquisition and basis; of a claim the attempt;
            of a failure the reason; of a result value, epochs, seconds and device,
            or the evaluation that it repeats.
        log: The end of the trial's own log, of a failure that left one.
    """

    at: int | None
    proposal: str
    number: int
    event: Event
    who: str | None
    details: Mapping[str, Any] = field(default_factory=dict)
    log: str | None = None


def read(connection: Connection, study: str, proposal: str | None = None) -> list[Entry]:
    """Return what happened in a study, or to one proposal of it, the oldest first.

    Raises:
        UnknownNameError: There is no such study, or no such proposal in it.
    """
    entries = _entries(connection, study, proposal, None)
    if not entries:
        _check_names(connection, study, proposal)
    return entries


class Follower:
    """Reads what is new in a study, or about one proposal of it, at each look; only what has changed is read again.

    Args:
        connection: The way to the archive.
        study: Name of the study.
        proposal: Id of the one proposal that is followed.

    Attributes:
        done: Whether nothing more can come: all has ended, and the budget is spent.
    """

    def __init__(self, connection: Connection, study: str, proposal: str | None = None) -> None:
        """Begin with nothing seen."""
        self.done = False
        self._connection, self._study, self._proposal = connection, study, proposal
        self._since: int | None = None
        self._seen: set[tuple[int | None, str, str]] = set()

    def look(self) -> list[Entry]:
        """Return what has happened since the last look, the oldest first; at the first one, everything.

        Raises:
            UnknownNameError: There is no such study, or no such proposal in it.
        """
        # Asked first: what ends between the two questions is still told.
        at = {"study": self._study, "id": self._proposal}
        standing = self._connection.read(lambda tx: tx.run(STANDING, at).single())
        entries = _entries(self._connection, self._study, self._proposal, self._since)
        if standing is None or (self._since is None and not entries):
            _check_names(self._connection, self._study, self._proposal)
        if standing is not None:
            self.done = not standing["open"] and bool(self._proposal or standing["evaluated"] >= standing["budget"])
            self._since = standing["now"] - OVERLAP
        new = [entry for entry in entries if (entry.at, entry.proposal, entry.event) not in self._seen]
        self._seen |= {(entry.at, entry.proposal, entry.event) for entry in new}
        return new


def _entries(connection: Connection, study: str, proposal: str | None, since: int | None) -> list[Entry]:
    def work(tx: ManagedTransaction) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        proposals = tx.run(PROPOSALS, study=study, id=proposal, since=since).data()
        return proposals, tx.run(CLAIMS, ids=[row["id"] for row in proposals]).data()

    proposals, claims = connection.read(work)
    held = {id_: list(rows) for id_, rows in groupby(claims, key=lambda row: str(row["id"]))}
    entries = [entry for row in proposals for entry in _of_proposal(row, held.get(row["id"], []))]
    # Stable: what has one time stays in the order in which it can only have happened.
    return sorted(entries, key=lambda entry: (entry.at is None, entry.at or 0))


def _check_names(connection: Connection, study: str, proposal: str | None) -> None:
    names = [row["name"] for row in connection.read(lambda tx: tx.run(STUDY).data())]
    if study not in names:
        raise UnknownNameError("study", study, names, "the archive has none yet")
    if proposal is not None:
        raise UnknownNameError("proposal", proposal, (), f"study {study} has none of this id")


def _of_proposal(row: Row, claims: list[dict[str, Any]]) -> list[Entry]:
    def entry(at: int | None, event: Event, who: str | None, details: Row, log: str | None = None) -> Entry:
        return Entry(at, row["id"], row["number"], event, who, _known(details), log or None)

    cancelled = is_cancelled(State(row["state"]), row["reason"])
    given_up = row["state"] == "FAILED" and not cancelled
    entries = [entry(row["created"], "proposed", row["agent"], _suggestion(row))]
    entries += [entry(at, "retried", None, {}) for at in row["retried"] or ()]
    for at in (times := row["cancelled"] or []):
        entries.append(
            entry(at, "cancelled", None, {"reason": row["reason"] if cancelled and at == times[-1] else None})
        )
    attempt, retries = 1, list(row["retried"] or ())
    for claim in claims:
        if retries and retries[0] <= claim["at"]:
            retries, attempt = [at for at in retries if at > claim["at"]], 1
        entries.append(entry(claim["at"], "claimed", claim["worker"], {"attempt": attempt}))
        if claim["outcome"] not in (None, CANCELLED):
            end = {"attempt": attempt, "reason": claim["reason"]}
            if given_up and claim["outcome"] == "failed" and claim is claims[-1]:
                given_up, end["reason"] = False, row["reason"]
            if claim["outcome"] == "pruned":
                end = {"value": claim["value"], "epochs": claim["epochs"], "rung": claim["rung"] + 1}
            entries.append(entry(claim["ended"], claim["outcome"], claim["worker"], end, claim["log"]))
        if claim["promoted"] is not None:
            entries.append(entry(claim["promoted"], "promoted", None, {"rung": claim["rung"] + 2}))
        # What was handed back had cost nothing, and what was promoted begins its count anew.
        attempt = 1 if claim["promoted"] is not None else attempt + (claim["outcome"] != "returned")
    at_rung = row["state"] == "PRUNED" and any(claim["outcome"] == "pruned" for claim in claims)
    if row["state"] in ("COMPLETE", "PRUNED") and not at_rung:
        # A worker that had lost its lease may still have been the first with a result.
        who = next(
            (claim["worker"] for claim in claims if row["token"] is not None and claim["token"] == row["token"]),
            row["worker"],
        )
        result = {name: row[name] for name in ("value", "epochs", "seconds", "device", "answered_from")}
        entries.append(entry(row["finished"], row["state"].lower(), who, result))
    elif given_up:
        # One transaction notes both ends, the claim's a moment after the proposal's.
        last = max([row["finished"], *(claim["ended"] or 0 for claim in claims[-1:])])
        entries.append(entry(last, "failed", row["worker"], {"reason": row["reason"]}))
    return entries


def _suggestion(row: Row) -> dict[str, Any]:
    return {
        **{name: row[name] for name in ("architecture", "acquisition", "mean", "std", "fidelity")},
        "hyperparameters": from_json(row["hyperparameters"]) or None,
        "based_on": from_json(row["based_on"]) or None,
    }


def _known(details: Row) -> dict[str, Any]:
    return {name: value for name, value in details.items() if value is not None}

"""What happened to the proposals of a study, in the order of time: who suggested, who tried, what came of it.

    proposed ──> claimed ──> complete | pruned                       with the value
                    ├──────> failed                                  with the reason and the end of the trial's log
                    └──────> lost | returned ──> claimed ──> …       another worker's turn

Every claim is a `CLAIMED` relationship, which also says how it ended when it gave no result. All times are the
server's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal

from archive.errors import UnknownNameError
from archive.rows import from_json

if TYPE_CHECKING:
    from neo4j import ManagedTransaction

    from archive.connection import Connection

Event = Literal["proposed", "claimed", "failed", "lost", "returned", "complete", "pruned"]

Row = Mapping[str, Any]

PROPOSALS = """
MATCH (:Study {name: $study})-[:PROPOSED]->(p:Proposal)
WHERE $id IS NULL OR p.id = $id
OPTIONAL MATCH (p)-[:RESULTED_IN]->(e:Evaluation)
RETURN p.id AS id, p.number AS number, p.state AS state, p.architecture AS architecture, p.agent AS agent,
       p.acquisition AS acquisition, p.mean AS mean, p.std AS std, p.fidelity AS fidelity,
       p.hyperparameters AS hyperparameters, p.based_on AS based_on, p.worker AS worker, p.token AS token,
       p.reason AS reason, p.created AS created, p.finished AS finished,
       e.value AS value, e.epochs AS epochs, e.seconds AS seconds, e.device AS device,
       e.answered_from AS answered_from
ORDER BY number
"""

CLAIMS = """
MATCH (:Study {name: $study})-[:PROPOSED]->(p:Proposal)
WHERE $id IS NULL OR p.id = $id
MATCH (p)<-[c:CLAIMED]-(w:Worker)
RETURN p.id AS id, w.id AS worker, c.token AS token, c.at AS at, c.ended AS ended, c.outcome AS outcome,
       c.reason AS reason, c.log AS log
ORDER BY id, at
"""

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

    def work(tx: ManagedTransaction) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        at = {"study": study, "id": proposal}
        return tx.run(PROPOSALS, at).data(), tx.run(CLAIMS, at).data()

    proposals, claims = connection.read(work)
    if not proposals:
        _check_names(connection, study, proposal)
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

    given_up = row["state"] == "FAILED"
    entries = [entry(row["created"], "proposed", row["agent"], _suggestion(row))]
    attempt = 1
    for claim in claims:
        entries.append(entry(claim["at"], "claimed", claim["worker"], {"attempt": attempt}))
        if claim["outcome"] is not None:
            end = {"attempt": attempt, "reason": claim["reason"]}
            if given_up and claim["outcome"] == "failed" and claim is claims[-1]:
                given_up, end["reason"] = False, row["reason"]
            entries.append(entry(claim["ended"], claim["outcome"], claim["worker"], end, claim["log"]))
        # What was handed back had cost nothing.
        attempt += claim["outcome"] != "returned"
    if row["state"] in ("COMPLETE", "PRUNED"):
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

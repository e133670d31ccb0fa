"""Reading of proposals, by study or by id, and setting of their priority."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from archive.errors import ProposalStateError, UnknownNameError
from archive.queue.admission import checked_priority
from archive.store.properties import proposal_from, to_json
from archive.store.records import Proposal, State

if TYPE_CHECKING:
    from neo4j import ManagedTransaction

    from archive.database.connection import Connection

# Sorted by the reader: ArcadeDB sorts in its heap, which the records of many thousand proposals
# exceed.
LIST = """
MATCH (s:Study {name: $study})-[:PROPOSED]->(p:Proposal)
WHERE $states IS NULL OR p.state IN $states
RETURN properties(p) AS proposal
"""

GET = """
UNWIND $ids AS id
MATCH (p:Proposal {id: id})
RETURN properties(p) AS proposal
ORDER BY p.number
"""

# Two MATCH clauses and no label on `p`, as in `archive.queue.admission.KNOWN`.
OF_NETWORK = """
MATCH (a:Architecture {functional_key: $key})
USING INDEX SEEK a:Architecture(functional_key)
MATCH (a)<-[:OF]-(p)
WHERE p.study = $study
RETURN properties(p) AS proposal
ORDER BY p.number
"""

HELD = """
UNWIND $rows AS row
MATCH (p:Proposal {id: row.id})
USING INDEX SEEK p:Proposal(id)
WHERE p.state = 'RUNNING' AND p.token = row.token
RETURN collect([p.id, p.token]) AS held
"""

LARGEST = """
MATCH (p:Proposal {state: 'WAITING'})
USING INDEX SEEK p:Proposal(state)
WHERE p.id <> $id
RETURN coalesce(max(p.priority), 0.0) AS largest
"""

PRIORITISE = """
MATCH (p:Proposal {id: $id})
SET p.priority = CASE WHEN p.state = 'COMPLETE' THEN p.priority ELSE $priority END
RETURN p.state AS state
"""


def of_study(
    connection: Connection, study: str, states: Iterable[State] | None = None
) -> list[Proposal]:
    """Return the proposals of a study by number, all or those in some states."""
    names = None if states is None else [state.value for state in states]
    rows = connection.read(lambda tx: tx.run(LIST, study=study, states=names).data())
    proposals = [proposal_from(row["proposal"]) for row in rows]
    return sorted(proposals, key=attrgetter("number"))


def of_ids(connection: Connection, ids: Sequence[str]) -> list[Proposal]:
    """Return the proposals of these ids that exist, by number."""
    if not ids:
        return []

    rows = connection.read(lambda tx: tx.run(GET, ids=ids).data())
    return [proposal_from(row["proposal"]) for row in rows]


def of_network(connection: Connection, study: str, functional_key: str) -> Proposal | None:
    """Return the first proposal of a study for a network; None where it has none."""
    first = f"{OF_NETWORK}LIMIT 1"
    row = connection.read(lambda tx: tx.run(first, study=study, key=functional_key).single())
    return None if row is None else proposal_from(row["proposal"])


def of_pair(
    connection: Connection, study: str, functional_key: str, hyperparameters: Mapping[str, Any]
) -> Proposal | None:
    """Return the first proposal of a study for a network with hyperparameters; None without one."""
    rows = connection.read(lambda tx: tx.run(OF_NETWORK, study=study, key=functional_key).data())
    text = to_json(hyperparameters)
    for row in rows:
        proposal = proposal_from(row["proposal"])
        if to_json(proposal.hyperparameters) == text:
            return proposal

    return None


def held(connection: Connection, claims: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return the pairs (id, token) that hold their proposals, by a read without locks."""
    rows = [{"id": id_, "token": token} for id_, token in claims]
    pairs = connection.read(
        lambda tx: tx.run(HELD, rows=rows).single(strict=True)["held"], single=True
    )
    return {(id_, token) for id_, token in pairs}


def prioritise(connection: Connection, id_: str, priority: float) -> None:
    """Set the priority of a proposal.

    Raises:
        ProposalStateError: It is complete.
        UnknownNameError: There is no such proposal.
        UsageError: The priority is not a finite number.
    """
    number = checked_priority(priority)
    connection.write(partial(_prioritise, id_=id_, priority=number))


def put_first(connection: Connection, id_: str) -> None:
    """Give a proposal a priority above all other waiting ones, of any study.

    Raises:
        ProposalStateError: It is complete.
        UnknownNameError: There is no such proposal.
    """

    def work(tx: ManagedTransaction) -> None:
        largest = float(tx.run(LARGEST, id=id_).single(strict=True)["largest"])
        _prioritise(tx, id_, max(largest + 1, math.nextafter(largest, math.inf)))

    connection.write(work)


def _prioritise(tx: ManagedTransaction, id_: str, priority: float) -> None:
    row = tx.run(PRIORITISE, id=id_, priority=priority).single()
    if row is None:
        raise unknown(id_)

    if row["state"] == State.COMPLETE:
        raise ProposalStateError(id_, row["state"], "gets no other priority: it has its result")


def unknown(id_: str) -> UnknownNameError:
    """Return the error that no proposal has this id."""
    hint = (
        "an id is STUDY#NUMBER with five digits, "
        "and archive study show lists the numbers of a study"
    )
    return UnknownNameError("proposal", id_, (), hint)

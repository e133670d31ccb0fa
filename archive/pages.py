"""Pages: what a study found, a thousand proposals on one node, for whoever reads all of it.

    (:Study)-[:PROPOSED]->(:Proposal)-[:RESULTED_IN]->(:Evaluation)      one by one: exact at any moment, and slow
    (:Study)-[:HAS_PAGE]->(:Page {at, open, …})                          a copy of what never changes any more

A long history takes a server 50 µs a result or more, however it is asked; as text on pages it takes two. A page is
written once nearly all of its proposals are COMPLETE, by whoever reads them then; `open` are the numbers of the others,
which are looked up each time. What has no page is read as it stands, so pages are never missed, and may be deleted
at any time. Who changes what a page says, as the load of a dump may, deletes it (`forget`); both lock the study
first, so that no page is written of what was read before.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import count, takewhile
from typing import TYPE_CHECKING, Any

from archive import architectures, page_columns, stored_code
from archive.architectures import batched
from archive.errors import StoreError
from archive.page_columns import Columns
from archive.records import State
from archive.rows import plain, proposal_id

if TYPE_CHECKING:
    from neo4j import ManagedTransaction

    from archive.connection import Connection

Row = dict[str, Any]

SIZE = 1000
"""Proposals of a page."""
MOST_OPEN = 100
"""A page with more that may still change is not worth it."""

READ = """
UNWIND $studies AS name
MATCH (s:Study {name: name})
MATCH (s)-[:ON]->(t:Task)
OPTIONAL MATCH (s)-[:HAS_PAGE]->(g:Page)
RETURN name, s.direction AS direction, t.name AS task, t.protocol AS protocol,
       CASE WHEN s.counted = s.revision THEN s.next END AS next,
       collect([g.at, g.open, g.size, [column IN $columns | g[column]]]) AS pages
"""

# Whole evaluations are nodes of their own: whoever reads one property makes the server read a whole node.
READ_WHOLE = """
UNWIND $studies AS name
MATCH (s:Study {name: name})
MATCH (s)-[:ON]->(t:Task)
OPTIONAL MATCH (s)-[:HAS_PAGE]->(g:Page)
OPTIONAL MATCH (g)-[:HAS_WHOLE]->(w:Whole)
RETURN name, s.direction AS direction, t.name AS task, t.protocol AS protocol,
       CASE WHEN s.counted = s.revision THEN s.next END AS next,
       collect([g.at, g.open, g.size, [column IN $columns | coalesce(w[column], g[column])]]) AS pages
"""

# Each step starts from what is bound: in one pattern, the embedded server visits the results of all studies.
LIVE = """
UNWIND $ids AS id
MATCH (p:Proposal {id: id})
USING INDEX SEEK p:Proposal(id)
MATCH (p)-[:OF]->(a:Architecture)
OPTIONAL MATCH (p)-[:RESULTED_IN]->(e:Evaluation)
RETURN p.number AS number, p.agent AS agent, p.architecture AS architecture, p.functional_key AS functional_key,
       p.mean AS mean, p.std AS std, p.based_on AS based_on, p.hyperparameters AS hyperparameters, p.state AS state,
       properties(e) AS evaluation, properties(a) AS network
ORDER BY number
"""

LOCK = "MATCH (s:Study {name: $study}) SET s.paged = coalesce(s.paged, 0) + 1"

WRITE = """
MATCH (s:Study {name: $study})
USING INDEX SEEK s:Study(name)
MERGE (g:Page {id: $id})
SET g += $columns, g.at = $at, g.open = $open, g.size = $size
MERGE (s)-[:HAS_PAGE]->(g)
MERGE (w:Whole {id: $id})
SET w += $whole
MERGE (g)-[:HAS_WHOLE]->(w)
"""

FORGET = """
UNWIND $studies AS name
MATCH (s:Study {name: name})
USING INDEX SEEK s:Study(name)
SET s.paged = coalesce(s.paged, 0) + 1
WITH s
MATCH (s)-[:HAS_PAGE]->(g:Page)
OPTIONAL MATCH (g)-[:HAS_WHOLE]->(w:Whole)
DETACH DELETE g, w
"""

OF_NETWORKS = """
UNWIND $keys AS key
MATCH (a:Architecture {key: key})
USING INDEX SEEK a:Architecture(key)
MATCH (a)<-[:OF]-(p:Proposal)
RETURN DISTINCT p.study AS study ORDER BY study
"""


@dataclass(frozen=True)
class Found:
    """What a study found, by number.

    Attributes:
        study: Its name.
        direction: Whether it wants large values or small ones.
        task: Name of its task.
        protocol: How that is measured.
        columns: Of its n results, those that were asked for.
        others: The proposals without a result.
    """

    study: str
    direction: str
    task: str
    protocol: str
    columns: Columns
    others: list[Row]


def read(connection: Connection, studies: Sequence[str], columns: Iterable[str]) -> list[Found]:
    """Return what studies found, by name, those left out that do not exist; write the pages that are due.

    Args:
        connection: The archive.
        studies: Names.
        columns: Those that are wanted beside `number`; see `archive.page_columns`.
    """
    wanted = list(dict.fromkeys(["number", *columns]))
    query = READ_WHOLE if set(wanted) & set(page_columns.WHOLE) else READ
    given = {"studies": sorted(set(studies)), "columns": wanted}
    rows = connection.read(lambda tx: plain(tx.run(query, given)))
    return [_found(connection, row, wanted) for row in sorted(rows, key=lambda row: str(row["name"]))]


def keep(connection: Connection, study: str, numbers: Iterable[int]) -> None:
    """Write those pages of a study that these proposals were the last of, if nothing stands in the way."""
    for at in sorted({number // SIZE for number in numbers if number % SIZE == SIZE - 1}):
        _keep(connection, study, at)


def forget(tx: ManagedTransaction, studies: Iterable[str]) -> None:
    """Delete the pages of studies, within the transaction that changes what they say; before it does."""
    names = sorted(set(studies))
    if names:
        tx.run(FORGET, studies=names).consume()


def forget_networks(tx: ManagedTransaction, keys: Iterable[str]) -> None:
    """Delete the pages of studies that proposed one of these networks."""
    forget(tx, [row["study"] for row in tx.run(OF_NETWORKS, keys=sorted(set(keys)))])


def _found(connection: Connection, row: Mapping[str, Any], wanted: Sequence[str]) -> Found:
    study, pages = row["name"], {at: page for at, *page in row["pages"] if at is not None}
    live = [row for part in batched((number for still, *_ in pages.values() for number in still), SIZE)
            for row in connection.read(partial(_rows, study=study, numbers=part))]  # fmt: skip
    # Numbers have no gaps: where nobody knows how many there are, the first thousand that is not there is the end.
    end = math.inf if row["next"] is None else row["next"]
    for at in takewhile(lambda at: at * SIZE < end, count()):
        if at not in pages:
            numbers = range(at * SIZE, int(min(end, (at + 1) * SIZE)))
            rows = connection.read(partial(_rows, study=study, numbers=numbers))
            live += rows
            if len(rows) == SIZE and len(_open(rows)) <= MOST_OPEN:
                _keep(connection, study, at)
            if not rows:
                break
    done = [row for row in live if row["evaluation"] is not None]
    others = [row for row in live if row["evaluation"] is None]
    kept = [
        {name: page_columns.from_text(text, size) for name, text in zip(wanted, texts, strict=True)}
        for _, size, texts in pages.values()
    ]
    columns = _by_number(page_columns.joined([*kept, page_columns.columns_of(done, wanted)]))
    return Found(study, row["direction"], row["task"], row["protocol"], columns, others)


def _by_number(columns: Columns) -> Columns:
    numbers = columns["number"]
    order = sorted(range(len(numbers)), key=numbers.__getitem__)
    if order == list(range(len(numbers))):
        return columns
    return {name: [column[at] for at in order] for name, column in columns.items()}


def _rows(tx: ManagedTransaction, study: str, numbers: Iterable[int]) -> list[Row]:
    rows = plain(tx.run(LIVE, ids=[proposal_id(study, number) for number in numbers]))
    # What an earlier release stored has its layers only.
    old = {row["architecture"]: row for row in rows if row["network"].get("code") is None}
    for key, network in (architectures.load(tx, sorted(old)) if old else {}).items():
        old[key]["network"]["code"] = stored_code.encode(network)
    return rows


def _open(rows: Iterable[Row]) -> list[int]:
    """Return the numbers of proposals that may have another result some day."""
    return [int(row["number"]) for row in rows if not _final(row)]


def _final(row: Row) -> bool:
    return row["evaluation"] is not None and row["state"] == State.COMPLETE and not row["evaluation"].get("partial")


def _keep(connection: Connection, study: str, at: int) -> None:
    # A reader without the right to write, or a disk that is nearly full, does without pages.
    with suppress(StoreError):
        connection.write(partial(_write, study=study, at=at), alone=True)


def _write(tx: ManagedTransaction, study: str, at: int) -> None:
    tx.run(LOCK, study=study).consume()
    rows = _rows(tx, study, range(at * SIZE, (at + 1) * SIZE))
    still = _open(rows)
    if len(rows) < SIZE or len(still) > MOST_OPEN:
        return
    final = [row for row in rows if _final(row)]
    texts, whole = (
        {name: page_columns.to_text(column) for name, column in page_columns.columns_of(final, names).items()}
        for names in (page_columns.names_of(final), page_columns.WHOLE)
    )
    place: Row = {"id": f"{study}#{at}", "at": at, "open": still, "size": len(final)}
    tx.run(WRITE, study=study, columns=texts, whole=whole, **place).consume()

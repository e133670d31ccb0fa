"""A user's query that writes, on each server: with exclusive access, and only once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from neo4j.exceptions import ServiceUnavailable, TransientError

from archive.database.read_only import commits_in_parts
from archive.errors import QueryError, StoreError, StoreUnavailableError
from tests.support.stores import cells, propose, study, suggest

pytestmark = pytest.mark.dialect

NOTE = "MATCH (s:Study {name: 'study'}) SET s.hit = $at CREATE (:Note {at: $at})"


def notes(archive):
    return sorted(row[0] for row in archive.query("MATCH (n:Note) RETURN n.at").rows)


def test_queries_and_a_search_that_write_to_one_study_all_get_through(archive):
    archive.studies.create(study())
    agent = archive.proposals.register_agent("random", {}, "1")
    done = threading.Event()

    def search():
        networks = iter(cells(400))
        count = 0
        while not done.is_set():
            archive.proposals.create("study", agent, suggest([next(networks)]))
            count += 1

        return count

    def write(first):
        for at in range(first, first + 15):
            archive.query(NOTE, {"at": at}, write=True)

    with ThreadPoolExecutor(5) as pool:
        searching = [pool.submit(search) for _ in range(1)]
        try:
            list(pool.map(write, range(0, 60, 15)))
        finally:
            done.set()

        assert searching[0].result() == len(archive.proposals.list("study"))

    assert notes(archive) == list(range(60))


def test_a_query_whose_outcome_is_unknown_is_not_run_again(archive, monkeypatch):
    archive.studies.create(study())
    session_of = archive.connection.session

    def deaf(**how):
        session = session_of(**how)
        begin = session.begin_transaction

        def begin_deaf(**settings):
            transaction = begin(**settings)
            commit = transaction.commit

            def lose_the_answer():
                commit()
                raise ServiceUnavailable("the connection broke")

            transaction.commit = lose_the_answer
            return transaction

        session.begin_transaction = begin_deaf
        return session

    with monkeypatch.context() as patched:
        patched.setattr(archive.connection, "session", deaf)
        with pytest.raises(StoreUnavailableError, match="check whether it was executed"):
            archive.query(NOTE, {"at": 1}, write=True)

    assert notes(archive) == [1]


def test_a_query_that_breaks_a_constraint_changes_nothing_and_says_so(archive):
    archive.studies.create(study())
    with pytest.raises(QueryError, match=r"(?i)already exists|duplicated"):
        archive.query("CREATE (:Note {at: 1}) CREATE (:Study {name: 'study'})", write=True)

    assert notes(archive) == []


def test_commands_on_the_schema_and_batches_of_transactions_are_understood(archive):
    try:
        archive.query("CREATE INDEX note_at IF NOT EXISTS FOR (n:Note) ON (n.at)", write=True)
        batches = (
            "UNWIND range(1, 10) AS at CALL (at) { CREATE (:Note {at: at}) } IN "
            "TRANSACTIONS OF 2 ROWS"
        )
        if archive.connection.dialect == "neo4j":
            archive.query(batches, write=True)
            assert notes(archive) == list(range(1, 11))
    finally:
        archive.query("DROP INDEX note_at IF EXISTS", write=True)


def test_batches_that_fail_half_way_are_counted(archive):
    propose(archive, cells(6), budget=6)
    query = """MATCH (p:Proposal {study: 'study'}) WITH p ORDER BY p.number
               CALL (p) { WITH p, 1 / (4 - p.number) AS n DETACH DELETE p } IN TRANSACTIONS OF 1 ROWS"""
    with pytest.raises(QueryError, match="by zero"):
        archive.query(query, write=True)

    left = [proposal.number for proposal in archive.proposals.list("study")]
    assert left == [4, 5]
    # The budget has room for those that are gone.
    assert len(propose(archive, cells(20)[10:], budget=6)) == 4


@pytest.mark.parametrize(
    "failure", [TransientError("a conflict"), ServiceUnavailable("the connection broke")]
)
def test_batches_are_not_run_again(archive, monkeypatch, failure):
    """The first batches of a statement stay committed when a later one fails."""
    session_of = archive.connection.session
    runs = []

    def failing(**how):
        session = session_of(**how)
        run = session.run

        def run_and_fail(query, *arguments, **further):
            run(query, *arguments, **further).consume()
            runs.append(query)
            raise failure

        session.run = run_and_fail
        return session

    write = archive.connection.write
    writes = []

    def write_once(work, **how):
        writes.append(work)
        if len(writes) > 1:
            raise StoreError("the server is still away")

        return write(work, **how)

    with monkeypatch.context() as patched:
        patched.setattr(archive.connection, "session", failing)
        patched.setattr(archive.connection, "write", write_once)
        with pytest.raises(
            StoreError, match="parts of the query may be committed: check before you run it again"
        ):
            archive.query(
                "UNWIND [1, 2] AS at CALL (at) { CREATE (:Note {at: at}) } IN TRANSACTIONS",
                write=True,
            )

    assert len(runs) == 1
    assert notes(archive) == [1, 2]


@pytest.mark.parametrize(
    ("cypher", "parts"),
    [
        ("CALL (x) { CREATE (n) } IN TRANSACTIONS", True),
        ("call (x) { create (n) } in $n Concurrent /* so */ transactions of 5 rows", True),
        ("CREATE (n {text: 'in transactions'}) // IN TRANSACTIONS", False),
        ("MATCH (transactions) RETURN 1 IN transactions", False),
        ("RETURN 'not closed IN TRANSACTIONS", False),
    ],
)
def test_a_text_shows_whether_it_commits_in_parts(cypher, parts):
    assert commits_in_parts(cypher) == parts

"""Queries that end the embedded server: sent once, ended in time, and harmless to the work beside
them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress

import pytest

from archive import settings
from archive.api import connect
from archive.database.connection import Connection
from archive.database.user_query import run_query
from archive.errors import QueryError, StoreUnavailableError
from archive.server import embedded
from archive.server.process import Death, describe_death
from tests.support import ROOT, java_only, wait_until
from tests.support.faults.counters import add_once, count

pytestmark = pytest.mark.lasts(4.0)

TEXT = "RETURN reduce(s = 'x', i IN range(1, 40) | s + s)"
LISTS = "RETURN [x IN range(1, 1000000) | range(1, 1000)]"
CONSTANT = (
    "WITH 'x' AS s UNWIND range(1, 40) AS i RETURN reduce(t = s, j IN range(1, 30) | t + "
    "t) ORDER BY i"
)
SLOW = (
    "UNWIND range(1, 30000) AS i UNWIND range(1, 30000) AS j WITH i * j AS k WHERE k % 7 = 1 "
    "RETURN count(k)"
)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Settings of a server with the least heap, which a query fills at once."""
    own = settings.load(home=tmp_path_factory.mktemp("small"), environment=java_only(), heap_mb=64)
    embedded.start(own)
    yield own
    embedded.stop(own)


@pytest.fixture
def writer(small):
    """A thread that writes beside the test; its end returns what was stored and what was
    acknowledged."""
    ended = threading.Event()
    acknowledged = []
    connection = Connection.open(small)
    connection.write(lambda transaction: transaction.run("MATCH (c:Counter) DELETE c").consume())

    def write():
        while not ended.is_set():
            key = str(len(acknowledged))
            connection.write(add_once(key))
            acknowledged.append(key)

    thread = threading.Thread(target=write, daemon=True)
    thread.start()

    def end():
        before = len(acknowledged)
        wait_until(lambda: len(acknowledged) > before, 60)
        ended.set()
        thread.join(60)
        stored = connection.read(count)["n"]
        connection.close()
        return stored, len(acknowledged)

    yield end
    ended.set()


def kill(pid):
    os.kill(pid, signal.SIGKILL)


def while_running(home, query, action):
    """Do something to the server once it runs the query."""

    def act():
        with Connection.open(home) as beside:
            statement = "SHOW TRANSACTIONS YIELD currentQuery"
            wait_until(
                lambda: any(query in (text or "") for (text,) in run_query(beside, statement).rows),
                30,
            )

        action(embedded.status(home))

    thread = threading.Thread(target=act, daemon=True)
    thread.start()
    return thread


def test_a_query_without_memory_is_sent_once(small, writer):
    restarts = embedded.status(small).restarts
    with Connection.open(small) as connection:
        with pytest.raises(
            QueryError, match=r"more memory than .* \(64 MiB\).*ARCHIVE_HEAP_MB"
        ) as caught:
            run_query(connection, TEXT, timeout=60)

        assert "\n" not in str(caught.value)
        stored, acknowledged = writer()
        assert stored == acknowledged
        assert run_query(connection, "RETURN 1").rows == [(1,)]

    status = embedded.status(small)
    assert status.restarts == restarts + 1
    assert "(64 MiB)" in status.error


@pytest.mark.whole
@pytest.mark.parametrize(
    ("query", "timeout"),
    [
        (LISTS, None),
        (LISTS, 3.0),
        (CONSTANT, None),
        ("RETURN reduce(s = [1], i IN range(1, 40) | s + s)", 3.0),
    ],
)
def test_every_kind_of_value_that_fills_the_heap(small, query, timeout):
    with Connection.open(small) as connection:
        restarts = embedded.status(small).restarts
        begin = time.monotonic()
        with pytest.raises(QueryError, match=r"memory|longer than 3 seconds|heap"):
            run_query(connection, query, timeout=timeout)

    assert timeout is None or time.monotonic() - begin < timeout + 10
    assert embedded.status(small).restarts <= restarts + 1


@pytest.mark.whole
def test_a_search_goes_on_beside_many_deaths(small, writer):
    for _ in range(6):
        with Connection.open(small) as connection, pytest.raises(QueryError, match="memory"):
            run_query(connection, TEXT, timeout=60)

    stored, acknowledged = writer()
    assert stored == acknowledged


@pytest.mark.whole
@pytest.mark.parametrize("victim", ["java_pid", "pid"])
def test_a_query_during_which_the_server_was_killed_is_not_sent_again(small, victim):
    thread = while_running(small, "30000", lambda status: kill(getattr(status, victim)))
    begin = time.monotonic()
    with Connection.open(small) as connection:
        with pytest.raises(
            StoreUnavailableError, match=r"died while the query ran.*not sent again"
        ):
            run_query(connection, SLOW, timeout=60)

        thread.join()
        assert time.monotonic() - begin < 55
        statement = "SHOW TRANSACTIONS YIELD currentQuery"
        assert not any("30000" in (text or "") for (text,) in run_query(connection, statement).rows)


@pytest.mark.whole
@pytest.mark.parametrize("victim", ["java_pid", "pid"])
@pytest.mark.parametrize("write", [False, True])
def test_a_limit_holds_while_the_server_stands_still(small, victim, write):
    status = embedded.status(small)
    with Connection.open(small) as connection:
        os.kill(getattr(status, victim), signal.SIGSTOP)
        try:
            begin = time.monotonic()
            if victim == "java_pid":
                statement = "CREATE (:Late) RETURN 1" if write else "RETURN 1"
                with pytest.raises(QueryError, match="longer than 1 seconds"):
                    run_query(connection, statement, timeout=1.0, write=write)
            else:
                assert run_query(connection, "RETURN 1", timeout=20.0, write=write).rows == [(1,)]

            assert time.monotonic() - begin < 10
        finally:
            os.kill(getattr(status, victim), signal.SIGCONT)

        # A write that was given up is not committed later.
        time.sleep(1.0)
        assert run_query(connection, "MATCH (n:Late) RETURN count(n)").rows in ([(0,)], [])


@pytest.mark.whole
def test_the_command_holds_its_limit_while_the_server_stands_still(small):
    status = embedded.status(small)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "ARCHIVE_HOME": str(small.home)}
    os.kill(status.java_pid, signal.SIGSTOP)
    try:
        for question in (["RETURN 1"], ["frontier", "--param", "task=digits"]):
            command = [
                sys.executable,
                "-m",
                "archive.cli.main",
                "query",
                "run",
                *question,
                "--timeout",
                "2s",
            ]
            ended = subprocess.run(
                command, env=environment, capture_output=True, text=True, timeout=30
            )
            assert ended.returncode == 1
            assert "within 2 seconds" in ended.stderr and ended.stderr.count("\n") == 1
    finally:
        os.kill(status.java_pid, signal.SIGCONT)


@pytest.mark.whole
def test_the_page_and_the_tools_send_it_once(small):
    from archive.mcp.tools.queries import query

    with connect(small) as archive:
        restarts = embedded.status(small).restarts
        with pytest.raises(QueryError, match="memory"):
            query(archive, TEXT)

        with pytest.raises(QueryError, match="memory"):
            archive.query(TEXT)

    wait_until(lambda: embedded.status(small).state == "ready", 60)
    assert embedded.status(small).restarts == restarts + 2


@pytest.mark.whole
def test_work_of_the_archive_that_fills_the_heap_names_the_cause(small):
    with Connection.open(small) as connection:
        with pytest.raises(QueryError, match=r"more memory .* \(64 MiB\)"):
            connection.read(lambda transaction: transaction.run(TEXT).data(), patience=2.0)


# Words of a death


@pytest.mark.parametrize(
    ("status", "full", "words"),
    [
        (3, True, "heap has (512 MiB)"),
        (1, False, "status 1"),
        (-9, False, "signal 9"),
        (-6, False, "signal 6"),
    ],
)
def test_words_of_a_death(status, full, words):
    death = Death(describe_death(status, 512))
    assert (death.out_of_memory, death.heap) == (full, " (512 MiB)" if full else "")
    assert words in death.reason


@pytest.mark.parametrize("content", ["null", "[]", "3", "{}", '{"state": "ready"}', '"x"', "{"])
def test_a_run_file_of_something_else(home, content):
    folder = embedded.Folder(home.home)
    folder.create()
    folder.run.write_text(content)
    assert embedded.status(home).state == "none"


def test_a_run_file_of_a_later_release(home):
    folder = embedded.Folder(home.home)
    folder.create()
    later = {"state": "failed", "pid": 1, "created": 0.0, "error": "so", "a later field": 1}
    folder.run.write_text(json.dumps(later))
    with suppress(FileNotFoundError):
        folder.lock.unlink()

    assert (embedded.status(home).state, embedded.status(home).error) == ("failed", "so")

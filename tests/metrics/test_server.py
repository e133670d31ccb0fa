"""The metrics of an archive: what Prometheus and an autoscaler read, during an outage too."""

from __future__ import annotations

import json
import socket
import struct
import threading
from contextlib import contextmanager
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

from archive.errors import SettingsError, StoreUnavailableError
from archive.metrics import reading
from archive.metrics.reading import ArchiveReader
from archive.metrics.server import MetricsServer
from archive.queue import workers
from archive.store.records import Result
from tests.support.commands import propose, table


@contextmanager
def served(connection, address="127.0.0.1"):
    server = MetricsServer(
        ArchiveReader(connection, clock=iter(range(0, 10_000, 60)).__next__), address, port=0
    )
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield lambda path: get(server.url.removesuffix("/metrics") + path)
    finally:
        server.stop()
        thread.join()


def get(url):
    try:
        with urlopen(url, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


def values(text):
    return {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_the_queue_is_counted_by_study_and_state(archive, tmp_path):
    workers.arrive(archive.connection, "idler", host="here", slots=4)
    workers.arrive(archive.connection, "gone", host="here", slots=8)
    workers.leave(archive.connection, "gone")
    archive.proposals.register_worker("script", "here", "ask and tell")
    task = table(tmp_path)
    propose(archive, task, 5)
    propose(archive, task, 2, "other")
    with served(archive.connection) as read:
        assert json.loads(read("/queue")[1]) == {"waiting": 7, "running": 0, "open": 7}
        first, second = (archive.proposals.claim("busy", study="study") for _ in range(2))
        archive.proposals.complete(first.id, first.token, Result(0.5))
        assert read("/queue?study=study") == (200, '{"waiting": 3, "running": 1, "open": 4}')
        status, text = read("/metrics")
        chosen = values(read("/metrics?name[]=archive_up&name[]=archive_trainer_capacity")[1])

    assert chosen == {("archive_up",): 1, ("archive_trainer_capacity",): 4}
    metrics = values(text)
    assert status == 200 and metrics["archive_up",] == 1
    assert metrics["archive_proposals", "study", "waiting"] == 3
    assert metrics["archive_proposals", "running", "study"] == 1
    assert metrics["archive_proposals", "other", "waiting"] == 2
    assert metrics["archive_oldest_waiting_proposal_seconds", "study"] >= 0
    assert metrics["archive_trainers", "idle"] == 1 and metrics["archive_trainers", "working"] == 1
    assert metrics["archive_trainer_capacity",] == 4
    assert second is not None


@pytest.mark.every_server
def test_an_unknown_study_is_an_error_and_no_empty_queue(archive, tmp_path):
    """An autoscaler that read 0 for a misspelt study would never start a trainer."""
    propose(archive, table(tmp_path), 1, "first")
    claim = archive.proposals.claim("busy")
    archive.proposals.complete(claim.id, claim.token, Result(0.5))
    with served(archive.connection) as read:
        assert read("/queue?study=first") == (200, '{"waiting": 0, "running": 0, "open": 0}')
        status, text = read("/queue?study=frist")
        assert (status, json.loads(text)) == (
            404,
            {"error": "unknown study 'frist': did you mean first?"},
        )
        assert read("/queue?study=first&study=frist")[0] == 404
        # A variable that is not set in an autoscaler's address.
        assert read("/queue?study=")[0] == 404
        propose(archive, table(tmp_path), 1, "frist")
        assert json.loads(read("/queue?study=frist")[1])["waiting"] == 1


def test_an_outage_is_a_metric_and_no_empty_queue():
    """An autoscaler that read 0 during an outage would remove the fleet."""

    class Away:
        def read(self, work):
            raise StoreUnavailableError("bolt://secret-host:7687 does not answer")

    with served(Away()) as read:
        status, text = read("/metrics")
        assert status == 200 and values(text) == {("archive_up",): 0}
        code, reason = read("/queue")
        assert code == 503 and "secret-host" not in reason
        assert read("/queue?study=first")[0] == 503
        assert read("/healthz")[0] == 200
        assert read("/")[0] == 404


def test_a_frozen_database_is_an_outage(monkeypatch):
    """It keeps the connection and sends nothing; a scraper gets its answer all the same."""
    monkeypatch.setattr(reading, "ANSWER_SECONDS", 0.2)
    frozen = threading.Event()

    class Frozen:
        queries = 0

        def read(self, work):
            Frozen.queries += 1
            frozen.wait()
            raise StoreUnavailableError("away")

    with served(Frozen()) as read:
        assert values(read("/metrics")[1]) == {("archive_up",): 0}
        assert read("/queue") == (503, '{"error": "the database does not answer"}')
        assert read("/queue?study=first")[0] == 503
        # No second query begins beside the first.
        assert Frozen.queries == 1
        frozen.set()


def test_a_slow_database_is_read_late(monkeypatch):
    """A reading that is not there in time is that of the next scrape."""
    monkeypatch.setattr(reading, "ANSWER_SECONDS", 0.3)
    answers = threading.Event()

    class Slow:
        def read(self, work):
            answers.wait()
            return {}, {}

    with served(Slow()) as read:
        assert values(read("/metrics")[1]) == {("archive_up",): 0}
        answers.set()
        assert values(read("/metrics")[1])["archive_up",] == 1


def test_many_readers_cost_one_query():
    class Counted:
        queries = 0

        def read(self, work):
            Counted.queries += 1
            raise StoreUnavailableError("away")

    reader = ArchiveReader(Counted(), clock=lambda: 7.0)
    assert [reader.read().problem for _ in range(3)].count(None) == 0
    assert Counted.queries == 1


def test_an_address_of_ipv6_is_served(archive):
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no IPv6")

    with served(archive.connection, "::1") as read:
        assert (read("/queue")[0], "archive_up 1" in read("/metrics")[1]) == (200, True)


def test_a_port_that_cannot_be_used_is_one_clear_error():
    with pytest.raises(SettingsError, match="try another port"):
        MetricsServer(ArchiveReader(None), port=99_999)

    with pytest.raises(SettingsError, match=r"nowhere\.invalid:0: .*; try another port or address"):
        MetricsServer(ArchiveReader(None), "nowhere.invalid", port=0)


def test_clients_that_leave_print_nothing(capfd):
    server = MetricsServer(ArchiveReader(None), port=0)
    thread = threading.Thread(target=server.run)
    thread.start()
    for part in (
        b"",
        b"GET /hea",
        b"GET /healthz HTTP/1.1\r\nHost",
        b"POST /queue HTTP/1.1\r\n\r\n",
        b"\0\xff\r\n\r\n",
    ):
        for reset in (0, 1):
            with socket.create_connection(("127.0.0.1", server.port), timeout=10) as client:
                client.sendall(part)
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", reset, 0))

    assert get(f"http://127.0.0.1:{server.port}/healthz")[0] == 200
    server.stop()
    thread.join()
    assert capfd.readouterr().err == ""

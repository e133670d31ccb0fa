"""Timeouts and the circuit breaker, with servers that accept connections and send nothing."""

import socket
import threading

import pytest

from archive.trainer.storage import weights_store
from archive.trainer.storage.timeouts import CircuitBreaker, call_with_timeout
from tests.support import faulty


@pytest.fixture
def silent():
    """A server that accepts connections and sends nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(10)
        yield server


def test_location_that_times_out_is_not_called_again(silent):
    uri = f"ftp://127.0.0.1:{silent.getsockname()[1]}/weights/ab/abcd.safetensors"
    breaker = CircuitBreaker(answer_seconds=0.2, open_seconds=600.0)
    asked = []

    def request():
        asked.append(uri)
        return weights_store.exists(uri)

    assert not breaker.call(weights_store.root_of(uri), request)
    silent.accept()[0].close()
    assert not breaker.call(weights_store.root_of(uri), request)
    assert len(asked) == 1


@pytest.fixture
def never():
    """A request without an answer during the test."""
    over = threading.Event()
    yield over.wait
    over.set()


def test_location_is_called_again_after_the_open_time(never):
    breaker = CircuitBreaker(answer_seconds=0.05, open_seconds=0.0)
    assert not breaker.call("here", never)
    assert breaker.call("here", lambda: True)


def test_other_locations_and_failing_ones_are_called_each_time(never):
    breaker = CircuitBreaker(answer_seconds=0.05, open_seconds=600.0)
    assert not breaker.call("silent", never)
    assert breaker.call("other", lambda: True)
    assert not breaker.call("other", lambda: False)
    assert not breaker.call("other", lambda: 1 / 0)
    assert breaker.call("other", lambda: True)


def test_root_of_an_address_is_the_written_root(tmp_path):
    for root in ("memory://here/weights", tmp_path):
        assert weights_store.root_of(
            weights_store.write(root, b"content").uri
        ) + "/" == weights_store.root_uri(root)


def test_call_with_timeout_reports_waiting_and_raises_errors(never):
    waits = []
    assert call_with_timeout(never, 0.2, lambda: waits.append(1), wait_seconds=0.05) is None
    assert waits
    assert call_with_timeout(lambda: "done", 60.0) == "done"
    with pytest.raises(ValueError, match="no such column"):
        call_with_timeout(lambda: faulty.raises(None), 60.0)

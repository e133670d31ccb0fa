"""Places that take a connection and say nothing."""

import socket
import threading

import pytest

from archive.trainer.storage import weights_store
from archive.trainer.storage.timeouts import Places, in_time
from tests.support import faulty


@pytest.fixture
def silent():
    """A server that lets everyone in and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(10)
        yield server


def test_who_does_not_answer_is_given_up_and_left_alone(silent):
    uri = f"ftp://127.0.0.1:{silent.getsockname()[1]}/weights/ab/abcd.safetensors"
    places, asked = Places(answer_seconds=0.2, silent_seconds=600.0), []

    def question():
        asked.append(uri)
        return weights_store.exists(uri)

    assert not places.ask(weights_store.root_of(uri), question)
    silent.accept()[0].close()
    assert not places.ask(weights_store.root_of(uri), question)
    assert len(asked) == 1


@pytest.fixture
def never():
    """A question that is not answered while the test lasts."""
    over = threading.Event()
    yield over.wait
    over.set()


def test_a_silent_place_is_asked_again_in_time(never):
    places = Places(answer_seconds=0.05, silent_seconds=0.0)
    assert not places.ask("here", never)
    assert places.ask("here", lambda: True)


def test_other_places_and_those_that_fail_are_asked_each_time(never):
    places = Places(answer_seconds=0.05, silent_seconds=600.0)
    assert not places.ask("silent", never)
    assert places.ask("other", lambda: True)
    assert not places.ask("other", lambda: False)
    assert not places.ask("other", lambda: 1 / 0)
    assert places.ask("other", lambda: True)


def test_the_root_is_what_addresses_are_below(tmp_path):
    for root in ("memory://here/weights", tmp_path):
        assert weights_store.root_of(weights_store.write(root, b"content").uri) + "/" == weights_store.root_uri(root)


def test_work_is_waited_for_with_signs_of_life(never):
    beats = []
    assert in_time(never, 0.2, lambda: beats.append(1), beat_seconds=0.05) is None
    assert beats
    assert in_time(lambda: "done", 60.0) == "done"
    with pytest.raises(ValueError, match="no such column"):
        in_time(lambda: faulty.raises(None), 60.0)

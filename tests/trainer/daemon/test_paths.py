"""Where a daemon works: what it removes there, and when."""

from __future__ import annotations

import os
import time
from types import SimpleNamespace

import pytest

from archive.errors import StoreUnavailableError
from archive.queue.updates import Completion
from archive.store.records import Result
from archive.trainer.daemon import paths
from archive.trainer.daemon.options import Options
from archive.trainer.daemon.paths import Workplace
from archive.trainer.storage import checkpoints
from archive.trainer.tasks import registry

CLAIM = SimpleNamespace(id="s#1", token="token")
ENDING = Completion("s#1", "token", Result(0.5))


@pytest.fixture
def place(tmp_path):
    return Workplace(tmp_path, Options(device="cpu"))


def left(place, proposal: str, age: float = 0.0):
    """Leave a state behind."""
    path = checkpoints.path_of(place.home / "states", proposal)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"state")
    os.utime(path, (time.time() - age,) * 2)
    return path


def test_a_state_goes_once_the_end_is_on_the_disk(place):
    outbox, state, other = place.outbox("x"), left(place, "s#1"), left(place, "s#2")
    outbox.folder.write_text("a file where the folder should be")
    outbox.put(ENDING)
    place.forget(CLAIM)
    place.tidy(outbox)
    assert state.exists()
    outbox.folder.unlink()
    outbox._unwritten.update(dict.fromkeys(outbox._unwritten, 0.0))
    outbox.put(ENDING)
    place.tidy(outbox)
    assert not state.exists()
    assert other.exists()
    # Whoever is given the proposal anew, and keeps a state, is not concerned.
    state = left(place, "s#1")
    place.tidy(outbox)
    assert state.exists()


def test_or_once_it_is_delivered(place):
    outbox, state = place.outbox("x"), left(place, "s#1")
    outbox.folder.write_text("a file where the folder should be")
    outbox.put(ENDING)
    place.forget(CLAIM)
    place.tidy(outbox)
    outbox.forget(ENDING)
    place.tidy(outbox)
    assert not state.exists()


def test_old_states_are_looked_for_once_a_day(place, monkeypatch):
    now = [5.0]
    monkeypatch.setattr(paths.time, "monotonic", lambda: now[0])
    outbox = place.outbox("x")
    young, old = left(place, "young"), left(place, "old", 2 * paths.STATE_SECONDS)
    place.tidy(outbox)
    assert not old.exists()
    old = left(place, "old", 2 * paths.STATE_SECONDS)
    now[0] += 86_000.0
    place.tidy(outbox)
    assert old.exists()
    now[0] += 1_000.0
    place.tidy(outbox)
    assert not old.exists()
    assert young.exists()


def test_a_task_that_raises_whatever_it_likes_ends_no_trainer(place, monkeypatch, caplog):
    def broken(_):
        raise AttributeError("no such column")

    monkeypatch.setattr(registry, "get", broken)
    monkeypatch.setattr(paths, "resolve_device", lambda device: (device, "none"))
    place = Workplace(place.home, Options(device="cpu", study="study"))
    archive = SimpleNamespace(studies=SimpleNamespace(get=lambda name: SimpleNamespace(task=name)))
    assert place.find_device(archive) == "none"
    assert "AttributeError: no such column" in caplog.text


def test_an_archive_that_is_away_is_no_broken_task(place):
    def away(_):
        raise StoreUnavailableError("no server answers")

    place = Workplace(place.home, Options(device="cpu", study="study"))
    with pytest.raises(StoreUnavailableError):
        place.find_device(SimpleNamespace(studies=SimpleNamespace(get=away)))

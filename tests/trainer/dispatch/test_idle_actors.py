"""Idle actors: none is ended while it deletes the files of a trial."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from archive.trainer.dispatch import ray_executor
from archive.trainer.dispatch.ray_executor import IdleActors


@pytest.fixture
def ray(monkeypatch):
    """Stands for Ray: an answer is there if it is in `answers`; `waits` has the longest waits."""
    fake = SimpleNamespace(answers=set(), waits=[], killed=[])

    def wait(references, num_returns=1, timeout=None):
        assert num_returns == len(references)
        fake.waits.append(timeout)
        return [one for one in references if one in fake.answers], []

    fake.wait = wait
    fake.kill = lambda actor, no_restart: fake.killed.append(actor)
    monkeypatch.setitem(sys.modules, "ray", fake)
    return fake


def test_an_actor_that_deletes_files_is_not_ended(ray, monkeypatch):
    idle = IdleActors()
    idle.add("one", "deletion of one")
    idle.add("two", "deletion of two")
    ray.answers.add("deletion of two")
    idle.discard_old()
    assert ray.killed == []
    monkeypatch.setattr(ray_executor, "IDLE_SECONDS", -1.0)
    idle.discard_old()
    assert ray.killed == ["two"]
    assert (idle.take(), idle.take()) == ("one", None)


def test_all_actors_are_ended_after_a_wait(ray):
    idle = IdleActors()
    idle.discard_all(3.0)
    idle.add("one", "deletion of one")
    idle.add("two", "deletion of two")
    idle.discard_all(3.0)
    assert (ray.waits, sorted(ray.killed)) == ([3.0], ["one", "two"])
    assert idle.take() is None

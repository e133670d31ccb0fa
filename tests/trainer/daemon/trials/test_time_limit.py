"""The time limit of a trainer: its last claims, and the end of its trials."""

from __future__ import annotations

import math
import time

import pytest

from archive.store.records import State
from archive.trainer.daemon import events, shutdown
from archive.trainer.daemon.options import TrainerOptions
from archive.trainer.daemon.shutdown import TimeLimit
from archive.trainer.daemon.trainer import Trainer
from archive.trainer.storage import checkpoints
from tests.support import serve
from tests.support.daemons import NETS, propose, states


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(shutdown.time, "monotonic", lambda: now[0])
    return now


def test_claims_end_in_time_for_a_checkpoint(clock):
    limit = TimeLimit(
        TrainerOptions(max_seconds=3600.0, parting_seconds=30.0, checkpoint_seconds=60.0)
    )
    clock[0] = 100.0 + 3600 - 30 - 60.5
    assert limit.may_claim() and not limit.is_over(0)
    clock[0] += 1
    # A trial that runs may go on until the grace begins; a trainer without one ends.
    assert not limit.may_claim() and limit.is_over(0) and not limit.is_over(1)
    assert limit.next_moment() == 100 + 3600 - 30
    # Trials have been shorter than the time between two checkpoints.
    limit.note_trial(5.0)
    limit.note_trial(3.0)
    assert limit.may_claim() and limit.last_claim_at == 100 + 3600 - 30 - 5
    clock[0] = 100.0 + 3600 - 30
    assert limit.is_over(1)


def test_the_reserve_is_a_part_of_a_short_limit(clock):
    limit = TimeLimit(
        TrainerOptions(max_seconds=20.0, parting_seconds=8.0, checkpoint_seconds=60.0)
    )
    assert limit.last_claim_at == 100 + 20 - 8 - 2


def test_a_trainer_without_a_limit_stays():
    limit = TimeLimit(TrainerOptions())
    assert limit.may_claim() and not limit.is_over(0) and limit.next_moment() == math.inf


def test_a_trial_at_the_limit_is_handed_back_with_a_checkpoint(archive, tmp_path):
    serve.know(serve.SLOW)
    running, waiting = propose(archive, NETS[:2], "slow")
    daemon = Trainer(
        archive, TrainerOptions(threads=1, device="cpu", max_seconds=3600.0), home=tmp_path
    )

    def end(event):
        if isinstance(event, events.EpochTrained):
            daemon.time_limit.interrupts_at = time.monotonic()

    daemon.observers.append(end)
    tally = daemon.run()
    assert (tally.returned, tally.all) == (1, 1)
    assert states(archive) == [State.WAITING, State.WAITING]
    saved = {
        checkpoints.path_of(tmp_path / "checkpoints", proposal.id).exists()
        for proposal in (running, waiting)
    }
    assert saved == {True, False}
    assert all(proposal.attempts == 0 for proposal in archive.proposals.list("study"))

"""The benchmark of a fleet: simulated trainers complete trials, and busy shares are
interpolated."""

from __future__ import annotations

import math

import pytest

from archive.queue import workers
from archive.store.records import State
from tests.benchmarks.trainer import fleet
from tests.support.stores import cells, propose


@pytest.mark.whole
@pytest.mark.lasts(8)
def test_a_busy_fleet_completes_its_trials_and_loses_no_lease(archive, tmp_path):
    made = propose(archive, cells(4))
    usage = fleet._run(archive, tmp_path, "study", 2, 5.0, 1.0, fleet._server(archive))
    stored = archive.proposals.list("study")
    assert usage.completed >= 2
    assert [each.state for each in stored].count(State.COMPLETE) == usage.completed
    assert (usage.lost, len(stored)) == (0, len(made))
    evaluation = archive.studies.evaluations("study")[0]
    assert len(evaluation.curve["train_loss"]) == 1
    assert len(usage.writes) >= usage.completed - 2
    assert usage.server_seconds is not None and usage.server_seconds >= 0.0
    assert len(workers.statuses(archive.connection)) == 2


@pytest.mark.parametrize(
    ("shares", "trainers"),
    [
        ([(100, 0.25)], 200),
        ([(300, 0.75), (100, 0.25)], 200),
        ([(100, 0.1), (200, 0.3)], 300),
        ([(100, 0.6), (200, 0.9)], 100 * 0.5 / 0.6),
        ([(100, 0.3), (200, 0.4), (300, 0.9)], 220),
    ],
)
def test_half_busy_lies_between_the_measured_fleets(shares, trainers):
    assert fleet.half_busy(shares) == pytest.approx(trainers)


def test_a_server_that_does_nothing_has_no_limit():
    assert math.isnan(fleet.half_busy([(10, 0.0)]))

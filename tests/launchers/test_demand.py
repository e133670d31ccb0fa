"""The number of trainers for a queue, and the keeper that follows it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.errors import LaunchError, SettingsError, TrainingError
from archive.launchers.base import LaunchedTrainer, TrainerFailure
from archive.launchers.keeper import RESTART_LIMIT, UNFIT_LIMIT, FleetKeeper, demand
from archive.launchers.records import TrainerFleet
from archive.settings import Settings


@given(st.integers(0, 10_000), st.integers(1, 16), st.integers(0, 50), st.integers(0, 200))
def test_demand_carries_the_work_within_its_bounds(work, slots, lower, more):
    trainers = demand(work, slots, lower, lower + more)
    assert lower <= trainers <= lower + more
    assert trainers * slots >= work or trainers == lower + more
    assert (trainers - 1) * slots < work or trainers == lower


class Engine:
    """An engine in memory, on which the test ends trainers."""

    poll_seconds = 10.0
    where = "the engine"

    def __init__(self, capacity=100):
        self.capacity = capacity
        self.number = 0
        self.ids = []
        self.stopped = []
        self.away = False
        self.room = 10_000
        self.codes = {}
        self.now = 0.0

    def running(self, fleet):
        if self.away:
            raise LaunchError("the controller does not answer")

        return [
            LaunchedTrainer(id_, "running" if at < self.capacity else "pending", reason="Priority")
            for at, id_ in enumerate(self.ids)
        ]

    def start(self, fleet, count):
        accepted = min(count, self.room)
        self.room -= accepted
        self.ids += [str(self.number + at) for at in range(accepted)]
        self.number += accepted
        if accepted < count:
            raise LaunchError("no more jobs are accepted")

    def stop(self, fleet, ids):
        self.stopped += ids
        self.ids = [id_ for id_ in self.ids if id_ not in ids]

    def failures(self, fleet, ids):
        return [
            TrainerFailure(id_, code, "no such device")
            for id_, code in self.codes.items()
            if id_ in ids
        ]

    def end(self, code=0):
        if code:
            self.codes |= dict.fromkeys(self.ids, code)

        self.ids.clear()


@pytest.fixture
def keeping(tmp_path):
    """Gives a function that adjusts a fleet of an engine, each time at the end of the polling
    interval."""

    def keeper(engine, name="engine", **bounds):
        fleet = TrainerFleet("name", name, Settings(tmp_path), **bounds)
        keeper = FleetKeeper(engine, fleet, clock=lambda: engine.now)

        def keep(work, progress, later=Engine.poll_seconds):
            engine.now += later
            return keeper.keep(work, progress)

        return keep

    return keeper


def test_a_fleet_grows_with_the_queue_and_cancels_only_what_is_pending(keeping):
    engine = Engine(capacity=2)
    keep = keeping(engine, slots=2, lower=0, upper=4)
    assert keep(0, 0).target == 0 and not engine.ids
    state = keep(20, 0)
    assert (state.target, state.running, state.pending, state.reason) == (4, 2, 2, "Priority")
    state = keep(5, 1)
    assert (state.target, state.running, state.pending) == (3, 2, 1) and engine.stopped == ["3"]
    keep(0, 2)
    # Running trainers end by themselves.
    assert engine.ids == ["0", "1"]


def test_an_engine_is_asked_at_its_pace_and_may_be_away(keeping):
    engine = Engine()
    keep = keeping(engine, lower=2, upper=2)
    keep(2, 0)
    engine.away = True
    assert keep(2, 0, later=9.0).problem is None
    assert keep(2, 0).problem == "the controller does not answer"
    engine.away = False
    assert keep(2, 0).running == 2 and engine.number == 2


def test_trainers_that_end_without_results_are_not_started_for_ever(keeping):
    engine = Engine()
    keep = keeping(engine, lower=2, upper=2)
    with pytest.raises(TrainingError, match="as soon as they start; no such device"):
        for _ in range(100):
            engine.end(1)
            keep(2, 0)

    assert engine.number <= 2 * (RESTART_LIMIT + 2)
    fortunate = Engine()
    keep = keeping(fortunate, lower=2, upper=2)
    for progress in range(50):
        fortunate.end(1)
        keep(2, progress)


@pytest.mark.parametrize("code", [0, 3])
@pytest.mark.parametrize(
    ("work", "bounds"), [(9, {"lower": 0, "upper": 1}), (0, {"lower": 2, "upper": 8})]
)
def test_trainers_that_end_at_their_time_limit_or_without_work_are_replaced(
    keeping, code, work, bounds
):
    engine = Engine()
    keep = keeping(engine, **bounds)
    for _ in range(100):
        keep(work, 0)
        keep(work, 0, later=600.0)
        engine.end(code)

    assert engine.number == 100 * max(1, bounds["lower"])


@pytest.mark.parametrize(
    ("capacity", "seconds", "code"), [(9, 50.0, 0), (0, 600.0, 0), (9, 600.0, 1), (9, 600.0, None)]
)
def test_early_ends_and_failures_count(keeping, capacity, seconds, code):
    engine = Engine(capacity)
    keep = keeping(engine, lower=2, upper=2)
    with pytest.raises(TrainingError, match="fail or end as soon as they start"):
        for _ in range(100):
            keep(2, 0, later=seconds)
            engine.codes |= {} if code == 0 else dict.fromkeys(engine.ids, code)
            engine.end()

    # Each end is counted, also where all trainers end at once.
    assert engine.number == 2 * (RESTART_LIMIT + 1)


def test_ends_without_work_are_forgiven_and_remembered(tmp_path):
    engine = Engine()
    keeper = FleetKeeper(
        engine, TrainerFleet("name", "engine", Settings(tmp_path), lower=0), lambda: engine.now
    )
    for _ in range(5 * RESTART_LIMIT):
        for work in (1, 0):
            engine.end()
            engine.now += engine.poll_seconds
            keeper.keep(work, 0)

    assert keeper.left_seconds == 0.0
    engine.now += 5.0
    assert keeper.left_seconds == 5.0
    failing = FleetKeeper(
        engine, TrainerFleet("name", "engine", Settings(tmp_path)), lambda: engine.now
    )
    for _ in range(2):
        engine.now += engine.poll_seconds
        failing.keep(1, 0)
        engine.end(1)

    assert failing.left_seconds is None


def test_an_end_counts_once_where_the_engine_accepts_no_other_trainer(keeping):
    engine = Engine()
    keep = keeping(engine, lower=1, upper=1)
    keep(1, 0)
    engine.end(1)
    engine.room = 0
    for _ in range(3 * RESTART_LIMIT):
        assert keep(1, 0).refusal == "no more jobs are accepted"

    engine.room = 1
    assert keep(1, 0).running == 1


def test_trainers_count_although_the_engine_refuses_others(keeping):
    engine = Engine()
    keep = keeping(engine, lower=0, upper=5)
    engine.room = 3
    for _ in range(2):
        assert str(keep(5, 0)) == (
            "3 of 5 trainers run; the start of others failed: no more jobs are accepted"
        )

    engine.room = 2
    assert str(keep(5, 0)) == "5 of 5 trainers run" and engine.number == 5


def test_refused_settings_end_it_at_once(keeping):
    engine = Engine()
    keep = keeping(engine, lower=1, upper=1)
    # A failure that the engine remembers from an earlier run.
    engine.codes["77"] = 2
    for _ in range(RESTART_LIMIT):
        keep(1, 0)
        engine.end()

    keep(1, 0)
    engine.end(2)
    with pytest.raises(SettingsError, match="cannot run on the engine; no such device"):
        keep(1, 0)


def test_a_machine_on_which_trials_cannot_begin_gets_no_further_trainers(keeping):
    engine = Engine()
    keep = keeping(engine, "local", lower=1, upper=1)
    with pytest.raises(TrainingError, match="trials cannot begin on the engine; no such device"):
        for _ in range(UNFIT_LIMIT + 1):
            keep(1, 0, later=600.0)
            engine.end(4)

    assert engine.number == UNFIT_LIMIT

"""The observation of a daemon: its events as records, and a real daemon whose observers fail."""

from __future__ import annotations

import dataclasses
import logging
import time

import pytest

from archive.store.records import Claim, Proposal, Result, State, Study
from archive.trainer.daemon import events, observation
from archive.trainer.daemon.options import TrainerOptions
from archive.trainer.daemon.shutdown import StopSignal
from archive.trainer.daemon.trainer import Trainer
from archive.trainer.observers.base import TrialEnd
from archive.trainer.observers.process import Ended, Measured, Started
from tests.support import wait_until
from tests.support.commands import propose, table
from tests.support.networks.nets import TINY_MLP
from tests.support.observers import Counts, Unpicklable

STUDY = Study(
    "study",
    "csv:/home/me/secret/houses.csv#price",
    "houses/1",
    "mlp",
    "valid_mse",
    "minimise",
    seed=5,
)


def claim(token: str = "t", **changes) -> Claim:
    standard = Proposal(
        "study#00003", "study", 3, State.RUNNING, TINY_MLP.key, "f", agent="random-1", created=17
    )
    return Claim(dataclasses.replace(standard, **changes), TINY_MLP, STUDY, token)


@pytest.fixture
def records():
    return []


@pytest.fixture
def emit(records):
    emitted = observation.TrialObservation(records.append)
    emitted(events.TrainerStarted("w", "cuda:1"))
    return emitted


def test_a_start_describes_the_trial_in_plain_values(emit, records):
    emit(events.ProposalClaimed(claim(hyperparameters={"dropout": 0.1}), 7, {"epochs": 5}))
    (record,) = records
    trial = record.trial
    assert (trial.proposal, trial.study, trial.number, trial.attempt, trial.continues) == (
        "study#00003", "study", 3, 1, False,
    )  # fmt: skip
    # The folder of a user's file is nobody else's business.
    assert trial.task == "csv:houses.csv#price"
    assert (trial.agent, trial.objective, trial.direction, trial.seed) == (
        "random-1",
        "valid_mse",
        "minimise",
        5,
    )
    assert (trial.worker, trial.device) == ("w", "cuda:1")
    assert trial.protocol == {"name": "houses/1", "epochs": 5}
    assert trial.hyperparameters == {"dropout": 0.1}
    assert trial.architecture == {
        "key": TINY_MLP.key, "layers": 5, "edges": 4, "depth": 4, "operations": "1 linear, 1 relu, 1 tanh",
    }  # fmt: skip


def test_a_run_is_that_of_the_proposal_in_any_attempt(emit, records):
    for each in (
        claim(),
        claim("u", attempts=1),
        claim("v", rung=1),
        claim("w", curve={"epoch": [1]}),
    ):
        emit(events.ProposalClaimed(each))

    first, *later = [record.trial for record in records]
    assert {trial.run for trial in later} == {first.run}
    assert [trial.continues for trial in (first, *later)] == [False, True, True, True]
    # A study of this name in another archive, or after a deletion.
    emit(events.ProposalClaimed(claim("x", created=18)))
    assert records[-1].trial.run != first.run


def test_epochs_and_results_are_passed_on(emit, records):
    one = claim()
    result = Result(0.5, {"valid_mse": 0.5, "params": 9, "flops": 18}, epochs=2, seconds=1.5)
    emit(events.ProposalClaimed(one))
    emit(events.EpochTrained(one, {"epoch": 1.0, "train_loss": 2.0}))
    emit(events.ProposalCompleted(one, result))
    (started, measured, ended) = records
    assert isinstance(started, Started)
    assert measured == Measured(started.trial.run, 1, {"train_loss": 2.0})
    costs = {"params": 9.0, "flops": 18.0, "epochs": 2.0, "seconds": 1.5}
    assert ended == Ended(
        started.trial.run, TrialEnd("COMPLETE", 0.5, None, {"valid_mse": 0.5}, costs)
    )


PAUSED = Result(1.0, environment={"ended": "rung"})


@pytest.mark.parametrize(
    ("event", "end"),
    [
        (events.ProposalFailed(claim(), "NaN"), TrialEnd("FAILED", reason="NaN")),
        (events.ProposalReleased(claim(), "stopped"), TrialEnd("RETURNED", reason="stopped")),
        (events.ProposalReleased(claim(), "taken", lost=True), TrialEnd("LOST", reason="taken")),
        (events.ProposalCompleted(claim(), PAUSED), TrialEnd("PAUSED", 1.0)),
    ],
)
def test_every_end_has_a_state(emit, records, event, end):
    emit(events.ProposalClaimed(claim()))
    emit(event)
    assert records[-1] == Ended(records[0].trial.run, end)


def test_a_trial_that_never_started_has_no_end(emit, records):
    emit(events.ProposalFailed(claim(), "unknown task", retry=True))
    assert not records


def test_observers_get_what_is_left_of_the_time_to_part():
    stop = StopSignal()
    assert observation.closing_seconds(stop, 8.0) == observation.CLOSING_SECONDS
    stop.request_stop()
    stop.requested_at = time.monotonic() - 3.0
    assert 4.0 < observation.closing_seconds(stop, 8.0) <= 5.0
    assert observation.closing_seconds(stop, 3.5) == observation.LEAST_SECONDS


@pytest.mark.whole
@pytest.mark.lasts(8)
def test_failing_observers_cost_no_result(archive, tmp_path, caplog):
    """Of ten trials with five observers, one of which works."""
    caplog.set_level(logging.INFO, "archive.trainer")
    propose(archive, table(tmp_path), 10)
    homes = {name: tmp_path / name for name in ("works", "raises", "hangs", "dies", "unpicklable")}
    for home in homes.values():
        home.mkdir()

    observers = [
        ("works", Counts(homes["works"])),
        ("raises", Counts(homes["raises"], "rs")),
        ("hangs", Counts(homes["hangs"], "hs")),
        ("dies", Counts(homes["dies"], "ds")),
        ("unpicklable", Unpicklable(homes["unpicklable"])),
    ]
    options = TrainerOptions(idle_seconds=0.3, device="cpu", threads=1, data_folders=(tmp_path,))
    calls = homes["works"] / "calls"

    def seconds() -> float:
        wait_until(lambda: calls.exists() and calls.read_text() == "o" + 10 * "se", 60)
        return 3.0

    with observation.observation(observers, tmp_path, seconds) as observe:
        tally = Trainer(archive, options, home=tmp_path / "trainer", observers=[observe]).run()

    assert (tally.complete, tally.failed, tally.returned) == (10, 0, 0)
    assert len(archive.studies.evaluations("study")) == 10
    assert calls.read_text() == "o" + 10 * "se" + "c"
    for name, fault in {
        "raises": "observer failed, will go on",
        "hangs": "observer did not end in time, killed",
        "dies": "observer died",
        "unpicklable": "observer cannot start",
    }.items():
        lines = [
            line
            for line in caplog.messages
            if f"observer={name} " in line and line.startswith(fault)
        ]
        assert len(lines) == 1, caplog.messages

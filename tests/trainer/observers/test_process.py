"""Faulty observers: each fails alone, is logged once, and never delays its trainer."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys

import psutil
import pytest

from archive.trainer.observers.base import TrialEnd
from archive.trainer.observers.process import Ended, Measured, ObserverProcess, Started
from tests.support import ROOT, wait_until
from tests.support.observers import Counts, Unpicklable
from tests.trainer.observers.test_contract import trial


@pytest.fixture
def said(caplog):
    """What the trainer has logged."""
    caplog.set_level(logging.INFO, "archive.trainer")
    return lambda: [message for message in caplog.messages if "observ" in message]


def observe(observer, count=3, seconds=60.0, capacity=1000):
    """Observe a trial of so many steps, and return the process."""
    process = ObserverProcess("counts", observer, observer.home / "log", capacity)
    process.put(Started(trial(0)))
    for step in range(count):
        process.put(Measured(trial(0).run, step, {"loss": 1.0}))

    process.put(Ended(trial(0).run, TrialEnd("COMPLETE", 1.0)))
    process.finish()
    process.close(seconds)
    return process


def test_calls_are_made_in_order_and_output_is_kept(tmp_path, said):
    observe(Counts(tmp_path))
    assert (tmp_path / "calls").read_text() == "osmmmec"
    assert said() == ["observing observer=counts place=http://***@tracker/"]
    assert (tmp_path / "log").read_text().splitlines()[:2] == ["called o", "called s"]


@pytest.mark.parametrize(
    ("fault", "calls", "failures"),
    [
        ("ro", "o", 6),
        ("rs", "osc", 1),
        ("rm", "osmmmec", 3),
        ("re", "osmmmec", 1),
        ("xmc", "osmmmec", 4),
    ],
)
def test_a_failing_call_costs_nothing_else(tmp_path, said, monkeypatch, fault, calls, failures):
    monkeypatch.setenv("TRACKER_TOKEN", "a-secret-token")
    observe(Counts(tmp_path, fault))
    assert (tmp_path / "calls").read_text() == calls
    (failure,) = [line for line in said() if "failed, will go on" in line]
    assert ("SystemExit" if fault[0] == "x" else "ConnectionError") in failure
    assert "second line" not in failure
    log = (tmp_path / "log").read_text()
    assert "Traceback" in log
    assert not any(
        secret in text for secret in ("hunter22", "a-secret-token") for text in (log, *said())
    )
    assert said()[-1] == f"observer ended observer=counts failures={failures}"


def test_an_observer_that_dies_is_left_alone(tmp_path, said):
    process = ObserverProcess("counts", Counts(tmp_path, "dm"), tmp_path / "log")
    process.put(Started(trial(0)))
    process.put(Measured(trial(0).run, 1, {}))
    # The pipe is found broken by a later record.
    wait_until(
        lambda: (
            process.put(Measured(trial(0).run, 2, {})) or any("died" in line for line in said())
        ),
        60,
    )
    process.finish()
    process.close(60)
    assert f"observer died observer=counts status={-signal.SIGSEGV}" in said()
    assert (tmp_path / "calls").read_text() == "osm"


def test_an_observer_that_hangs_is_killed(tmp_path, said):
    process = observe(Counts(tmp_path, "hm"), seconds=3.0)
    assert said()[-1] == "observer did not end in time, killed observer=counts seconds=3"
    assert not psutil.pid_exists(process._process.pid) or not process._process.is_alive()


def test_a_slow_observer_lacks_metrics_but_no_start_or_end(tmp_path, said):
    process = ObserverProcess("counts", Counts(tmp_path, "ho"), tmp_path / "log", capacity=10)
    # The pipe itself holds some hundred records.
    large = {f"metric {at}": 0.0 for at in range(10_000)}
    for step in range(50):
        process.put(Measured(trial(0).run, step, large))

    before = process.dropped
    process.put(Ended(trial(0).run, TrialEnd("COMPLETE", 1.0)))
    assert process.dropped == before > 30
    process.finish()
    process.close(0.1)
    assert [line for line in said() if "dropped" in line] == [
        "observer is too slow, records are dropped observer=counts",
        f"observer lacks records observer=counts dropped={before}",
    ]


def test_an_observer_that_cannot_be_pickled_is_reported(tmp_path, said):
    observe(Unpicklable(tmp_path))
    assert (
        said()[0].startswith("observer cannot start observer=counts reason=")
        and "pickle" in said()[0]
    )
    assert not (tmp_path / "calls").exists()


ORPHAN = """
import sys, time, pathlib
from archive.trainer.observers import process
from tests.support.observers import Counts
from tests.trainer.observers.test_contract import trial
home = pathlib.Path(sys.argv[1])
one = process.ObserverProcess("counts", Counts(home), home / "log")
one.put(process.Started(trial(0)))
while True:
    time.sleep(1)
"""


@pytest.mark.whole
def test_an_observer_ends_with_a_killed_trainer(tmp_path):
    trainer = subprocess.Popen(
        [sys.executable, "-c", ORPHAN, str(tmp_path)], cwd=ROOT, env={**os.environ}
    )
    calls = tmp_path / "calls"
    try:
        wait_until(lambda: calls.exists() and calls.read_text() == "os", 60)
    finally:
        trainer.kill()
        trainer.wait()

    # What it has received is kept, and it closes what it had opened.
    wait_until(lambda: calls.read_text() == "osc", 60)

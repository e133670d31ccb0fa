"""Metrics of a trainer with a clock of the test; the tests of its command scrape a real daemon."""

from __future__ import annotations

import socket
import urllib.request
from types import SimpleNamespace

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from archive.errors import SettingsError
from archive.store.records import Result
from archive.trainer.daemon import events
from archive.trainer.daemon.options import TrainerOptions
from archive.trainer.daemon.prometheus import PrometheusMetrics, Stopwatch


def claim(number: int, task: str = "digits") -> SimpleNamespace:
    return SimpleNamespace(id=f"study#{number}", study=SimpleNamespace(task=task))


class Clock:
    """Shows what it is set to."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def daemon():
    return SimpleNamespace(
        worker="w", device="cpu", slots=3, options=TrainerOptions(), spool=["one"], contact=1234.5
    )


@pytest.fixture
def metrics(daemon, clock):
    return PrometheusMetrics(daemon, clock)


def told(metrics) -> dict:
    """Return what a scrape gives, by name and task."""
    registry = CollectorRegistry()
    registry.register(metrics)
    text = generate_latest(registry).decode()
    return {
        (sample.name.removeprefix("archive_trainer_"), sample.labels.get("task")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_outcomes_are_counted_by_task(metrics):
    claims = [claim(at, task) for at, task in enumerate(["digits", "digits", "digits", "diabetes"])]
    for each in claims:
        metrics(events.ProposalClaimed(each, 1))

    metrics(events.EpochTrained(claims[0], {}))
    metrics(events.EpochTrained(claims[0], {}))
    metrics(events.ProposalCompleted(claims[0], Result(0.5)))
    metrics(events.ProposalFailed(claims[1], "NaN"))
    metrics(events.ProposalReleased(claims[2], "asked to leave"))
    metrics(events.ProposalReleased(claims[3], "the lease was lost", lost=True))
    metrics(events.ResultRefused("study#9", "no such study"))
    found = told(metrics)
    assert (found["claimed_total", "digits"], found["claimed_total", "diabetes"]) == (3, 1)
    assert found["epochs_total", "digits"] == 2
    for name in ("completed_total", "failed_total", "returned_total"):
        assert found[name, "digits"] == 1
        assert (name, "diabetes") not in found

    assert found["lease_losses_total", "diabetes"] == 1
    assert found["refused_total", None] == 1
    assert ("running", "digits") not in found


def test_training_and_idle_seconds_are_disjoint(metrics, clock):
    clock.now += 10
    first = claim(1)
    second = claim(2, "diabetes")
    metrics(events.ProposalClaimed(first, 1))
    clock.now += 4
    metrics(events.ProposalClaimed(second, 2))
    clock.now += 2
    found = told(metrics)
    assert found["idle_seconds_total", None] == 10
    assert (
        found["training_seconds_total", "digits"],
        found["training_seconds_total", "diabetes"],
    ) == (6, 2)
    assert found["running", "digits"] == found["running", "diabetes"] == 1
    metrics(events.ProposalCompleted(first, Result(0.5)))
    clock.now += 3
    metrics(events.ProposalFailed(second, "NaN"))
    clock.now += 5
    found = told(metrics)
    assert (
        found["training_seconds_total", "digits"],
        found["training_seconds_total", "diabetes"],
    ) == (6, 5)
    assert found["idle_seconds_total", None] == 15


def test_outages_add_up(metrics, clock):
    metrics(events.StoreUnreachable("no server"))
    clock.now += 2
    metrics(events.StoreUnreachable("no server"))
    clock.now += 2
    assert (
        told(metrics)["archive_away", None],
        told(metrics)["archive_away_seconds_total", None],
    ) == (1, 4)
    metrics(events.StoreReachable(4.0))
    clock.now += 50
    metrics(events.StoreUnreachable("no server"))
    clock.now += 1
    metrics(events.StoreReachable(1.0))
    assert (
        told(metrics)["archive_away", None],
        told(metrics)["archive_away_seconds_total", None],
    ) == (0, 5)


def test_gauges_are_read_at_each_scrape(metrics, daemon):
    found = told(metrics)
    assert (found["slots", None], found["outbox_results", None]) == (3, 1)
    assert found["last_contact_timestamp_seconds", None] == 1234.5
    daemon.spool.append("two")
    assert told(metrics)["outbox_results", None] == 2
    assert found["info", None] == 1


def test_other_events_are_ignored(metrics):
    before = told(metrics)
    metrics(events.TrainerStarted("w", "cpu"))
    metrics(events.ResultDelivered("study#1", True))
    assert told(metrics) == before


def test_a_stopwatch_that_is_stopped_twice(clock):
    watch = Stopwatch(clock)
    watch.stop()
    assert (watch.seconds, watch.running) == (0, False)
    watch.start()
    clock.now += 3
    watch.start()
    clock.now += 1
    watch.stop()
    watch.stop()
    assert watch.seconds == 4


def test_metrics_are_served_in_the_format_of_prometheus(metrics):
    port = metrics.serve(0)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        text = answer.read().decode()

    assert 'archive_trainer_info{device="cpu",study="",version=' in text
    assert "process_resident_memory_bytes" in text


def test_a_port_that_is_taken_is_named(metrics):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SettingsError, match=f"127.0.0.1:{port}: .*another port"):
            metrics.serve(port)


def test_the_label_of_a_file_has_no_path(metrics):
    for task in (
        "csv:/home/me/secret project/houses.csv#price",
        "npz:/a/b.npz",
        "table:/a/t.csv#-x/y",
        "digits",
    ):
        metrics(events.ProposalClaimed(claim(1, task)))

    labels = {task for name, task in told(metrics) if name in ("claimed_total", "running")}
    assert labels == {"csv:houses.csv#price", "npz:b.npz", "table:t.csv#-x/y", "digits"}

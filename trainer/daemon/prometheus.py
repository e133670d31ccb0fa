"""Prometheus metrics of a trainer.

| metric `archive_trainer_…`         | labels    | meaning                                        |
|------------------------------------|-----------|------------------------------------------------|
| `claimed_total`, `completed_total` | task      | claims; results                                |
| `failed_total`, `returned_total`   | task      | trials without a result; proposals handed back |
| `lease_losses_total`               | task      | proposals lost to other workers                |
| `epochs_total`                     | task      | epochs trained                                 |
| `training_seconds_total`           | task      | wall time of ended and running trials          |
| `idle_seconds_total`               |           | wall time without any trial                    |
| `archive_away_seconds_total`       |           | wall time of outages of the database           |
| `archive_away`                     |           | 1 during an outage of the database             |
| `last_contact_timestamp_seconds`   |           | time of the last answer of the database        |
| `running`                          | task      | trials in flight                               |
| `slots`                            |           | largest number of trials in flight             |
| `outbox_results`                   |           | undelivered results                            |
| `refused_total`                    |           | results that the store will never accept       |
| `info`                             | worker, … | always 1                                       |

The label of a task on a file is the name of the file without its path: the port needs no login.

The daemon's loop calls `PrometheusMetrics` with each event, which costs a few additions; the thread
that serves the metrics collects them on request.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, ProcessCollector, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from archive import __version__
from archive.errors import SettingsError
from archive.trainer.daemon import events
from archive.trainer.tasks.file_access import label_of

if TYPE_CHECKING:
    from archive.store.records import Claim
    from archive.trainer.daemon.trainer import Trainer

PREFIX = "archive_trainer_"

COUNTED = {
    "claimed": "Claims of proposals.",
    "completed": "Trials with a result.",
    "failed": "Trials without a result.",
    "returned": "Proposals handed back.",
    "lease_losses": "Proposals lost to other workers.",
    "epochs": "Epochs trained.",
}


class PrometheusMetrics(Collector):
    """Counts the events of a daemon: an observer, and the collector of a registry.

    Args:
        trainer: The daemon, read at each collection.
        clock: Monotonic seconds.
    """

    def __init__(self, trainer: Trainer, clock: Callable[[], float] = time.monotonic) -> None:
        self._trainer = trainer
        self._clock = clock
        self._lock = threading.Lock()
        self._counts: dict[str, Counter[str]] = {name: Counter() for name in COUNTED}
        self._trained: defaultdict[str, float] = defaultdict(float)
        self._running: dict[str, tuple[str, float]] = {}
        self._refused = 0
        self._idle = Stopwatch(clock)
        self._away = Stopwatch(clock)
        self._idle.start()

    def __call__(self, event: events.Event) -> None:
        """Count an event."""
        with self._lock:
            match event:
                case events.StoreUnreachable():
                    self._away.start()
                case events.StoreReachable():
                    self._away.stop()
                case events.ResultRefused():
                    self._refused += 1
                case events.ProposalClaimed(claim):
                    self._begin(claim)
                case events.EpochTrained(claim):
                    self._count("epochs", claim)
                case events.ProposalCompleted(claim):
                    self._end("completed", claim)
                case events.ProposalFailed(claim):
                    self._end("failed", claim)
                case events.ProposalReleased(claim, lost=lost):
                    self._end("lease_losses" if lost else "returned", claim)

    def collect(self) -> Iterator[Metric]:
        """Yield the present value of every metric."""
        with self._lock:
            counts = {name: dict(count) for name, count in self._counts.items()}
            trained = dict(self._trained)
            running = Counter(task for task, _ in self._running.values())
            for task, began in self._running.values():
                trained[task] = trained.get(task, 0.0) + self._clock() - began

            idle = self._idle.seconds
            away = self._away.seconds
            is_away = self._away.running
            refused = self._refused

        for name, text in COUNTED.items():
            yield _by_task(CounterMetricFamily, name, text, counts[name])

        yield _by_task(CounterMetricFamily, "training_seconds", "Wall time of trials.", trained)
        yield _by_task(GaugeMetricFamily, "running", "Trials in flight.", running)
        yield CounterMetricFamily(
            f"{PREFIX}refused", "Results that the store will never accept.", refused
        )
        yield CounterMetricFamily(f"{PREFIX}idle_seconds", "Wall time without any trial.", idle)
        yield CounterMetricFamily(
            f"{PREFIX}archive_away_seconds", "Wall time of outages of the database.", away
        )
        yield _gauge("archive_away", "Whether the database is unreachable.", is_away)
        yield _gauge(
            "last_contact_timestamp_seconds",
            "Time of the last answer of the database.",
            self._trainer.contact,
        )
        yield _gauge("slots", "Largest number of trials in flight.", self._trainer.slots)
        yield _gauge("outbox_results", "Undelivered results.", len(self._trainer.spool))
        yield self._info()

    def serve(self, port: int, address: str = "127.0.0.1") -> int:
        """Serve `GET /metrics` in a thread that ends with the process, and return the port.

        Args:
            port: TCP port; 0 picks a free one.
            address: Interface to listen on.

        Raises:
            SettingsError: The port or the address cannot be used.
        """
        registry = CollectorRegistry()
        registry.register(self)
        ProcessCollector(registry=registry)
        try:
            server, _ = start_http_server(port, address, registry)
        except (OSError, OverflowError) as error:
            reason = (isinstance(error, OSError) and error.strerror) or error
            raise SettingsError(
                f"metrics cannot be served at {address}:{port}: "
                f"{reason}; try another port or address"
            ) from None

        return int(server.server_port)

    def _begin(self, claim: Claim) -> None:
        self._count("claimed", claim)
        self._idle.stop()
        self._running[claim.id] = (label_of(claim.study.task), self._clock())

    def _end(self, how: str, claim: Claim) -> None:
        self._count(how, claim)
        if (span := self._running.pop(claim.id, None)) is not None:
            task, began = span
            self._trained[task] += self._clock() - began

        if not self._running:
            self._idle.start()

    def _count(self, name: str, claim: Claim) -> None:
        self._counts[name][label_of(claim.study.task)] += 1

    def _info(self) -> Metric:
        trainer = self._trainer
        labels = {
            "worker": trainer.worker,
            "device": trainer.device,
            "study": trainer.options.study or "",
            "version": __version__,
        }
        family = GaugeMetricFamily(
            f"{PREFIX}info", "Identity of this trainer.", labels=list(labels)
        )
        family.add_metric(list(labels.values()), 1)
        return family


class Stopwatch:
    """Sums spans of time; a second start or stop has no effect.

    Args:
        clock: Monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._total = 0.0
        self._since: float | None = None

    def start(self) -> None:
        """Begin a span, unless one is open."""
        if self._since is None:
            self._since = self._clock()

    def stop(self) -> None:
        """End the open span, if there is one."""
        self._total = self.seconds
        self._since = None

    @property
    def running(self) -> bool:
        """Whether a span is open."""
        return self._since is not None

    @property
    def seconds(self) -> float:
        """Sum of all spans, with the open one."""
        return self._total + (0.0 if self._since is None else self._clock() - self._since)


def _by_task(
    family: type[CounterMetricFamily] | type[GaugeMetricFamily],
    name: str,
    text: str,
    values: Mapping[str, float],
) -> Metric:
    metric = family(PREFIX + name, text, labels=["task"])
    for task, value in sorted(values.items()):
        metric.add_metric([task], value)

    return metric


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(PREFIX + name, text, value)

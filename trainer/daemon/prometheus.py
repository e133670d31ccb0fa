"""What a trainer tells Prometheus: counters of what it did, gauges of what it does.

| metric `archive_trainer_…`                   | labels     | meaning                                          |
|----------------------------------------------|------------|--------------------------------------------------|
| `claimed_total`, `completed_total`           | task       | proposals taken; with a result                   |
| `failed_total`, `returned_total`             | task       | attempts without one; proposals handed back      |
| `lease_losses_total`                         | task       | proposals that others had taken over             |
| `epochs_total`                               | task       | epochs trained                                   |
| `training_seconds_total`                     | task       | wall time of trials, those that run now included |
| `idle_seconds_total`                         |            | wall time without any trial                      |
| `archive_away_seconds_total`, `archive_away` |            | outages of the database; 1 while one lasts       |
| `last_contact_timestamp_seconds`             |            | when the archive last answered                   |
| `running`; `slots`                           | task; none | trials now; at most                              |
| `outbox_results`                             |            | results that the archive does not have yet       |
| `refused_total`                              |            | results that the archive will never take         |
| `info`                                       | worker, …  | always 1                                         |

A task that is a file has its name in the label, and not its path: whoever can reach the port can read the metrics.

The daemon's loop calls `Metrics` with each event, which costs a few additions; the numbers are put together in the
thread that serves them, when they are asked for.
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
    "claimed": "Proposals taken.",
    "completed": "Proposals with a result.",
    "failed": "Attempts without a result.",
    "returned": "Proposals handed back.",
    "lease_losses": "Proposals that others had taken over.",
    "epochs": "Epochs trained.",
}


class Metrics(Collector):
    """Counts what a daemon does; an observer of its events, and what a registry collects.

    Args:
        trainer: The daemon, read when the numbers are asked for.
        clock: Monotonic seconds.
    """

    def __init__(self, trainer: Trainer, clock: Callable[[], float] = time.monotonic) -> None:
        self._trainer, self._clock = trainer, clock
        self._lock = threading.Lock()
        self._counts: dict[str, Counter[str]] = {name: Counter() for name in COUNTED}
        self._trained: defaultdict[str, float] = defaultdict(float)
        self._running: dict[str, tuple[str, float]] = {}
        self._refused = 0
        self._idle = Stopwatch(clock)
        self._away = Stopwatch(clock)
        self._idle.start()

    def __call__(self, event: events.Event) -> None:
        """Take in what happened."""
        with self._lock:
            match event:
                case events.Away():
                    self._away.start()
                case events.Back():
                    self._away.stop()
                case events.Refused():
                    self._refused += 1
                case events.Claimed(claim):
                    self._begin(claim)
                case events.Progressed(claim):
                    self._count("epochs", claim)
                case events.Completed(claim):
                    self._end("completed", claim)
                case events.Failed(claim):
                    self._end("failed", claim)
                case events.Released(claim, lost=lost):
                    self._end("lease_losses" if lost else "returned", claim)

    def collect(self) -> Iterator[Metric]:
        """Yield every metric as it is now."""
        with self._lock:
            counts = {name: dict(count) for name, count in self._counts.items()}
            trained, running = dict(self._trained), Counter(task for task, _ in self._running.values())
            for task, began in self._running.values():
                trained[task] = trained.get(task, 0.0) + self._clock() - began
            idle, away, is_away = self._idle.seconds, self._away.seconds, self._away.running
            refused = self._refused
        for name, text in COUNTED.items():
            yield _by_task(CounterMetricFamily, name, text, counts[name])
        yield _by_task(CounterMetricFamily, "training_seconds", "Wall time of trials.", trained)
        yield _by_task(GaugeMetricFamily, "running", "Trials that run now.", running)
        yield CounterMetricFamily(f"{PREFIX}refused", "Results that the archive will never take.", refused)
        yield CounterMetricFamily(f"{PREFIX}idle_seconds", "Wall time without any trial.", idle)
        yield CounterMetricFamily(f"{PREFIX}archive_away_seconds", "Wall time without the archive.", away)
        yield _gauge("archive_away", "Whether the archive does not answer.", is_away)
        yield _gauge("last_contact_timestamp_seconds", "When the archive last answered.", self._trainer.contact)
        yield _gauge("slots", "Trials at a time.", self._trainer.options.slots)
        yield _gauge("outbox_results", "Results that the archive does not have yet.", len(self._trainer.outbox))
        yield self._info()

    def serve(self, port: int, address: str = "127.0.0.1") -> int:
        """Answer `GET /metrics` from a thread that ends with the process, and return the port.

        Args:
            port: 0 takes a free one.
            address: Where to listen.

        Raises:
            SettingsError: Nobody can listen there.
        """
        registry = CollectorRegistry()
        registry.register(self)
        ProcessCollector(registry=registry)
        try:
            server, _ = start_http_server(port, address, registry)
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or error
            raise SettingsError(f"metrics cannot be served at {address}:{port}: {why}; try another port") from None
        return int(server.server_port)

    def _begin(self, claim: Claim) -> None:
        self._count("claimed", claim)
        self._idle.stop()
        self._running[claim.id] = (label_of(claim.study.task), self._clock())

    def _end(self, how: str, claim: Claim) -> None:
        self._count(how, claim)
        if (held := self._running.pop(claim.id, None)) is not None:
            self._trained[held[0]] += self._clock() - held[1]
        if not self._running:
            self._idle.start()

    def _count(self, name: str, claim: Claim) -> None:
        self._counts[name][label_of(claim.study.task)] += 1

    def _info(self) -> Metric:
        trainer = self._trainer
        about = {
            "worker": trainer.worker,
            "device": trainer.device,
            "study": trainer.options.study or "",
            "version": __version__,
        }
        family = GaugeMetricFamily(f"{PREFIX}info", "What this trainer is.", labels=list(about))
        family.add_metric(list(about.values()), 1)
        return family


class Stopwatch:
    """Adds up spans of time; starting or stopping it twice changes nothing.

    Args:
        clock: Monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._total = 0.0
        self._since: float | None = None

    def start(self) -> None:
        """Begin a span, unless one is under way."""
        if self._since is None:
            self._since = self._clock()

    def stop(self) -> None:
        """End the span that is under way, if one is."""
        self._total, self._since = self.seconds, None

    @property
    def running(self) -> bool:
        """Whether a span is under way."""
        return self._since is not None

    @property
    def seconds(self) -> float:
        """All spans together, the one that is under way included."""
        return self._total + (0.0 if self._since is None else self._clock() - self._since)


def _by_task(
    family: type[CounterMetricFamily] | type[GaugeMetricFamily], name: str, text: str, values: Mapping[str, float]
) -> Metric:
    metric = family(PREFIX + name, text, labels=["task"])
    for task, value in sorted(values.items()):
        metric.add_metric([task], value)
    return metric


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(PREFIX + name, text, value)

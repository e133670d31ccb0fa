"""Prometheus metrics of an archive, one collection a scrape.

| metric `archive_…`                | labels       | meaning                                                 |
|-----------------------------------|--------------|---------------------------------------------------------|
| `up`                              |              | 1 while the database answers; without it, nothing below |
| `proposals`                       | study, state | open proposals: `waiting` or `running`                  |
| `oldest_waiting_proposal_seconds` | study        | age of the oldest waiting proposal                      |
| `trainers`                        | state        | trainers: `working`, `idle`, `resting` or `stale`       |
| `trainer_capacity`                |              | trials that live trainers can run at a time             |
"""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from archive.metrics.reading import ArchiveReader, ArchiveReading

PREFIX = "archive_"
TRAINER_STATES = ("working", "idle", "resting", "stale")
_NOTHING = ArchiveReading()


class ArchiveCollector(Collector):
    """Collector of a registry of `prometheus_client`.

    Args:
        reader: Reader of the archive.
    """

    def __init__(self, reader: ArchiveReader) -> None:
        self._reader = reader

    def describe(self) -> list[Metric]:
        """Return the metrics without values, so that the registration does not wait for the
        database.
        """
        return [_up(None), *_queue(_NOTHING), *_trainers(_NOTHING)]

    def collect(self) -> Iterator[Metric]:
        """Yield the present value of every metric."""
        reading = self._reader.read()
        yield _up(reading.problem is None)
        if reading.problem is None:
            yield from _queue(reading)
            yield from _trainers(reading)


def _up(answers: bool | None) -> Metric:
    return GaugeMetricFamily(f"{PREFIX}up", "Whether the database answers.", answers)


def _queue(reading: ArchiveReading) -> Iterator[Metric]:
    proposals = GaugeMetricFamily(
        f"{PREFIX}proposals", "Open proposals.", labels=["study", "state"]
    )
    oldest = GaugeMetricFamily(
        f"{PREFIX}oldest_waiting_proposal_seconds",
        "Age of the oldest waiting proposal.",
        labels=["study"],
    )
    for study, depth in reading.depths.items():
        proposals.add_metric([study, "waiting"], depth.waiting)
        proposals.add_metric([study, "running"], depth.running)
        oldest.add_metric([study], depth.oldest_seconds)

    yield from (proposals, oldest)


def _trainers(reading: ArchiveReading) -> Iterator[Metric]:
    trainers = GaugeMetricFamily(f"{PREFIX}trainers", "Trainers by state.", labels=["state"])
    for state in TRAINER_STATES:
        trainers.add_metric([state], reading.trainers.get(state, 0))

    yield trainers
    yield GaugeMetricFamily(
        f"{PREFIX}trainer_capacity", "Trials that live trainers can run.", reading.slots
    )

"""Simulated trainers: the calls of daemons, without processes.

A simulated trainer makes the calls of a daemon, through the daemon's own classes: claims at the
pace of `queue_pace`, reports and results through `store_client`, renewals by `lease_keeper`. A few
threads run the trainers in turn, each when its next call is due.
"""

from __future__ import annotations

import heapq
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from archive.api import Archive
from archive.errors import StoreError
from archive.queue.updates import Completion
from archive.store.records import Result
from archive.trainer.daemon.client.store_client import StoreClient
from archive.trainer.daemon.in_flight import InFlight
from archive.trainer.daemon.options import TrainerOptions
from archive.trainer.daemon.result_spool import ResultSpool
from archive.trainer.daemon.trainer import DelayedResult

THREADS = 16
METRICS = ("train_loss", "valid_loss", "valid_accuracy")


@dataclass
class SimulatedTrainer:
    """A trainer without a process.

    Attributes:
        archive: The archive, whose connection all trainers share.
        client: The daemon's client.
        options: Options of the daemon.
        trial_seconds: Duration of its trials; None for an idle trainer.
        trial: The trial that it works on.
        completed: Number of its results.
        lost: Number of its leases that were lost.
        epochs: Number of epochs of its trial so far.
    """

    archive: Archive
    client: StoreClient
    options: TrainerOptions
    trial_seconds: float | None
    trial: InFlight | None = None
    completed: int = 0
    lost: int = 0
    epochs: int = 0

    def step(self) -> float:
        """Make the calls that are due, and return the time of the next one, by `time.monotonic`."""
        if not self.client.unreachable:
            with suppress(StoreError):
                self.client.keeper.step()

        if self.trial is None:
            self._claim()

        if self.trial is not None:
            self._train(self.trial)
        elif self.client.undelivered:
            self.client.flush()

        return max(self._next(), time.monotonic())

    def _claim(self) -> None:
        for claim in self.client.claim(1):
            self.trial = InFlight(claim, DelayedResult(Result(0.5), self.trial_seconds or 0.0))
            self.epochs = 0

    def _train(self, trial: InFlight) -> None:
        elapsed = time.monotonic() - trial.began
        while self.epochs < min(int(elapsed), int(self.trial_seconds or 0.0)):
            self.epochs += 1
            trial.add({name: 1.0 / self.epochs for name in METRICS})

        if trial.trial.messages():
            curve = {name: list(values) for name, values in trial.curve.items()}
            result = Result(0.5, {"accuracy": 0.5}, curve, epochs=self.epochs, seconds=elapsed)
            self.client.enqueue(
                Completion(*trial.key, result, architecture=trial.claim.architecture.key),
                keep=False,
            )
            self.trial = None
            self.completed = self.completed + 1
        elif trial.is_due() and not self.client.unreachable:
            self.client.enqueue(trial.report(self.options.lease, self.client.report_seconds))

        if trial.key in self.client.flush():
            self.client.drop(trial.key)
            self.trial = None
            self.lost = self.lost + 1

    def _next(self) -> float:
        if self.trial is None:
            return min(
                self.client.idle_until, max(self.client.keeper.next_at, self.client.retry_at)
            )

        epoch = self.trial.began + self.epochs + 1
        report = max(epoch, self.trial.report_at)
        keeper = max(self.client.keeper.next_at, self.client.retry_at)
        return min(report, self.trial.due or report, keeper)


def simulated(
    archive: Archive,
    folder: Path,
    name: str,
    trainers: int,
    options: TrainerOptions,
    trial_seconds: float | None,
) -> list[SimulatedTrainer]:
    """Return trainers that share a connection, and keep undelivered results in folders of their
    own.

    Args:
        archive: The archive.
        folder: Folder of their files.
        name: Beginning of their worker ids.
        trainers: Their number.
        options: Their options.
        trial_seconds: Duration of their trials; None for idle trainers.
    """
    clients = [
        StoreClient(
            archive,
            f"{name}-{number}",
            options,
            ResultSpool(folder / f"{number}", "bench"),
            lambda _: None,
        )
        for number in range(trainers)
    ]
    return [SimulatedTrainer(archive, client, options, trial_seconds) for client in clients]


class Agenda:
    """Runs trainers when they are due, on a few threads, until the end of the block."""

    def __init__(self, fleet: list[SimulatedTrainer], spread: float) -> None:
        now = time.monotonic()
        self._order = count()
        # Trainers of a fleet do not start within one millisecond.
        self._due = [
            (now + spread * at / len(fleet), next(self._order), each)
            for at, each in enumerate(fleet)
        ]
        self._guard = threading.Condition()
        self._over = False
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(THREADS)]
        self.late = 0.0
        self.failure: BaseException | None = None

    def __enter__(self) -> Agenda:
        for thread in self._threads:
            thread.start()

        return self

    def __exit__(self, *_: object) -> None:
        self._over = True
        for thread in self._threads:
            thread.join()

        if self.failure is not None:
            raise self.failure

    def _work(self) -> None:
        while not self._over:
            with self._guard:
                moment, _, each = self._due[0] if self._due else (time.monotonic() + 1.0, 0, None)
                late = time.monotonic() - moment
                if late < 0 or each is None:
                    each = None
                else:
                    heapq.heappop(self._due)
                    self.late = max(self.late, late)

            if each is None:
                time.sleep(min(0.01, -late))
                continue

            try:
                following = each.step()
            except BaseException as error:
                self.failure = error
                self._over = True
                return

            with self._guard:
                heapq.heappush(self._due, (following, next(self._order), each))

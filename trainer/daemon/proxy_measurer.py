"""Measurement of zero-cost proxies beside the trials of a daemon, in a separate thread.

    ProposalClaimed ──> ProxyMeasurer ── network ──> MeasurementProcess ── scores ──> store

| event                | consequence                                                               |
|----------------------|---------------------------------------------------------------------------|
| a trial begins       | its network is measured once, before any sample                           |
| a study is new       | a sample of its space is measured; its trainers share the sample, and skip|
|                      | stored networks                                                           |
| a network fails      | one line in the log; nothing is stored, without another attempt           |
| a task fails         | one line in the log, and no network of the task is measured: it is a      |
|                      | table, lacks data, or has another recipe                                  |
| the store is away    | the thread waits for it                                                   |
| the daemon stops     | the networks of trials are measured within half of its grace; the samples |
|                      | are not                                                                   |
| the daemon is killed | stored scores are whole; other trainers measure the rest of the sample    |

The daemon's loop never waits for the thread.
"""

from __future__ import annotations

import logging
import math
import random
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import TYPE_CHECKING, final

from archive.errors import StoreError
from archive.trainer.daemon.events import Event, ProposalClaimed
from archive.trainer.daemon.options import TrainerOptions
from archive.trainer.daemon.paths import TrainerPaths
from archive.trainer.daemon.proxy_process import MeasurementProcess
from archive.trainer.daemon.shutdown import StopSignal
from archive.trainer.proxies import measurement
from archive.trainer.trial import failures

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.architecture.graph import Architecture
    from archive.store.records import Claim, Study
    from archive.trainer.protocols.base import TrainingProtocol
    from archive.trainer.tasks.base import Task

log = logging.getLogger("archive.trainer")
STORE_SECONDS = 2.0
"""Intended time between two writes of scores.

A kill loses the scores of that time, and for that time two trainers may measure the same
networks."""
LINGER_SECONDS = 60.0
"""Time without work after which the process ends."""
RETRY_SECONDS = 5.0
"""Pause after a call that the store did not answer."""
PARTING_SHARE = 0.5
"""Share of the daemon's grace period in which the networks of ended trials are still measured."""
LATE_SECONDS = 2.0
"""Time beyond that for the last write."""


@final
class ProxyWork:
    """Networks of one task that a daemon has yet to measure: trials first, then samples.

    Each object has its samples in another random order: trainers that share one seldom measure the
    same network at the same time, and each skips what another one has stored.

    Args:
        task: The task.
        protocol: Its protocol.

    Attributes:
        task: The task.
        protocol: Its protocol.
        trained: Networks of trials.
        sample: Networks of samples.
    """

    def __init__(self, task: Task, protocol: TrainingProtocol) -> None:
        """Start without networks."""
        self.task = task
        self.protocol = protocol
        self.trained: list[Architecture] = []
        self.sample: list[Architecture] = []
        self._seen: set[str] = set()

    def add_trained(self, network: Architecture) -> None:
        """Add the network of a trial, unless this object has given it out before."""
        self.trained += self._new([network])

    def add_sample(self, networks: Iterable[Architecture]) -> None:
        """Add random networks."""
        self.sample += self._new(networks)
        random.shuffle(self.sample)

    def take(self, count: int) -> Sequence[Architecture]:
        """Remove and return networks: as many of trials, or else of samples."""
        source = self.trained or self.sample
        taken = source[:count]
        del source[:count]
        return taken

    def put_back(self, networks: Iterable[Architecture], *, trained: bool) -> None:
        """Add networks that were taken and not measured."""
        source = self.trained if trained else self.sample
        source[:0] = networks

    def __len__(self) -> int:
        """Return the number of networks."""
        return len(self.trained) + len(self.sample)

    def _new(self, networks: Iterable[Architecture]) -> list[Architecture]:
        new = {network.key: network for network in networks if network.key not in self._seen}
        self._seen.update(new)
        return list(new.values())


@final
class ProxyMeasurer:
    """Measures a daemon's networks, and samples of its studies' spaces; a context of its run.

    Args:
        archive: The store of scores.
        options: How the daemon works; without `proxies`, nothing is measured.
        paths: Folders of the daemon.
        signal: Stop requests of the daemon.
        busy: Returns whether trials run, beside which a measurement has one thread.
    """

    def __init__(
        self,
        archive: Archive,
        options: TrainerOptions,
        paths: TrainerPaths,
        signal: StopSignal,
        busy: Callable[[], bool],
    ) -> None:
        self._archive = archive
        self._options = options
        self._paths = paths
        self._signal = signal
        self._busy = busy
        self._claims: SimpleQueue[Claim | None] = SimpleQueue()
        self._works: dict[tuple[str, str], ProxyWork] = {}
        self._by_study: dict[tuple[str, int | None], ProxyWork | None] = {}
        self._process: tuple[ProxyWork, MeasurementProcess] | None = None
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()
        self._ends_at = math.inf
        self._of_trials = False
        self._batch = 1

    def __enter__(self) -> ProxyMeasurer:
        """Start the thread, where proxies are measured."""
        if self._options.proxies is not None:
            self._thread = threading.Thread(target=self._run, name="proxies", daemon=True)
            self._thread.start()

        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Wait for the networks of trials, and end the thread."""
        if self._thread is not None:
            asked = self._signal.requested_at or time.monotonic()
            self._ends_at = asked + PARTING_SHARE * self._options.parting_seconds
            self._closing.set()
            self._claims.put(None)
            # A store that does not answer must not hold the daemon.
            self._thread.join(max(0.0, self._ends_at - time.monotonic()) + LATE_SECONDS)

    def observe(self, event: Event) -> None:
        """Receive the claims of the daemon."""
        if self._thread is not None and isinstance(event, ProposalClaimed):
            self._claims.put(event.claim)

    def _run(self) -> None:
        try:
            if self._options.study is not None:
                self._add_study(self._options.study)

            while self._receive():
                self._measure_some()
        except Exception:
            log.exception("proxies are no longer measured")
        finally:
            self._end_process()

    def _receive(self) -> bool:
        """Receive claims, and wait for one without work; return whether there is work to do."""
        while self._next() is None and not self._closing.is_set():
            try:
                self._add(self._claims.get(timeout=LINGER_SECONDS))
            except Empty:
                self._end_process()

        while not self._claims.empty():
            self._add(self._claims.get())

        return self._next() is not None and not (self._closing.is_set() and self._late())

    def _add(self, claim: Claim | None) -> None:
        if claim is not None and (work := self._work_of(claim.study)) is not None:
            work.add_trained(claim.architecture)

    def _next(self) -> ProxyWork | None:
        """Return the next work: networks of trials first, then a task with loaded data."""
        works = [*self._works.values()]
        if self._process is not None:
            works.insert(0, self._process[0])

        for work in works:
            if work.trained:
                return work

        if self._closing.is_set():
            return None

        return next((work for work in works if work.sample), None)

    def _add_study(self, name: str) -> None:
        while not self._closing.is_set():
            try:
                self._work_of(self._archive.studies.get(name))
                return
            except StoreError:
                self._closing.wait(RETRY_SECONDS)

    def _work_of(self, study: Study) -> ProxyWork | None:
        """Return the work on a study's task, with a sample of its space; None if impossible."""
        # A study may be deleted, and another one created under its name.
        key = study.name, study.created
        if key not in self._by_study:
            # The start of a daemon must not wait for numpy.
            from archive.spaces import stored_spaces

            try:
                task, protocol = measurement.subject_of(study, self._paths.access)
                space = stored_spaces.of_record(study.space, study.space_config, self._paths.home)
                sample = measurement.sample_of(space, self._options.proxies or 0)
            except Exception as error:  # A task of another package may raise anything.
                log.warning(
                    "proxies not measured study=%s reason=%r",
                    study.name,
                    failures.failure_of(error).reason,
                )
                self._by_study[key] = None
            else:
                work = self._works.setdefault((task.name, protocol.name), ProxyWork(task, protocol))
                self._by_study[key] = work
                work.add_sample(sample)

        return self._by_study[key]

    def _measure_some(self) -> None:
        """Measure and store some networks."""
        work = self._next()
        if work is None:
            return

        self._of_trials = bool(work.trained)
        networks = work.take(self._batch)
        began = time.monotonic()
        try:
            count = self._store_scores(work, networks)
        except StoreError as error:
            log.warning("proxies not stored, will retry: %s", error)
            work.put_back(networks, trained=self._of_trials)
            self._closing.wait(RETRY_SECONDS)
        except Exception as error:
            reason = failures.failure_of(error).reason
            log.warning("proxies not measured task=%s reason=%r", work.task.name, reason)
            self._give_up(work)
        else:
            self._note(work, count, time.monotonic() - began)

    def _store_scores(self, work: ProxyWork, networks: Sequence[Architecture]) -> int:
        """Measure networks in the process, store the scores, and return how many were measured."""
        if self._process is None or self._process[0] is not work:
            self._end_process()
            self._process = work, MeasurementProcess(work.task, work.protocol, self._over)

        process = self._process[1]

        def measure(network: Architecture) -> Mapping[str, float] | None:
            answer = process.measure(network, 1 if self._busy() else self._options.threads)
            if answer.reason:
                log.warning(
                    "proxies not measured architecture=%s reason=%r", network.key, answer.reason
                )

            return answer.scores

        return measurement.measure(
            self._archive, work.task, work.protocol, networks, measured=measure
        )

    def _note(self, work: ProxyWork, count: int, seconds: float) -> None:
        if count:
            self._batch = max(1, min(measurement.STORE_BATCH, int(STORE_SECONDS * count / seconds)))
            log.info(
                "proxies measured task=%s networks=%d left=%d", work.task.name, count, len(work)
            )

    def _give_up(self, work: ProxyWork) -> None:
        """Measure no further network of a task."""
        del self._works[work.task.name, work.protocol.name]
        for key, study_work in self._by_study.items():
            if study_work is work:
                self._by_study[key] = None

        self._end_process()

    def _over(self) -> bool:
        """Whether the present measurement must end."""
        return self._closing.is_set() and (self._late() or not self._of_trials)

    def _late(self) -> bool:
        return time.monotonic() >= self._ends_at or self._signal.requests > 1

    def _end_process(self) -> None:
        if self._process is not None:
            self._process[1].close()
            self._process = None

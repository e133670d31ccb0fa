"""The trainer daemon: claims proposals, runs each in a process of its own, and brings back what was found.

    claim ──> Trial ── epochs ──> report          the lease is renewed by every report, else by a heartbeat
                └─ result ──> outbox ──> complete      on the disk first, delivered as soon as the archive takes it
                └─ failure ──> fail                    for good with its reason, or back into the queue
    claim ──> table ── result ──> complete             tasks that a table answers need no process

One loop without threads does it all; no step of it waits for a trial. What goes wrong, and what then happens:

    the archive is away          trials go on; reports are dropped, results stay in the outbox
    another worker has the lease the trial is ended, its proposal forgotten
    a trial's process dies       its proposal goes back into the queue, until its attempts are used up
    SIGTERM, SIGINT, no parent   trials are ended and handed back; with `drain`, they are finished first
    the daemon is killed         its trials end at once; their leases run out; the outbox waits for the next daemon
"""

from __future__ import annotations

import logging
import os
import platform
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from archive.errors import ArchiveError, StoreError, TrainingError, UsageError
from archive.records import Claim
from archive.trainer import tasks
from archive.trainer.lifetime import Lifetime
from archive.trainer.options import Options, Tally
from archive.trainer.outbox import Outbox, Parcel
from archive.trainer.tabular import TabularTask
from archive.trainer.tasks import Task
from archive.trainer.worker import Epoch, Failed, Finished, Job, Message, Trial, resolve_device

if TYPE_CHECKING:
    from archive.archive import Archive

T = TypeVar("T")
log = logging.getLogger("archive.trainer")

REPORT_SECONDS = 0.25
"""Least time between two reports of one trial: epochs of small networks come faster than anyone looks."""
BACKOFF_SECONDS = 2.0
"""Pause after the archive was away, before it is asked again."""
FIRST_PAUSE = 0.01
"""Pause after the queue was first found empty; each further look doubles it, up to `Options.poll_seconds`."""


@dataclass
class Running:
    """A trial with its claim, and what the archive does not know of it yet."""

    claim: Claim
    trial: Trial
    curve: dict[str, list[float]] = field(default_factory=dict)
    unreported: bool = False
    renewed: float = field(default_factory=time.monotonic)


class Trainer:
    """Trains what agents propose, until told to stop.

    Args:
        archive: Where proposals come from and results go.
        options: How to work.
        home: Folder of the weights (`checkpoints/`) and of results on their way (`outbox/`); the archive's, if None.
    """

    def __init__(self, archive: Archive, options: Options | None = None, home: Path | None = None) -> None:
        self.archive = archive
        self.options = options or Options()
        settings = archive.connection.settings
        home = home or settings.home
        self.outbox = Outbox(home / "outbox", " ".join((settings.uri or "embedded", settings.database or "")))
        self.checkpoints = home / "checkpoints"
        self.worker = f"{platform.node()}-{os.getpid()}-{secrets.token_hex(3)}"
        self.device = self.options.device
        self.tally = Tally()
        self.lifetime = Lifetime(self.options.parent)
        self._running: list[Running] = []
        self._busy_at = self._beat_at = 0.0
        self._away_until = self._look_at = 0.0
        self._pause = FIRST_PAUSE
        self._deliver_now = True

    def run(self) -> Tally:
        """Work until there is a reason to leave, and say what was done.

        Raises:
            SettingsError: The device cannot be used.
            StoreError: The archive cannot be used when the daemon starts; later, it waits for it.
        """
        with self.lifetime.signals():
            self.device, hardware = self._place()
            self.archive.proposals.register_worker(self.worker, platform.node(), f"{self.device} ({hardware})")
            log.info("started worker=%s device=%s study=%s", self.worker, self.device, self.options.study)
            self._busy_at = self._beat_at = time.monotonic()
            try:
                while not self._should_leave():
                    self._turn()
            finally:
                self._hand_back()
        log.info("left worker=%s %s", self.worker, self.tally)
        return self.tally

    def stop(self) -> None:
        """Ask the loop to end, from a signal or another thread; a second time, without waiting for trials."""
        self.lifetime.request_stop()

    def _place(self) -> tuple[str, str]:
        """Return the device and its hardware; one study's table is asked without torch, which takes seconds to load."""
        study = self.options.study
        try:
            if study is not None and isinstance(tasks.get(self.archive.studies.get(study).task), TabularTask):
                return "table", "no training"
        except UsageError as error:
            log.warning("cannot work on study=%s reason=%r", study, str(error))
        return resolve_device(self.options.device)

    def _turn(self) -> None:
        """Deliver, claim, wait a moment, and tell the archive what trials have said."""
        self._deliver()
        self._claim()
        self._wait()
        for running in list(self._running):
            self._follow(running)
        if time.monotonic() - self._beat_at > self.options.lease_seconds / 2:
            self._beat_at = time.monotonic()
            self._ask(lambda: self.archive.proposals.worker_heartbeat(self.worker))

    def _should_leave(self) -> bool:
        options, asked = self.options, self.lifetime.requests
        if asked > 1 or (asked and not (options.drain and self._running)):
            return True
        if self.lifetime.parent_gone():
            log.info("parent is gone pid=%s", options.parent)
            return True
        if self._running:
            return False
        idle = time.monotonic() - self._busy_at
        if options.once and (self._finished() or idle > options.poll_seconds):
            return True
        return options.idle_seconds is not None and idle > options.idle_seconds

    def _finished(self) -> int:
        return self.tally.complete + self.tally.failed + self.tally.returned

    def _deliver(self) -> None:
        if self._deliver_now and not self._is_away():
            sent = self._ask(lambda: self.outbox.deliver(self.archive.proposals.complete))
            self._deliver_now = sent is None

    def _claim(self) -> None:
        options, until = self.options, time.monotonic() + REPORT_SECONDS
        while len(self._running) < options.slots and not self.lifetime.requests and not self._is_away():
            # A table answers as fast as it is asked; what else is to be done must not wait for an empty queue.
            if (options.once and self._finished()) or time.monotonic() > until:
                return
            claim = self._ask(self._next) if time.monotonic() >= self._look_at else None
            if claim is None:
                return
            self._begin(claim)

    def _next(self) -> Claim | None:
        options = self.options
        try:
            claim = self.archive.proposals.claim(self.worker, study=options.study, lease_seconds=options.lease_seconds)
            self._pause = FIRST_PAUSE if claim else min(2 * self._pause, options.poll_seconds)
            # A free slot beside a busy one would otherwise look for work after each of the other's epochs.
            self._look_at = 0.0 if claim else time.monotonic() + self._pause
            return claim
        except StoreError:
            raise
        except ArchiveError as error:
            # A network of a space that is not installed here; its lease runs out, for a worker that has it.
            log.error("cannot read what was claimed reason=%r", str(error))
            self._away_until = time.monotonic() + BACKOFF_SECONDS
            return None

    def _begin(self, claim: Claim) -> None:
        self._busy_at = time.monotonic()
        try:
            task = tasks.get(claim.study.task)
            if isinstance(task, TabularTask):
                self._answer(claim, task)
                return
            trial = Trial(self._job(claim, task))
        except ArchiveError as error:
            # Another worker may know the task, or have a process to spare.
            self._fail(claim, Failed(str(error), retry=True))
            return
        log.info("claimed proposal=%s attempt=%d pid=%s", claim.id, claim.proposal.attempts + 1, trial.pid)
        self._running.append(Running(claim, trial))

    def _answer(self, claim: Claim, task: TabularTask) -> None:
        """Look a result up; it is on the table's disk already, so the outbox takes it only while the archive is away.

        Raises:
            ArchiveError: The table cannot be read here.
        """
        if claim.proposal.hyperparameters:
            named = ", ".join(sorted(claim.proposal.hyperparameters))
            self._fail(claim, Failed(f"the table of {task.name} was trained in one way, it has no choice of {named}"))
            return
        try:
            parcel = Parcel(claim.id, claim.token, task.answer(claim.architecture, claim.study.protocol))
        except TrainingError as error:
            self._fail(claim, Failed(error.reason))
            return
        if self._ask(lambda: self._complete(parcel)) is None:
            self.outbox.put(parcel)
            self._deliver_now = True
        self.tally.complete += 1
        self._busy_at = time.monotonic()

    def _complete(self, parcel: Parcel) -> bool:
        try:
            return self.archive.proposals.complete(parcel.proposal, parcel.token, parcel.result)
        except StoreError:
            raise
        except ArchiveError as error:
            log.error("result refused proposal=%s reason=%r", parcel.proposal, str(error))
            return False

    def _job(self, claim: Claim, task: Task) -> Job:
        return Job(
            architecture=claim.architecture,
            task=task,
            protocol=task.protocol(claim.study.protocol),
            seed=claim.study.seed,
            device=self.device,
            threads=self._threads(),
            folder=self.checkpoints,
            about={"proposal": claim.id},
            hyperparameters=claim.proposal.hyperparameters,
        )

    def _threads(self) -> int | None:
        if self.options.threads is None and "OMP_NUM_THREADS" in os.environ:
            return None
        return self.options.threads or max(1, len(os.sched_getaffinity(0)) // self.options.slots)

    def _wait(self) -> None:
        pipes = [running.trial.connection for running in self._running]
        if pipes:
            wait(pipes, self.options.poll_seconds)
        elif self._is_away():
            time.sleep(self.options.poll_seconds)
        else:
            time.sleep(max(0.0, self._look_at - time.monotonic()))

    def _follow(self, running: Running) -> None:
        """Take in what a trial has said, and pass it on when it is time to."""
        for message in running.trial.messages():
            if not isinstance(message, Epoch):
                self._end(running, message)
                return
            for name, value in message.metrics.items():
                running.curve.setdefault(name, []).append(value)
            running.unreported = True
        now = time.monotonic()
        if now - running.trial.heard > self.options.stall_seconds:
            self._end(running, Failed(f"no progress for {self.options.stall_seconds:g} s", retry=True))
        elif running.unreported and now - running.renewed > REPORT_SECONDS:
            self._renew(running)
        elif now - running.renewed > self.options.lease_seconds / 3:
            self._renew(running)

    def _renew(self, running: Running) -> None:
        """Report the curve, which renews the lease, too; end a trial whose proposal is another worker's."""
        if self._is_away():
            return
        claim, curve = running.claim, running.curve if running.unreported else None
        proposals, seconds = self.archive.proposals, self.options.lease_seconds
        try:
            if curve is None:
                self._ask(lambda: proposals.heartbeat(claim.id, claim.token, seconds))
            else:
                self._ask(lambda: proposals.report(claim.id, claim.token, curve, seconds))
        except ArchiveError as error:
            # Another worker has the lease, or somebody has deleted the proposal.
            log.warning("given up proposal=%s reason=%r", claim.id, str(error))
            self._forget(running)
            self.tally.returned += 1
            return
        if self._is_away():
            return
        running.unreported = False
        running.renewed = time.monotonic()

    def _end(self, running: Running, last: Message) -> None:
        self._forget(running)
        claim = running.claim
        if isinstance(last, Finished):
            self.outbox.put(Parcel(claim.id, claim.token, last.result))
            self.tally.complete += 1
            self._deliver_now = True
            self._deliver()
        elif isinstance(last, Failed):
            self._fail(claim, last)

    def _fail(self, claim: Claim, failed: Failed) -> None:
        log.warning("failed proposal=%s retry=%s reason=%r", claim.id, failed.retry, failed.reason)
        self.tally.failed += 1
        self._give_up(claim, failed.reason, retry=failed.retry)

    def _give_up(self, claim: Claim, reason: str, *, retry: bool) -> None:
        try:
            self._ask(lambda: self.archive.proposals.fail(claim.id, claim.token, reason, retry))
        except ArchiveError as error:
            log.info("not ours any more proposal=%s reason=%r", claim.id, str(error))

    def _release(self, claim: Claim) -> None:
        try:
            self._ask(lambda: self.archive.proposals.release(claim.id, claim.token))
        except ArchiveError as error:
            log.info("not ours any more proposal=%s reason=%r", claim.id, str(error))

    def _forget(self, running: Running) -> None:
        running.trial.end()
        self._running.remove(running)
        self._busy_at = time.monotonic()

    def _hand_back(self) -> None:
        """End what still runs and put it back into the queue, for others to take at once."""
        for running in list(self._running):
            self._forget(running)
            self.tally.returned += 1
            # While the archive is away, the end of the lease does the same, only later.
            if not self._is_away():
                self._release(running.claim)
        self._deliver()

    def _ask(self, call: Callable[[], T]) -> T | None:
        """Ask the archive; None, and a pause before it is asked again, when it cannot answer."""
        try:
            return call()
        except StoreError as error:
            log.warning("archive is away, will ask again: %s", error)
            self._away_until = time.monotonic() + BACKOFF_SECONDS
            return None

    def _is_away(self) -> bool:
        return time.monotonic() < self._away_until

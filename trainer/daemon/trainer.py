"""The trainer daemon: claims proposals, runs each in a separate process, and delivers the results.

    claim ──> trial ── epochs ──> report                   another thread renews the lease
                └─ result ──> result spool ──> complete    on disk first, then delivered
                └─ failure ──> result spool ──> fail       final, or back into the queue
    claims ──> table ── results ──> complete               no process: many claims at a time
    claim of parameters ──> network ──> trial              with a model (`network_builder`)

One loop does it all, and never waits for one trial; another thread renews the leases
(`client.lease_keeper`). Faults:

    the store is unreachable     trials continue; reports are dropped, results stay in the spool
    the lease is lost            the trial is killed and its proposal dropped
    a training cannot begin      another worker gets its proposal; three in a row end the daemon
    memory runs out              the proposal is tried alone, then on a larger device, then fails
    a trial's process dies       its proposal returns to the queue while attempts are left
    a trial exceeds a limit      the trial is killed, and its proposal fails with the reason
    SIGTERM, SIGINT, no parent   trials save a checkpoint and are handed back, or finish (`drain`)
    its time limit is near       no further claims; then as after SIGTERM
    the daemon is killed         trials end, leases expire; checkpoints and spool stay on disk

The next attempt at a proposal that was handed back or lost resumes from its last checkpoint.
"""

from __future__ import annotations

import logging
import os
import platform
import secrets
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from archive.errors import ArchiveError, StoreUnavailableError, TrainingError
from archive.queue.causes import Cause
from archive.server.access import refuse_address
from archive.store.records import Claim, Result
from archive.trainer.daemon import events
from archive.trainer.daemon.client import store_link
from archive.trainer.daemon.client.store_client import BATCH, StoreClient
from archive.trainer.daemon.executors import LocalExecutor, TrialExecutor
from archive.trainer.daemon.in_flight import InFlight, is_paused, wait
from archive.trainer.daemon.network_builder import NetworkBuilder, NetworkReady
from archive.trainer.daemon.options import TICK_SECONDS, Tally, TrainerOptions
from archive.trainer.daemon.outcomes import Outcomes
from archive.trainer.daemon.paths import TrainerPaths
from archive.trainer.daemon.placement import TrainerDevices
from archive.trainer.daemon.proxy_measurer import ProxyMeasurer
from archive.trainer.daemon.shutdown import Parting, StopSignal, TimeLimit
from archive.trainer.tasks.tabular import TabularTask
from archive.trainer.trial import failures
from archive.trainer.trial.messages import (
    EpochReport,
    Message,
    TrialFailed,
    TrialFinished,
    TrialInterrupted,
)
from archive.trainer.trial.spec import with_inherited_weights

if TYPE_CHECKING:
    from archive.api import Archive

log = logging.getLogger("archive.trainer")


class Trainer:
    """Trains proposals until it is stopped.

    Args:
        archive: The store of proposals and results.
        options: How to work.
        home: Folder of its files (`archive.trainer.daemon.paths`); the archive's home if None.
        observers: Receive every event (`archive.trainer.daemon.events`).
        executor: Runs the trials; None for processes of this machine.
    """

    def __init__(
        self,
        archive: Archive,
        options: TrainerOptions | None = None,
        home: Path | None = None,
        observers: Sequence[events.Observer] = (),
        executor: TrialExecutor | None = None,
    ) -> None:
        self.archive = archive
        self.options = options or TrainerOptions()
        settings = archive.connection.settings
        self.paths = TrainerPaths.of(settings, self.options, home)
        self.spool = self.paths.spool(
            " ".join((settings.uri or "embedded", settings.database or ""))
        )
        self.worker = f"{platform.node()}-{os.getpid()}-{secrets.token_hex(3)}"
        stop = self.stop_signal = StopSignal(self.options.parent)
        self._proxies = ProxyMeasurer(
            archive, self.options, self.paths, stop, lambda: bool(self.in_flight)
        )
        self.observers = [*observers, self._proxies.observe]
        self._emit = partial(events.notify, self.observers)
        self.client = StoreClient(
            archive,
            self.worker,
            self.options,
            self.spool,
            self._emit,
            stopping=Parting(stop, self.options, lambda: self.in_flight),
        )
        self.outcomes = Outcomes(self.client, self.paths, self.options, self._emit)
        self._networks = NetworkBuilder(archive)
        self.executor = executor or LocalExecutor(self.paths.scratch)
        self.time_limit = TimeLimit(self.options)
        self.devices = TrainerDevices(self.options, self.executor.hardware)
        self.in_flight: tuple[InFlight, ...] = ()
        self._busy_at = 0.0

    @property
    def contact(self) -> float:
        """Time of the store's last answer, in seconds since 1970."""
        return self.client.contact

    @property
    def device(self) -> str:
        """Devices of the trials in torch's notation."""
        return self.devices.label

    @property
    def slots(self) -> int:
        """Number of trials at a time."""
        return self.devices.placement.slots

    @property
    def tally(self) -> Tally:
        """Number of trials by outcome."""
        return self.outcomes.tally

    def run(self) -> Tally:
        """Work until there is a reason to stop, and return the tally.

        Raises:
            SettingsError: The device, the location of the weights or `recipes.toml` cannot be used.
            UnknownNameError: An allowed recipe is not on this machine.
            StoreError: The store cannot be used at the start; later, the daemon waits for it.
        """
        # Each step of the end runs even if another one fails: a thread that renews leases must not
        # outlive its daemon.
        with self.stop_signal.signals(), ExitStack() as at_end:
            self.paths.check()
            store_link.wait_for_store(
                self._arrive, self.options.wait_seconds, log.warning, self.stop_signal.stopping
            )
            # From the last to the first:
            at_end.enter_context(self._proxies)
            at_end.callback(self.devices.release)
            at_end.callback(self.client.depart)
            at_end.callback(self.paths.close)
            at_end.callback(self.executor.close)
            at_end.callback(self.spool.release)
            at_end.callback(self._networks.close)
            at_end.callback(self._hand_back)
            log.info(
                "started worker=%s device=%s study=%s", self.worker, self.device, self.options.study
            )
            self._emit(events.TrainerStarted(self.worker, self.device))
            self.spool.adopt()
            self.paths.clean_up(self.spool)
            self._busy_at = time.monotonic()
            while not self._should_stop():
                self._step()

        log.info("stopped worker=%s %s", self.worker, self.tally)
        self._emit(events.TrainerStopped(self.worker, self.tally))
        return self.tally

    def stop(self) -> None:
        """Request the end of the loop; a second call does not wait for trials. Thread-safe."""
        self.stop_signal.request_stop()

    def _arrive(self) -> None:
        refuse_address(self.archive.connection.settings, self.archive.connection.dialect)
        self.devices.find(self.archive, self.paths.task)
        self.client.arrive(
            self.paths.capabilities(self.devices.placement.memory_bytes), **self.devices.record()
        )

    def _step(self) -> None:
        """Claim, wait a moment, and deliver the messages of the trials."""
        self._claim()
        self._wait()
        self._poll_all()
        self.client.adopt()

    def _should_stop(self) -> bool:
        options = self.options
        requests = self.stop_signal.requests
        if requests > 1 or (requests and not (options.drain and self.in_flight)):
            return True

        if self.outcomes.unfit:
            self.outcomes.give_up()
            return True

        if self.stop_signal.parent_gone() or self.time_limit.is_over(len(self.in_flight)):
            return True

        if self.in_flight:
            return False

        idle = self.client.idle_seconds(self._busy_at)
        is_done = options.once and (self.tally.all or idle > options.tick)
        return bool(is_done) or (options.idle_seconds is not None and idle > options.idle_seconds)

    def _claim(self) -> None:
        """Fill the free slots; while a table answers at once, claim many at a time for a moment."""
        deadline = time.monotonic() + TICK_SECONDS
        study = None
        while (
            not self.stop_signal.requests
            and time.monotonic() < deadline
            and self.time_limit.may_claim()
        ):
            room = self.devices.placement.room(self.in_flight)
            free = room.slots
            if self.options.once:
                free = 0 if self.tally.all else min(free, 1)

            most = BATCH if free and study else free
            claims = self.client.claim(
                most, study, memory_bytes=room.memory_bytes, alone_bytes=room.alone_bytes
            )
            if not claims:
                return

            answered = [self._start(claim) for claim in claims]
            study = claims[-1].study.name if all(answered) else None
            self._deliver()

    def _start(self, claim: Claim, *, built: bool = False) -> bool:
        """Start on a claim, and return whether a table has answered it already.

        Args:
            claim: The claim.
            built: Whether the network of its configuration has been built before.
        """
        self._busy_at = time.monotonic()
        # After an outage longer than a lease, the store may return a proposal that still runs here.
        # The former claim is void, and two trials must not write to one checkpoint.
        self._drop_lost(work for work in self.in_flight if work.claim.id == claim.id)
        try:
            task = self.paths.task(claim.study)
            if isinstance(task, TabularTask):
                later = answer(claim, task, self.options.scale, self.outcomes, self._emit)
                self.in_flight += () if later is None else (later,)
                return later is None

            device = self.devices.placement.choose(claim.proposal, self.in_flight)
            if device is None:
                self.outcomes.release(claim, "no device has room for it now")
                return False

            spec = self.paths.spec(claim, task, device, self.slots)
            network = None if built else self._networks.begin(claim, spec)
            if network is not None:
                self._emit(events.ProposalClaimed(claim, None, spec.protocol.as_dict()))
                self.in_flight += (InFlight(claim, network, device=device),)
                return False

            spec = self.client.ask(
                partial(with_inherited_weights, self.archive, spec, self.paths.readable)
            )
            trial, scratch = self.executor.start(spec)
        except StoreUnavailableError as error:
            self.outcomes.release(claim, str(error))
            return False
        except Exception as error:
            # A task of another package may raise any exception, which must not end one trainer
            # after the other.
            if not isinstance(error, ArchiveError):
                log.exception("cannot start proposal=%s", claim.id)

            self.outcomes.fail(claim, failures.refusal_of(error))
            return False

        log.info(
            "claimed proposal=%s attempt=%d pid=%s",
            claim.id,
            claim.proposal.attempts + 1,
            trial.pid,
        )
        if not built:
            self._emit(events.ProposalClaimed(claim, trial.pid, spec.protocol.as_dict()))

        self.in_flight += (InFlight(claim, trial, scratch=scratch, device=device),)
        return False

    def _wait(self) -> None:
        """Wait for a message of a trial, the next claim, or the next poll."""
        deadline = min(time.monotonic() + self.options.tick, self.time_limit.next_moment())
        wait(self.in_flight, deadline, self.client.sleep)

    def _poll_all(self) -> None:
        self.executor.tidy()
        self._networks.tidy()
        for work in self.in_flight:
            self._poll(work)

        self._deliver()

    def _poll(self, work: InFlight) -> None:
        """Read the messages of a trial, and report its progress when that is due."""
        for message in work.trial.messages():
            if isinstance(message, NetworkReady):
                self._remove(work)
                self._start(work.claim, built=True)
                return

            if not isinstance(message, EpochReport):
                self._finish(work, message)
                return

            work.add(message.metrics)
            if not message.resumed:
                self._emit(events.EpochTrained(work.claim, message.metrics))

        if time.monotonic() - work.trial.last_seen > self.options.stall_seconds:
            reason = f"no progress for {self.options.stall_seconds:g} s"
            self._finish(work, work.trial.abandon(reason, Cause.STALL))
        elif excess := work.excess(self.options):
            self._finish(work, work.trial.abandon(excess, Cause.LIMIT))
        elif work.is_due() and not self.client.unreachable:
            self.client.enqueue(work.report(self.options.lease, self.client.report_seconds))

    def _finish(self, work: InFlight, last: TrialFinished | TrialFailed | TrialInterrupted) -> None:
        self._remove(work)
        match last:
            case TrialFinished(result):
                self.outcomes.complete(work.claim, result)
                self.time_limit.note_trial(time.monotonic() - work.began)
                # The checkpoint of a rung is for the trial that continues to the next one.
                if not is_paused(result):
                    self.paths.discard_checkpoint(work.claim)
            case TrialFailed():
                last = self.devices.placement.with_neighbours(last, work.device, self.in_flight)
                self.outcomes.fail(work.claim, last)
            case TrialInterrupted(saved, epoch):
                reason = f"interrupted after {epoch} epochs"
                self.outcomes.release(work.claim, f"{reason}, saved" if saved else reason)

    def _deliver(self) -> None:
        """Deliver pending notices, and drop the trials that have lost their lease."""
        lost = self.client.flush()
        self._drop_lost(work for work in self.in_flight if work.key in lost)
        self.paths.clean_up(self.spool)

    def _drop_lost(self, lost: Iterable[InFlight]) -> None:
        """Kill trials of proposals that belong to other workers, or are finished."""
        for work in lost:
            self._remove(work)
            self.outcomes.lose(work.claim)

    def _remove(self, work: InFlight) -> None:
        work.trial.kill()
        if work.scratch is not None:
            work.scratch.delete_in_background()

        self.in_flight = tuple(other for other in self.in_flight if other is not work)
        self._busy_at = time.monotonic()

    def _hand_back(self) -> None:
        """Let running trials save checkpoints, and return their proposals to the queue."""
        deadline = time.monotonic() + self.options.parting_seconds
        requests = self.stop_signal.requests
        at_once = requests > 1 + self.options.drain
        for work in self.in_flight:
            work.trial.interrupt()

        while (
            self.in_flight
            and not at_once
            and time.monotonic() < deadline
            and self.stop_signal.requests == requests
        ):
            self._wait()
            self._poll_all()

        for work in self.in_flight:
            self._remove(work)
            self.outcomes.release(work.claim, "killed before it had saved")

        self._deliver()


def answer(
    claim: Claim, task: TabularTask, scale: float, outcomes: Outcomes, emit: events.Observer
) -> InFlight | None:
    """Look a result up, and record it; return the work in progress where it comes later.

    Args:
        claim: The claim.
        task: Its task.
        scale: Delay, as a multiple of the recorded training time.
        outcomes: Records the result.
        emit: Receives the events.

    Raises:
        ArchiveError: The table cannot be read here.
    """
    emit(events.ProposalClaimed(claim, protocol=task.protocol(claim.study.protocol).as_dict()))
    try:
        result = look_up(claim, task)
    except TrainingError as error:
        outcomes.fail(claim, TrialFailed(error.reason))
        return None

    if seconds := scale * (result.seconds or 0.0):
        return InFlight(claim, DelayedResult(result, seconds))

    # The table keeps it on disk, so it goes to the spool only if the store is unreachable.
    outcomes.complete(claim, result, keep=False)
    return None


def look_up(claim: Claim, task: TabularTask) -> Result:
    """Return a table's result for a claim.

    Raises:
        TrainingError: The table has none.
        UsageError: The table cannot be read here.
    """
    if claim.proposal.hyperparameters:
        names = ", ".join(sorted(claim.proposal.hyperparameters))
        raise TrainingError(
            f"the table of {task.name} was trained in one way, it has no choice of {names}"
        )

    return task.answer(claim.architecture, claim.study.protocol, claim.id)


class DelayedResult:
    """A table's result that arrives when a training would have ended, in scaled time.

    Args:
        result: The result.
        seconds: Its delay.
    """

    pid = None
    pids = ()
    enforces_limits = False
    waitable: ClassVar[list[Connection | int]] = []

    def __init__(self, result: Result, seconds: float) -> None:
        self.due = time.monotonic() + seconds
        self._result = result
        self._interrupted = False

    @property
    def last_seen(self) -> float:
        """Now: a timer does not hang."""
        return time.monotonic()

    def messages(self) -> list[Message]:
        """Return the result when it is due."""
        if time.monotonic() >= self.due:
            return [TrialFinished(self._result)]

        return [TrialInterrupted(saved=False, epoch=0)] if self._interrupted else []

    def interrupt(self) -> None:
        """End without a result; there is nothing to save."""
        self._interrupted = True

    def abandon(self, reason: str, cause: Cause) -> TrialFailed:
        """Return the failure."""
        return TrialFailed(reason, cause is not Cause.LIMIT, cause=cause)

    def kill(self) -> None:
        """Do nothing: there is no process."""

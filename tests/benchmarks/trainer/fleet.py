"""Benchmark of a fleet of trainers.

    idle phase     all trainers look at an empty queue
    busy phase     each trainer holds a trial with an epoch a second, reports its curve, and claims the next one

The trainers are simulated (`tests.benchmarks.trainer.simulated_trainers`). The server's share of
the processor is its processor time by the wall time and the number of cores: other work of the
machine delays transactions, but hardly changes what one costs. The number of trainers that keep the
server busy for half its time is interpolated between the sizes of the measured fleets; above the
largest one, it follows the last line.
"""

from __future__ import annotations

import logging
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice, pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil

from archive import connect, runtime
from archive.api import Archive
from archive.architecture.graph import Architecture
from archive.benchmarks.measurement import Figure
from archive.database.connection import Connection
from archive.queue import workers
from archive.server import embedded
from archive.server.temporary import PREFIX as FOLDER
from archive.server.temporary import temporary_archive
from archive.settings import Settings
from archive.store.architectures import batched
from archive.store.records import State, Study
from archive.trainer.daemon.client.store_client import BATCH
from archive.trainer.daemon.options import TrainerOptions
from tests.benchmarks.trainer.simulated_trainers import Agenda, simulated
from tests.benchmarks.trainer.throughput import SPACE, SuggestedCell, networks

TRAINERS = (100, 300, 1000)
SECONDS = 120.0
TRIAL_SECONDS = (60.0, 600.0)
PREFIX = "bench-fleet-"
IDLE_GOAL = 0.05
SETTLED_SECONDS = 75.0
"""Time in which the pauses of an idle trainer grow to the longest one."""

Notify = Callable[[str], None]


def measure(
    own: Settings | None = None,
    trainers: Sequence[int] = TRAINERS,
    seconds: float = SECONDS,
    trials: Sequence[float] = TRIAL_SECONDS,
    notify: Notify = lambda _: None,
) -> Iterator[Figure]:
    """Measure an idle fleet, and a busy one for each duration of a trial.

    Args:
        own: Database to measure; the networks remain in it. None, or an embedded one, measures an
            embedded server of its own in a temporary folder.
        trainers: Numbers of trainers.
        seconds: Duration of each phase.
        trials: Durations of the trials, in seconds.
        notify: Receives a line at the start of each phase.
    """
    if own is not None and not own.embedded:
        yield from _measure(own, trainers, seconds, trials, notify)
        return

    with temporary_archive() as temporary:
        yield from _measure(temporary, trainers, seconds, trials, notify)


def half_busy(shares: Sequence[tuple[int, float]]) -> float:
    """Return the number of trainers at which a server is busy for half its time; NaN for a server
    that does nothing.

    Args:
        shares: Number of trainers and busy share of the server, for each measured fleet.
    """
    line = [(0.0, 0.0), *sorted(shares)]
    for (few, low), (many, high) in pairwise(line):
        if high > low and (high >= 0.5 or many == line[-1][0]):
            return few + (many - few) * (0.5 - low) / (high - low)

    return float("nan")


def _measure(
    own: Settings, trainers: Sequence[int], seconds: float, trials: Sequence[float], notify: Notify
) -> Iterator[Figure]:
    source = networks()
    with _quiet(), connect(own) as archive, tempfile.TemporaryDirectory(prefix=FOLDER) as folder:
        server = _server(archive)
        for trial in (None, *trials):
            phase = "idle" if trial is None else f"trials of {trial:g} s"
            shares = []
            for fleet in sorted(trainers):
                study = f"{PREFIX}{time.time_ns()}"
                try:
                    made = (
                        0
                        if trial is None
                        else round(fleet * (1 + (seconds + _warm_up(trial)) / trial))
                    )
                    notify(f"preparing {made} proposals")
                    _propose(archive, study, made, source)
                    notify(f"{fleet} trainers, {phase}, for {seconds:g} s")
                    usage = _run(archive, Path(folder), study, fleet, seconds, trial, server)
                finally:
                    archive.studies.delete(study)

                yield from _figures(
                    phase, usage, fleet, None if trial is not None else f"<= {IDLE_GOAL}"
                )
                if usage.share is not None:
                    shares.append((fleet, usage.share))

            if shares:
                yield Figure(
                    f"{phase}: trainers that keep the server busy for half its time",
                    half_busy(shares),
                )


@dataclass
class Usage:
    """What a fleet has used.

    Attributes:
        seconds: Wall time.
        reads: Durations of its read transactions, in seconds.
        writes: Durations of its write transactions, in seconds.
        server_seconds: Processor time of the server; None for a server on another machine.
        lost: Number of lost leases.
        completed: Number of results.
        late: Longest delay of a call after it was due, in seconds.
    """

    seconds: float
    reads: list[float] = field(default_factory=list)
    writes: list[float] = field(default_factory=list)
    server_seconds: float | None = None
    lost: int = 0
    completed: int = 0
    late: float = 0.0

    @property
    def transactions(self) -> int:
        """Number of transactions."""
        return len(self.reads) + len(self.writes)

    @property
    def share(self) -> float | None:
        """Busy share of the server's cores; None for a server on another machine."""
        return (
            None
            if self.server_seconds is None
            else self.server_seconds / self.seconds / runtime.count_cores()
        )


def _figures(phase: str, usage: Usage, trainers: int, goal: str | None) -> Iterator[Figure]:
    name = f"{trainers} trainers, {phase}"
    rate = usage.transactions / usage.seconds
    yield Figure(f"{name}: transactions of a trainer", rate / trainers, "1/s", goal)
    yield Figure(f"{name}: transactions", rate, "1/s")
    if usage.completed:
        yield Figure(f"{name}: results", usage.completed)

    yield Figure(f"{name}: leases lost", usage.lost, "", "<= 0")
    yield Figure(f"{name}: longest delay of a call", usage.late, "s")
    for kind, durations in (("read", usage.reads), ("write", usage.writes)):
        if durations:
            yield Figure(f"{name}: median {kind}", 1000 * statistics.median(durations), "ms")

    if usage.server_seconds is not None and usage.share is not None:
        yield Figure(f"{name}: server's share of {runtime.count_cores()} cores", usage.share)
        milliseconds = 1000 * usage.server_seconds / max(1, usage.transactions)
        yield Figure(f"{name}: server's processor time a transaction", milliseconds, "ms")


def _warm_up(trial: float | None) -> float:
    """Return the time until idle pauses have grown, or trials have begun."""
    return SETTLED_SECONDS if trial is None else min(SETTLED_SECONDS, trial)


def _run(
    archive: Archive,
    folder: Path,
    study: str,
    trainers: int,
    seconds: float,
    trial: float | None,
    server: int | None,
) -> Usage:
    """Run a fleet for some time, and return what it used."""
    fleet = simulated(archive, folder, study, trainers, TrainerOptions(study=study), trial)
    for number in range(trainers):
        workers.beat(archive.connection, f"{study}-{number}")

    warm_up = _warm_up(trial)
    agenda = Agenda(fleet, spread=min(warm_up, 10.0))
    with _timed(archive.connection) as timed, agenda:
        time.sleep(warm_up)
        agenda.late = 0.0
        timed.clear()
        began = time.monotonic()
        before = _processor_seconds(server)
        time.sleep(seconds)
        usage = Usage(time.monotonic() - began)
        after = _processor_seconds(server)
        calls = list(timed)

    usage.reads = [duration for kind, duration in calls if kind == "execute_read"]
    usage.writes = [duration for kind, duration in calls if kind != "execute_read"]
    usage.server_seconds = None if before is None or after is None else after - before
    usage.lost = sum(each.lost for each in fleet) + _attempts(archive, study)
    usage.completed = sum(each.completed for each in fleet)
    usage.late = agenda.late
    return usage


def _propose(archive: Archive, study: str, made: int, source: Iterator[Architecture]) -> None:
    archive.studies.create(Study(study, "digits", "digits/1", SPACE, budget=made or 1))
    agent = archive.proposals.register_agent("benchmark", {}, "1")
    for part in batched(islice(source, made), BATCH):
        archive.proposals.create(study, agent, [SuggestedCell(each) for each in part])


def _attempts(archive: Archive, study: str) -> int:
    """Return how often a lease of the study has ended without a result."""
    return sum(each.attempts for each in archive.proposals.list(study, list(State)))


@contextmanager
def _timed(connection: Connection) -> Iterator[list[tuple[str, float]]]:
    """Record the kind of each transaction of a connection, and its duration in seconds."""
    durations: list[tuple[str, float]] = []
    run = connection._run

    def timed(kind: Any, *arguments: Any) -> object:
        began = time.monotonic()
        try:
            return run(kind, *arguments)
        finally:
            durations.append((kind, time.monotonic() - began))

    connection._run = timed  # type: ignore[method-assign,assignment]
    try:
        yield durations
    finally:
        del connection._run


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep a line for each result away from the terminal."""
    log = logging.getLogger("archive.trainer")
    before = log.level
    log.level = logging.ERROR
    try:
        yield
    finally:
        log.setLevel(before)


def _server(archive: Archive) -> int | None:
    """Return the process id of the server, if it is on this machine."""
    own = archive.connection.settings
    if own.embedded:
        return embedded.status(own).java_pid or None

    port = urlsplit(archive.connection.address).port or 7687
    try:
        listening = psutil.net_connections("tcp")
    except psutil.AccessDenied:
        return None

    return next(
        (one.pid for one in listening if one.status == "LISTEN" and one.laddr.port == port), None
    )


def _processor_seconds(pid: int | None) -> float | None:
    if pid is None:
        return None

    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)

"""Benchmark of the store's throughput in proposals a second.

A life cycle is the store's share of a trial: propose, claim, three reports, complete. One agent
proposes, in batches, for ten seconds; workers, each a separate process, claim and report until the
queue is empty. Three modes:

    in batches       as the daemon does for tabular tasks (`archive.trainer.daemon.client`): many proposals in a
                     transaction, which is one of claims, of first, second or third reports, or of
                     results
    reports late     the same for a daemon without time for reports: the result replaces them
    one by one       one transaction for each step of each proposal

In the same run, Optuna's storages: ask, three reports, tell, for ten seconds, by as many processes.
"""

from __future__ import annotations

import multiprocessing
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from archive import connect, spaces
from archive.api import Archive
from archive.architecture.graph import Architecture
from archive.benchmarks.measurement import Figure
from archive.database.connection import Connection
from archive.queue.updates import Completion, Report
from archive.server.temporary import PREFIX as FOLDER
from archive.server.temporary import temporary_archive
from archive.settings import Settings
from archive.store.architectures import batched
from archive.store.records import Claim, Result, Study
from archive.trainer.daemon.client.store_client import BATCH, StoreClient
from archive.trainer.daemon.options import TrainerOptions
from archive.trainer.daemon.result_spool import ResultSpool

WORKERS = (1, 8)
SECONDS = 10.0
WARM_UP = 12000
CURVES = [
    {"loss": [1.0, 0.5, 0.25][:epochs], "valid_accuracy": [0.5, 0.75, 0.875][:epochs]}
    for epochs in (1, 2, 3)
]
RESULT = Result(0.875, {"accuracy": 0.875}, CURVES[-1], epochs=3)
PREFIX = "bench-throughput-"

Manner = Literal["in batches", "reports late", "one by one"]
Peer = Literal["SQLite", "journal"]

PEERS: tuple[Peer, ...] = ("SQLite", "journal")
MOST: dict[Manner, int] = {"in batches": 6000, "reports late": 6000, "one by one": 800}
"""Largest number of cycles in each mode."""
PART = 2000
"""Cycles of each study of the warm-up."""
SPACE = "nasbench101"

STUDIES = "MATCH (s:Study) WHERE s.name STARTS WITH $prefix RETURN s.name AS name"


@dataclass(frozen=True)
class SuggestedCell:
    """A network to evaluate."""

    architecture: Architecture


def measure(own: Settings | None = None, workers: Sequence[int] = WORKERS) -> Iterator[Figure]:
    """Yield the rates of life cycles, and Optuna's, for each number of workers.

    Args:
        own: A database without networks of NAS-Bench-101, which remain in it; the proposals of the
            measurement are deleted. None measures an embedded server of its own in a temporary
            folder.
        workers: Numbers of processes.
    """
    if own is not None and not own.embedded:
        yield from _measure(own, workers)
        return

    with temporary_archive() as temporary:
        yield from _measure(temporary, workers)


def _measure(own: Settings, workers: Sequence[int]) -> Iterator[Figure]:
    source = networks()
    where = "the embedded server" if own.embedded else "the database"
    with connect(own) as archive:
        try:
            # A server that has run for months is warm: its just-in-time compiler needs some ten
            # thousand cycles.
            for _ in range(WARM_UP // PART):
                _cycles(archive, own, "in batches", 1, list(islice(source, PART)))

            for count in workers:
                name = f"life cycles on {where}, {count} worker{'s' * (count > 1)}"
                # Just before: the speed of a shared machine changes within minutes.
                peers = dict(_peers(count))
                rates = {
                    each: _cycles(archive, own, each, count, list(islice(source, MOST[each])))
                    for each in MOST
                }
                goals: dict[Peer, int | None] = {"SQLite": 10, "journal": 2 if count > 1 else None}
                for peer, times in goals.items():
                    beside = _beside(peers.get(peer), times)
                    yield Figure(
                        f"{name}, in batches, beside Optuna on {peer}",
                        rates["in batches"],
                        "1/s",
                        *beside,
                    )

                yield Figure(f"{name}, reports late", rates["reports late"], "1/s")
                yield Figure(f"{name}, one by one", rates["one by one"], "1/s")
        finally:
            _clean_up(archive)


def _beside(reference: float | None, times: int | None) -> tuple[str | None, float | None]:
    return (f">= {times * reference:.0f}" if times and reference else None), reference


def networks() -> Iterator[Architecture]:
    """Yield different networks."""
    # Other benchmarks, and the help of the command, must not wait for numpy.
    import numpy as np

    space = spaces.get(SPACE)
    rng = np.random.default_rng(0)
    seen = set[str]()
    while True:
        network = space.sample(rng)
        if network.functional_key not in seen:
            seen.add(network.functional_key)
            yield network


def _cycles(
    archive: Archive, own: Settings, manner: Manner, workers: int, networks: Sequence[Architecture]
) -> float:
    """Run an agent that proposes and workers that answer, and return the rate in proposals a
    second.
    """
    study = f"{PREFIX}{time.time_ns()}"
    archive.studies.create(Study(study, "digits", "digits/1", SPACE, budget=len(networks)))
    agent = archive.proposals.register_agent("benchmark", {}, "1")

    def propose() -> None:
        end = time.monotonic() + SECONDS
        for part in batched(networks, BATCH):
            if time.monotonic() < end:
                archive.proposals.create(study, agent, [SuggestedCell(each) for each in part])

    with tempfile.TemporaryDirectory(prefix=FOLDER) as folder:
        began, ends = _together(workers, _answer, (own, study, manner, folder), propose)

    done = archive.studies.result_arrays(study)
    made = len(archive.proposals.list(study))
    if len(done.values) != made:
        raise RuntimeError(
            f"{made - len(done.values)} of {made} proposals were left without a result"
        )

    return made / (max(ends) - began)


def _together(
    workers: int, work: Callable[..., float], arguments: tuple[Any, ...], lead: Callable[[], None]
) -> tuple[float, list[float]]:
    """Run the same work in several processes beside the lead's own; return when it began, and what
    each returned.
    """
    context = multiprocessing.get_context("spawn")
    ready = context.Barrier(workers + 1)
    proposed = context.Event()
    ends = context.SimpleQueue()
    processes = [
        context.Process(
            target=_timed, args=(work, (*arguments, number, ready, proposed), ends), daemon=True
        )
        for number in range(workers)
    ]
    try:
        for process in processes:
            process.start()

        ready.wait(600)
        began = time.time()
        lead()
        proposed.set()
        for process in processes:
            process.join()
    except BaseException:
        for process in processes:
            if process.pid is not None:
                process.terminate()
                process.join()

        raise

    if any(process.exitcode for process in processes):
        raise RuntimeError(f"workers ended with {[process.exitcode for process in processes]}")

    return began, [float(ends.get()) for _ in processes]


def _timed(work: Callable[..., float], arguments: tuple[Any, ...], ends: Any) -> None:
    # Ctrl-C reaches all processes of a terminal: the first one ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ends.put(work(*arguments))


def _answer(
    own: Settings, study: str, manner: Manner, folder: str, number: int, ready: Any, proposed: Any
) -> float:
    """Run a worker until the queue is empty, and return the time of the last stored result."""
    with Connection.open(own) as connection:
        archive = Archive(connection)
        worker = f"bench-{number}"
        archive.proposals.register_worker(worker)
        spool = ResultSpool(Path(folder) / worker, "bench")
        client = StoreClient(archive, worker, TrainerOptions(study=study), spool, lambda _: None)
        ready.wait()
        last = time.time()
        while True:
            # After an empty claim the client pauses, and returns nothing without a look: that is no
            # sign of the end.
            over = proposed.is_set()
            looked = time.monotonic() >= client.idle_until
            if manner == "one by one":
                done = _one(archive, worker, study)
            else:
                done = _batch(client, manner, client.claim(BATCH, study))

            if done:
                last = time.time()
            elif (over and looked) or _is_orphan():
                return last
            else:
                time.sleep(0.01)


def _is_orphan() -> bool:
    """Return whether the process that started this one has been killed."""
    parent = multiprocessing.parent_process()
    return parent is not None and not parent.is_alive()


def _batch(client: StoreClient, manner: Manner, claims: Sequence[Claim]) -> int:
    """Answer a batch as the daemon does: the next report, or the result, replaces an undelivered
    report.
    """
    for curve in CURVES:
        for claim in claims:
            client.enqueue(Report(claim.id, claim.token, curve))

        if manner == "in batches":
            client.flush()

    for claim in claims:
        client.enqueue(Completion(claim.id, claim.token, RESULT), keep=False)

    client.flush()
    return len(claims)


def _one(archive: Archive, worker: str, study: str) -> int:
    claim = archive.proposals.claim(worker, study=study)
    if claim is None:
        return 0

    for curve in CURVES:
        archive.proposals.report(claim.id, claim.token, curve)

    archive.proposals.complete(claim.id, claim.token, RESULT)
    return 1


def _clean_up(archive: Archive) -> None:
    for row in archive.connection.read(lambda tx: tx.run(STUDIES, prefix=PREFIX).data()):
        archive.studies.delete(row["name"])


def _peers(workers: int) -> Iterator[tuple[Peer, float]]:
    """Yield the rates of Optuna's storages, none if it is not installed."""
    try:
        import optuna
    except ImportError:
        return

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    for peer in PEERS:
        with tempfile.TemporaryDirectory(prefix=FOLDER) as folder:
            optuna.create_study(study_name="bench", storage=_storage(peer, folder))
            began, ended = _together(workers, _ask_and_tell, (peer, folder), lambda: None)
            study = optuna.load_study(study_name="bench", storage=_storage(peer, folder))
            done = sum(trial.state.is_finished() for trial in study.get_trials(deepcopy=False))

        yield peer, done / (max(ended) - began)


def _ask_and_tell(peer: Peer, folder: str, number: int, ready: Any, proposed: Any) -> float:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = optuna.samplers.RandomSampler(seed=number)
    study = optuna.load_study(study_name="bench", storage=_storage(peer, folder), sampler=sampler)
    ready.wait()
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        # SQLite refuses one of two transactions that write after a read, whatever its timeout.
        with suppress(optuna.exceptions.StorageInternalError):
            trial = study.ask()
            trial.suggest_float("x", 0, 1)
            for step in range(3):
                trial.report(0.5, step)

            study.tell(trial, 0.5)

    return time.time()


def _storage(peer: Peer, folder: str) -> Any:
    from optuna.storages import JournalStorage, RDBStorage
    from optuna.storages.journal import JournalFileBackend

    if peer == "journal":
        return JournalStorage(JournalFileBackend(f"{folder}/journal.log"))

    # Eight processes wait for one lock longer than SQLite's default timeout.
    return RDBStorage(
        f"sqlite:///{folder}/optuna.db", engine_kwargs={"connect_args": {"timeout": 120}}
    )

"""How many proposals a second pass through the archive, for `archive bench throughput`.

A life cycle is what a trial costs beside its training: propose, claim, three reports, complete. One agent proposes, in
batches; workers, each a process of its own, take and tell through `archive.trainer.queue`, as the daemon does for
tasks that a table answers: a batch in a transaction. The same cycles one by one, a transaction each step, are measured
beside it, and Optuna's storages in the same run: ask, three reports, tell, by as many processes.
"""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from archive import connect, server, settings, spaces
from archive.archive import Archive
from archive.connection import Connection
from archive.figures import Figure
from archive.graph import Architecture
from archive.notices import Completion, Report
from archive.records import Result, Study
from archive.settings import Settings
from archive.trainer.options import Options
from archive.trainer.outbox import Outbox
from archive.trainer.queue import BATCH, Queue

WORKERS = (1, 8)
CYCLES, SINGLE_CYCLES = 960, 96
WARM_UP = 256
CURVES = [{"loss": [1.0, 0.5, 0.25][:epochs], "valid_accuracy": [0.5, 0.75, 0.875][:epochs]} for epochs in (1, 2, 3)]
RESULT = Result(0.875, {"accuracy": 0.875}, CURVES[-1], epochs=3)
PREFIX = "bench-throughput-"

Manner = Literal["batches", "one by one"]
Peer = Literal["SQLite", "journal"]

PEERS: dict[Peer, int] = {"SQLite": 48, "journal": 240}
"""Cycles of each: they differ tenfold in speed."""

CLEAN_UP = """
MATCH (s:Study)-[:PROPOSED]->(p:Proposal) WHERE s.name STARTS WITH $prefix
OPTIONAL MATCH (p)-[:RESULTED_IN]->(e:Evaluation)
WITH p, e LIMIT 500 DETACH DELETE p, e RETURN count(*) AS deleted
"""


@dataclass(frozen=True)
class Suggestion:
    """A network to evaluate."""

    architecture: Architecture


def measure(own: Settings | None = None, workers: Sequence[int] = WORKERS) -> list[Figure]:
    """Measure life cycles, and Optuna's, for each number of workers.

    Args:
        own: A database, which is left without the proposals of the measurement; None measures an embedded server of its
            own in a temporary folder.
        workers: Numbers of processes.
    """
    peers = {(peer, count): rate for peer, count, rate in _peers(workers)}
    if own is not None and not own.embedded:
        return list(_measure(own, workers, peers))
    with tempfile.TemporaryDirectory(prefix="archive-bench-") as folder:
        own = settings.load(home=folder, environment={})
        try:
            return list(_measure(own, workers, peers))
        finally:
            server.stop(own)


def _measure(own: Settings, workers: Sequence[int], peers: dict[tuple[Peer, int], float]) -> Iterator[Figure]:
    networks = iter(spaces.get("nasbench201").members() or ())
    where = "the embedded server" if own.embedded else "the database"
    with connect(own) as archive:
        try:
            # A server that runs for months is warm; its first transactions compile everything.
            _cycles(archive, own, "batches", 1, [next(networks) for _ in range(WARM_UP)])
            for count in workers:
                who = f"{count} worker{'s' * (count > 1)}"
                rate = _cycles(archive, own, "batches", count, [next(networks) for _ in range(CYCLES)])
                name = f"life cycles on {where}, {who}"
                yield Figure(
                    f"{name}, beside Optuna on SQLite", rate, "1/s", *_beside(peers.get(("SQLite", count)), 10)
                )
                times = 2 if count > 1 else None
                yield Figure(
                    f"{name}, beside Optuna's journal", rate, "1/s", *_beside(peers.get(("journal", count)), times)
                )
                rate = _cycles(archive, own, "one by one", count, [next(networks) for _ in range(SINGLE_CYCLES)])
                yield Figure(f"{name}, a transaction a step", rate, "1/s")
        finally:
            _clean_up(archive)


def _beside(reference: float | None, times: int | None) -> tuple[str | None, float | None]:
    return (f">= {times * reference:.0f}" if times and reference else None), reference


def _cycles(archive: Archive, own: Settings, manner: Manner, workers: int, networks: Sequence[Architecture]) -> float:
    """Let an agent propose and workers answer, and return the rate."""
    study = f"{PREFIX}{time.time_ns()}"
    archive.studies.create(Study(study, "digits", "digits/1", "nasbench201", budget=len(networks)))
    agent = archive.proposals.register_agent("benchmark", {}, "1")

    def propose() -> None:
        for at in range(0, len(networks), BATCH):
            archive.proposals.create(study, agent, [Suggestion(each) for each in networks[at : at + BATCH]])

    return len(networks) / _together(workers, _answer, (own, study, manner), propose)


def _together(workers: int, work: Callable[..., float], given: tuple[Any, ...], lead: Callable[[], None]) -> float:
    """Run the same work in several processes beside the lead's own, and return the seconds until the last is done."""
    context = multiprocessing.get_context("spawn")
    ready, proposed = context.Barrier(workers + 1), context.Event()
    ends = context.SimpleQueue()
    processes = [
        context.Process(target=_timed, args=(work, (*given, number, ready, proposed), ends))
        for number in range(workers)
    ]
    for process in processes:
        process.start()
    ready.wait(600)
    began = time.time()
    lead()
    proposed.set()
    for process in processes:
        process.join()
    if any(process.exitcode for process in processes):
        raise RuntimeError(f"workers ended with {[process.exitcode for process in processes]}")
    return float(max(ends.get() for _ in processes) - began)


def _timed(work: Callable[..., float], arguments: tuple[Any, ...], ends: Any) -> None:
    ends.put(work(*arguments))


def _answer(own: Settings, study: str, manner: Manner, number: int, ready: Any, proposed: Any) -> float:
    """Be a worker until nothing is left, and return when the last result was stored."""
    with Connection.open(own) as connection, tempfile.TemporaryDirectory() as folder:
        archive, worker = Archive(connection), f"bench-{number}"
        archive.proposals.register_worker(worker)
        outbox = Outbox(Path(folder), "bench")
        queue = Queue(archive, worker, Options(study=study, poll_seconds=0.05), outbox, lambda _: None)
        ready.wait()
        last = time.time()
        while True:
            over = proposed.is_set()
            done = _batch(queue) if manner == "batches" else _one(archive, worker, study)
            if done:
                last = time.time()
            elif over:
                return last
            else:
                time.sleep(0.01)


def _batch(queue: Queue) -> int:
    """Answer a batch as the daemon does: reports that were not told yet give way to the result."""
    claims = queue.claim(BATCH)
    for claim in claims:
        for curve in CURVES:
            queue.say(Report(claim.id, claim.token, curve))
        queue.say(Completion(claim.id, claim.token, RESULT), keep=False)
    queue.flush()
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
    def work(tx: Any) -> int:
        return int(tx.run(CLEAN_UP, prefix=PREFIX).single(strict=True)["deleted"])

    while archive.connection.write(work):
        pass
    archive.connection.write(
        lambda tx: tx.run("MATCH (s:Study) WHERE s.name STARTS WITH $prefix DETACH DELETE s", prefix=PREFIX).consume()
    )


def _peers(workers: Sequence[int]) -> Iterator[tuple[Peer, int, float]]:
    """Yield the rates of Optuna's storages, none where it is not installed."""
    try:
        import optuna
    except ImportError:
        return
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    for count in workers:
        for peer in PEERS:
            each = PEERS[peer] // count
            with tempfile.TemporaryDirectory(prefix="archive-bench-") as folder:
                optuna.create_study(study_name="bench", storage=_storage(peer, folder))
                seconds = _together(count, _ask_and_tell, (peer, folder, each), lambda: None)
            yield peer, count, each * count / seconds


def _ask_and_tell(peer: Peer, folder: str, cycles: int, number: int, ready: Any, proposed: Any) -> float:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = optuna.samplers.RandomSampler(seed=number)
    study = optuna.load_study(study_name="bench", storage=_storage(peer, folder), sampler=sampler)
    ready.wait()
    while cycles:
        # SQLite refuses writers, however long they would wait, where two want to write what they have read.
        with suppress(optuna.exceptions.StorageInternalError):
            trial = study.ask()
            trial.suggest_float("x", 0, 1)
            for step in range(3):
                trial.report(0.5, step)
            study.tell(trial, 0.5)
            cycles -= 1
    return time.time()


def _storage(peer: Peer, folder: str) -> Any:
    from optuna.storages import JournalStorage, RDBStorage
    from optuna.storages.journal import JournalFileBackend

    if peer == "journal":
        return JournalStorage(JournalFileBackend(f"{folder}/journal.log"))
    # Eight processes wait for one lock longer than SQLite does by itself.
    return RDBStorage(f"sqlite:///{folder}/optuna.db", engine_kwargs={"connect_args": {"timeout": 120}})

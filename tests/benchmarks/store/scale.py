"""Benchmark of an archive with many evaluations.

    ten studies of N/10 different cells of ten layers, in the words of NAS-Bench-101, every cell
    evaluated once
        load -> disk, memory -> each saved query -> histories into arrays -> a warm start -> an
        agent's step -> nearest

All records are written like those of a search, with proposals, layers, edges and evaluations, in
batches of 250. Accuracies are artificial, as the benchmark measures the store. It uses a temporary
folder with a separate server, unless settings name another archive, which must be empty.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from archive import agents, spaces
from archive.agents import loop
from archive.agents.base import Suggestion
from archive.agents.nearest import Nearest
from archive.agents.searcher import Searcher
from archive.api import Archive
from archive.architecture.graph import Architecture, Layer
from archive.benchmarks.measurement import Figure
from archive.database.connection import Connection
from archive.errors import QueryError, UsageError
from archive.queries import catalogue, saved
from archive.server import embedded
from archive.server.temporary import temporary_archive
from archive.settings import Settings
from archive.store import schema
from archive.store.architectures import batched
from archive.store.records import Result, Study

T = TypeVar("T")

SPACE = "nasbench101"
TASK = "scale"
PROTOCOL = "scale/1"
STUDIES = 10
BATCH = 250
CURVE = {"valid_accuracy": [0.25, 0.5, 0.75, 0.875]}
OPERATIONS = ("conv1x1-bn-relu", "conv3x3-bn-relu", "maxpool3x3")
LAYERS = 10
AGENT = "random"
KERNELS = ("otmann", "tree-wasserstein")

LOAD = 900.0
ARRAYS = 5.0
QUESTION = 0.5
"""Goals in seconds: for a hundred thousand evaluations on two cores, and for one query of any
size."""
GOAL_SIZE = 100_000
PATIENCE = 60.0
"""Timeout of a query in seconds."""


def measure(
    count: int, own: Settings | None = None, notify: Callable[[str], None] = print
) -> Iterator[Figure]:
    """Fill an archive and measure it; 100,000 evaluations take minutes.

    Args:
        count: Architectures, each evaluated once.
        own: Settings of an empty archive; None for a temporary server.
        notify: Callback for progress messages.

    Raises:
        UsageError: The count is less than ten, or the archive is not empty.
    """
    if count < STUDIES:
        raise UsageError(f"a large archive has at least {STUDIES} architectures, got {count}")

    return _measure_temporary(count, notify) if own is None else _measure(own, count, notify)


def _measure_temporary(count: int, notify: Callable[[str], None]) -> Iterator[Figure]:
    with temporary_archive() as own:
        yield from _measure(own, count, notify)


@dataclass
class _Watch:
    """Stopwatch of the last call."""

    seconds: float = 0.0

    def __call__(self, work: Callable[[], T]) -> T:
        begin = time.perf_counter()
        try:
            return work()
        finally:
            self.seconds = time.perf_counter() - begin


def _measure(own: Settings, count: int, notify: Callable[[str], None]) -> Iterator[Figure]:
    notify(f"drawing {count:,} cells")
    networks = _networks(count)
    layers = sum(len(network.layers) for network in networks)
    watch = _Watch()
    share = count / GOAL_SIZE
    with Connection.open(own) as connection:
        schema.migrate(connection)
        archive = Archive(connection)
        if archive.studies.names():
            raise UsageError(f"the archive at {connection.address} is not empty")

        watch(lambda: _load(archive, networks, notify))
        name = f"load of {count:,} evaluated architectures, {layers:,} layers"
        yield Figure(name, watch.seconds, "s", f"<= {LOAD * share:g}")
        if own.embedded:
            yield Figure("disk", _bytes(own.home) / 2**20, "MiB")
            yield Figure(
                "resident memory of the server", embedded.status(own).rss_bytes / 2**20, "MiB"
            )

        for question in catalogue.names():
            notify(f"asking {question}")
            # A server plans a query at its first run.
            for name in (f"question {question}, the first time", f"question {question}"):
                answered = watch(partial(_ask, connection, question))
                yield Figure(
                    name + ("" if answered else ", given up"),
                    watch.seconds,
                    "s",
                    f"<= {QUESTION:g}",
                )
                if not answered:
                    break

        yield from _histories(Archive(connection), count, watch, notify)
        yield from _near(Archive(connection), networks[0], watch, notify)


def _histories(
    archive: Archive, count: int, watch: _Watch, notify: Callable[[str], None]
) -> Iterator[Figure]:
    """Measure the first and the second read of a new study, and one step of its agent."""
    names = archive.studies.names()
    share = f"<= {ARRAYS * max(count / GOAL_SIZE, 0.1):g}"
    notify("reading histories")
    observed = watch(lambda: archive.studies.result_arrays(names))
    yield Figure(
        f"history of {len(observed.scores):,} evaluations into arrays", watch.seconds, "s", share
    )
    new = archive.studies.create(Study("new", TASK, PROTOCOL, SPACE, budget=1_000_000))
    archive.studies.warm_start(
        new.name, [name for name in archive.studies.names() if name != new.name]
    )
    watch(lambda: loop.history_of(archive, new))
    yield Figure(
        "warm start: all of it with its networks, the first time", watch.seconds, "s", share
    )
    watch(lambda: loop.history_of(archive, new))
    yield Figure("warm start: all of it again", watch.seconds, "s", share)
    agent = agents.get(AGENT, spaces.get(SPACE))
    id_ = archive.proposals.register_agent(agent.kind, agent.config, "1")
    watch(lambda: Searcher(archive).propose(new, agent, id_, 1))
    yield Figure(f"one step of {AGENT}: read, decide, write", watch.seconds, "s", share)


def _near(
    archive: Archive, network: Architecture, watch: _Watch, notify: Callable[[str], None]
) -> Iterator[Figure]:
    for kernel in KERNELS:
        search = Nearest(archive, notify)
        watch(partial(search.similar, network, 10, kernel))
        yield Figure(f"ten nearest by {kernel}, all prepared first", watch.seconds, "s")
        watch(partial(search.similar, network, 10, kernel))
        yield Figure(f"ten nearest by {kernel}", watch.seconds, "s", "<= 2")


def _networks(count: int) -> list[Architecture]:
    """Return `count` different cells: chains with three shortcuts, of which there are enough."""
    rng = np.random.default_rng(0)
    chain = {(at, at + 1) for at in range(LAYERS - 1)}
    networks: dict[str, Architecture] = {}
    while len(networks) < count:
        inner = [Layer(OPERATIONS[at]) for at in rng.integers(len(OPERATIONS), size=LAYERS - 2)]
        shortcuts = {tuple(sorted(rng.choice(LAYERS, 2, replace=False).tolist())) for _ in range(3)}
        network = Architecture(SPACE, [Layer("ip"), *inner, Layer("op")], sorted(chain | shortcuts))
        networks.setdefault(network.functional_key, network)

    return list(networks.values())


def _load(archive: Archive, networks: list[Architecture], notify: Callable[[str], None]) -> None:
    agent = archive.proposals.register_agent("random", {}, "1")
    rng = np.random.default_rng(1)
    begin = time.perf_counter()
    done = 0
    for at, part in enumerate(batched(networks, -(-len(networks) // STUDIES))):
        name = f"scale-{at}"
        archive.studies.create(Study(name, TASK, PROTOCOL, SPACE, budget=len(part)))
        for number, some in enumerate(batched(part, BATCH)):
            suggestions = [Suggestion(network) for network in some]
            results = [_result(rng) for _ in some]
            archive.proposals.create(
                name, agent, suggestions, outcomes=results, after=number * BATCH
            )

        done += len(part)
        notify(f"{done:,} of {len(networks):,} in {time.perf_counter() - begin:.0f} s")


def _result(rng: np.random.Generator) -> Result:
    value = float(rng.normal(0.9, 0.03))
    metrics = {
        "accuracy": value,
        "test_accuracy": value - 0.01,
        "params": float(rng.integers(10**5, 10**7)),
    }
    return Result(value, metrics, CURVE, seconds=100.0, seed=0)


def _ask(connection: Connection, question: str) -> bool:
    """Run a saved query, of one study where possible; return whether it finished in time."""
    try:
        saved.run(connection, question, _parameters(question), limit=1000, timeout=PATIENCE)
    except QueryError:
        return False

    return True


def _parameters(question: str) -> dict[str, Any]:
    values = {"study": "scale-0", "task": TASK}
    return {name: values[name] for name in catalogue.get(question).parameters if name in values}


def _bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())

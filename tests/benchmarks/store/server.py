"""Benchmark of the store on an embedded server.

It uses a temporary folder with a separate server, and removes both. The goals are for a machine
with two cores.
"""

from __future__ import annotations

import csv
import gzip
import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from archive import settings
from archive.api import Archive
from archive.architecture import codec
from archive.architecture.graph import Architecture, Layer
from archive.architecture.nasbench_codec import nasbench201_text
from archive.benchmarks.measurement import Figure
from archive.database.connection import Connection
from archive.errors import SettingsError, UsageError
from archive.exchange.importers.external import ExternalResult, add
from archive.server import embedded
from archive.server.temporary import temporary_archive
from archive.spaces.tables import reader
from archive.store import schema
from archive.store.records import Result, Study

THREADS = 8
"""Workers at the same time."""
ARCHITECTURES = 1000
PROPOSALS = 400
PAIRS = 16_000
"""Numbers of architectures, proposals of each study, and distances that are stored."""
NEEDED = {
    "index",
    "arch_str",
    "cifar10_valid_200ep",
    "train_seconds_200ep",
    "params_millions",
    "flops_millions",
}
"""Columns of a table of NAS-Bench-201 that the benchmark reads."""
CURVE = {"train_loss": [1.0, 0.5, 0.25], "valid_accuracy": [0.5, 0.75, 0.875]}
"""Curve of every training."""


@dataclass(frozen=True)
class SuggestedNetwork:
    """An architecture to evaluate."""

    architecture: Architecture


def measure(table: Path | None = None) -> Iterator[Figure]:
    """Measure start, memory, the bulk import, writes, claims and life cycles, in this order, in one
    run.

    Args:
        table: NAS-Bench-201 as CSV, possibly gzipped; by default `nb201.csv.gz` of
            ARCHIVE_DATA_DIR, and without that all its cells with synthetic metrics.

    Raises:
        UsageError: The table does not exist.
    """
    rows = _read(table) if table is not None else _default_table()
    with temporary_archive() as own:
        yield from _measure(own, rows)


def _measure(own: settings.Settings, table: Sequence[Mapping[str, Any]]) -> Iterator[Figure]:
    begin = time.perf_counter()
    with Connection.open(own) as connection:
        yield Figure("cold start until the first answer", time.perf_counter() - begin, "s", "<= 3")
        schema.migrate(connection)
        time.sleep(1.0)  # for the garbage of the start to be collected
        yield Figure(
            "resident memory, idle and empty",
            embedded.status(own).rss_bytes / 2**20,
            "MiB",
            "<= 300",
        )
        begin = time.perf_counter()
        archive = Archive(connection)
        count = add(
            archive,
            "nb201-cifar10",
            "nb201/200",
            map(_external_result, table),
            direction="maximise",
        )
        yield Figure(
            f"import of {count:,} NAS-Bench-201 cells", time.perf_counter() - begin, "s", "<= 90"
        )
        # The following figures need an archive of realistic size.
        networks = _networks(ARCHITECTURES + PROPOSALS)
        yield _rate(
            "architectures of twelve layers stored",
            ARCHITECTURES,
            ">= 380",
            _add,
            archive,
            networks,
        )
        yield _rate("distances stored", PAIRS, ">= 7400", _distances, archive, networks)
        _propose(archive, "claims", networks[ARCHITECTURES:])
        yield _rate(
            f"claims by {THREADS} threads", PROPOSALS, ">= 100", _claim_all, archive, "claims"
        )
        _propose(archive, "cycles", networks[ARCHITECTURES:])
        name = f"claims with a report and a result, {THREADS} threads"
        yield _rate(name, PROPOSALS, ">= 25", _complete_all, archive, "cycles")
        name = "proposals stored with their results, one by one"
        yield _rate(
            name, PROPOSALS, ">= 67", _store_answered, archive, "answered", networks[ARCHITECTURES:]
        )


def _external_result(row: Mapping[str, Any]) -> ExternalResult:
    """Return a row of the table; accuracies are in percent, sizes in millions."""
    metrics = {
        name: float(value) for name, value in row.items() if name not in ("index", "arch_str")
    }
    result = Result(
        metrics["cifar10_valid_200ep"] / 100,
        metrics,
        epochs=200,
        seconds=metrics["train_seconds_200ep"],
    )
    params, flops = (round(1e6 * metrics[name]) for name in ("params_millions", "flops_millions"))
    return ExternalResult(
        f"nb201-cifar10/{row['index']}",
        codec.from_nasbench201(row["arch_str"]),
        result,
        params,
        flops,
    )


def _rate(name: str, count: int, goal: str, work: Callable[..., None], *arguments: Any) -> Figure:
    begin = time.perf_counter()
    work(*arguments)
    return Figure(name, count / (time.perf_counter() - begin), "1/s", goal)


def _add(archive: Archive, networks: Sequence[Architecture]) -> None:
    archive.architectures.add(networks[:ARCHITECTURES])


def _distances(archive: Archive, networks: Sequence[Architecture]) -> None:
    keys = [network.key for network in networks[:ARCHITECTURES]]
    pairs = list(itertools.islice(itertools.combinations(keys, 2), PAIRS))
    values = np.random.default_rng(0).uniform(0, 1, (len(pairs), 4))
    archive.distances.store(pairs, {"otmann": values, "otmann_normalised": values})


def _propose(archive: Archive, study: str, networks: Sequence[Architecture]) -> None:
    archive.studies.create(Study(study, "digits", "digits/1", "mlp", budget=len(networks)))
    agent = archive.proposals.register_agent("benchmark", {}, "1")
    archive.proposals.create(study, agent, [SuggestedNetwork(network) for network in networks])


def _claim_all(archive: Archive, study: str) -> None:
    def work(worker: int) -> None:
        while archive.proposals.claim(f"bench-{worker}", study=study, lease_seconds=3600):
            pass

    _at_once(work)


def _complete_all(archive: Archive, study: str) -> None:
    def work(worker: int) -> None:
        while claim := archive.proposals.claim(f"bench-{worker}", study=study, lease_seconds=3600):
            archive.proposals.report(claim.id, claim.token, CURVE)
            archive.proposals.complete(
                claim.id, claim.token, Result(0.875, {"accuracy": 0.875}, CURVE)
            )

    _at_once(work)


def _store_answered(archive: Archive, study: str, networks: Sequence[Architecture]) -> None:
    """Add one evaluation a transaction, as a comparison of agents on a table does."""
    archive.studies.create(Study(study, "digits", "digits/1", "mlp", budget=len(networks)))
    agent = archive.proposals.register_agent("benchmark", {}, "1")
    for number, network in enumerate(networks):
        result = Result(0.875, {"accuracy": 0.875})
        archive.proposals.create(
            study, agent, [SuggestedNetwork(network)], outcomes=[result], after=number
        )


def _at_once(work: Callable[[int], None]) -> None:
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(work, range(THREADS)))


def _networks(count: int) -> list[Architecture]:
    """Return different multi-layer perceptrons of twelve layers and twelve edges."""
    edges = [(u, u + 1) for u in range(11)] + [(2, 5)]
    return [
        Architecture(
            "mlp",
            [
                Layer("ip"),
                *(Layer("relu", 8 + number + u) for u in range(9)),
                Layer("linear"),
                Layer("op"),
            ],
            edges,
        )
        for number in range(count)
    ]


def _default_table() -> list[dict[str, Any]]:
    try:
        return _read(reader.find("nb201"))
    except SettingsError:
        return list(_synthetic_table())


def _read(path: Path) -> list[dict[str, Any]]:
    if not path.is_file():
        raise UsageError(f"there is no table of NAS-Bench-201 at {path}")

    try:
        with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
            rows = list(csv.DictReader(file))
    except (OSError, EOFError, ValueError, csv.Error) as error:
        raise UsageError(f"cannot read the table {path}: {error}") from None

    missing = sorted(NEEDED - (rows[0].keys() if rows else set()))
    if missing:
        raise UsageError(f"{path} is no table of NAS-Bench-201: it has no column {missing[0]}")

    return rows


def _synthetic_table() -> Iterator[dict[str, Any]]:
    operations = ("none", "skip_connect", "nor_conv_1x1", "nor_conv_3x3", "avg_pool_3x3")
    columns = (
        "cifar10_valid_12ep",
        "cifar10_valid_200ep",
        "cifar10_test_200ep",
        "cifar100_test_200ep",
    )
    metrics = (*columns, "train_seconds_200ep", "flops_millions", "params_millions", "latency_ms")
    for index, cell in enumerate(itertools.product(operations, repeat=6)):
        yield {
            "index": index,
            "arch_str": nasbench201_text(cell),
            **{name: 50 + index / 1000 for name in metrics},
        }

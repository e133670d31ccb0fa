"""Cost of a look at a study, as a running search takes it, by the number of its proposals.

    python docs/scripts/study_looks.py 1000 20000

The archive is a separate embedded one in a temporary folder. All proposals but one have their
results. Times are processor time of the client and of the server, which does not depend on other
work of the machine.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from itertools import islice

import psutil

from archive import connect, settings
from archive.api import Archive
from archive.server import embedded
from archive.store.records import Result, Study
from tests.benchmarks.trainer.throughput import SuggestedCell, networks

PART = 400
LOOKS = 40
AGE = "MATCH (p:Proposal) SET p.finished = p.finished - 61000"
"""Results of the last minute are read twice."""


def main(sizes: list[int]) -> None:
    """Print the costs for each number of proposals."""
    cells = [SuggestedCell(network) for network in islice(networks(), PART)]
    with tempfile.TemporaryDirectory() as folder:
        own = settings.load(home=folder, environment={})
        try:
            with connect(own) as archive:
                server = psutil.Process(embedded.status(own).java_pid)
                for size in sizes:
                    measure(archive, server, size, cells)
        finally:
            embedded.stop(own)


def measure(
    archive: Archive, server: psutil.Process, size: int, cells: list[SuggestedCell]
) -> None:
    """Print the costs of the first look, and of the mean later one."""
    study = f"of-{size}"
    archive.studies.create(
        Study(study, "digits", "digits/1", cells[0].architecture.space, budget=size + 1)
    )
    agent = archive.proposals.register_agent("benchmark", {}, "1")
    for begin in range(0, size, PART):
        part = cells[: min(PART, size - begin)]
        results = [Result(0.5, {"accuracy": 0.5})] * len(part)
        archive.proposals.create(study, agent, part, outcomes=results, unique=False)

    archive.query(AGE, write=True)
    archive.proposals.create(study, agent, cells[:1], unique=False)
    look = archive.studies.follow(study)
    report(server, f"{size} proposals, first look", look, 1)
    for _ in range(LOOKS // 2):
        look()

    report(server, f"{size} proposals, later look", look, LOOKS)


def report(server: psutil.Process, name: str, call: Callable[[], object], count: int) -> None:
    """Print the processor time of the client and of the server for each of so many calls."""
    client_seconds = time.process_time()
    server_seconds = sum(server.cpu_times()[:2])
    for _ in range(count):
        call()

    client_seconds = time.process_time() - client_seconds
    server_seconds = sum(server.cpu_times()[:2]) - server_seconds
    print(
        f"{name}: client {1000 * client_seconds / count:.1f} ms, server "
        f"{1000 * server_seconds / count:.1f} ms"
    )


if __name__ == "__main__":
    main([int(size) for size in sys.argv[1:]] or [1000, 20000])

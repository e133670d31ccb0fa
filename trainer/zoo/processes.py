"""Processes that build networks, each within limits of time and memory.

    build_all ── fork server, with torch loaded ──> worker: build(reference), one after the other
              <── pipe ─────────────────────────── the network, or the reason why there is none

A model that crashes, hangs or takes too much memory ends its worker and nothing else. A worker ends
with the process that started it, however that ends. After some networks a new one takes its place,
because torch keeps what it has traced.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import time
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pickle import UnpicklingError

from archive.errors import ArchiveError, first_line
from archive.trainer.daemon.trial_limits import TrialMemory
from archive.trainer.trial import fork_server, process_tree
from archive.trainer.zoo.building import ZooNetwork

Build = Callable[[str], ZooNetwork]

_LOOK_SECONDS = 0.5
_START_SECONDS = 120.0
_MOST_NETWORKS = 40
"""Networks that one process builds."""


@dataclass(frozen=True)
class BuildLimits:
    """Limits of the building.

    Attributes:
        processes: Number of concurrent processes.
        seconds: Longest time of one model.
        memory_bytes: Largest memory of one process.
    """

    processes: int = 1
    seconds: float = 600.0
    memory_bytes: int = 8_000_000_000


@dataclass(frozen=True)
class Built:
    """The outcome of one reference.

    Attributes:
        reference: Name of the model.
        network: The network; None where there is none.
        reason: Why there is none.
        killed: Whether another program, or the system, has killed the process.
    """

    reference: str
    network: ZooNetwork | None
    reason: str = ""
    killed: bool = False


def build_all(
    build: Build, references: Iterable[str], limits: BuildLimits
) -> Generator[Built, None, None]:
    """Yield the networks of some references as they become ready.

    At most one finished network a process waits for the caller. The processes end with the
    iterator. A model whose process was killed from outside gets a second one, after all others.

    Args:
        build: Function of a module, which each process imports.
        references: Names of the models.
        limits: Limits of the processes.

    Raises:
        TrainingError: No process can be started.
    """
    waiting = deque(references)
    repeated: set[str] = set()
    workers: list[_Builder] = []
    try:
        while True:
            while waiting and len(workers) < limits.processes:
                workers.append(_Builder(build, waiting.popleft(), limits))

            if not workers:
                return

            wait([worker.pipe for worker in workers], _LOOK_SECONDS)
            for worker in list(workers):
                built = worker.look()
                if built is None:
                    continue

                if waiting and worker.continues:
                    worker.begin(waiting.popleft())
                else:
                    workers.remove(worker)
                    worker.end(workers)

                if built.killed and built.reference not in repeated:
                    repeated.add(built.reference)
                    waiting.append(built.reference)
                else:
                    yield built
    finally:
        while workers:
            workers.pop().end(workers)


class _Builder:
    """A process that builds one network at a time.

    Attributes:
        pipe: Ready to read when there is an outcome, or the process has ended.
        pid: Id of the process.
        continues: Whether it can build another one.
    """

    def __init__(self, build: Build, reference: str, limits: BuildLimits) -> None:
        self.pipe, self._process = fork_server.start(_serve, build)
        self.pid: int = self._process.pid
        self.continues = True
        self._limits = limits
        self._built = 0
        self.begin(reference)

    def begin(self, reference: str) -> None:
        """Let the process build a network."""
        self._reference = reference
        # The first one begins when the process is ready, which takes a while at most.
        self._began = time.monotonic() + (0.0 if self._built else _START_SECONDS)
        self._memory = TrialMemory([self.pid])
        try:
            self.pipe.send(reference)
        except OSError:  # It has ended; the next look says why.
            pass

    def look(self) -> Built | None:
        """Return the outcome, if there is one; a process beyond its limits has one."""
        try:
            if self.pipe.poll():
                outcome = self.pipe.recv()
                if outcome is None:
                    self._began = time.monotonic()
                    return None

                self._built += 1
                self.continues = self._built < _MOST_NETWORKS
                if isinstance(outcome, str):
                    return Built(self._reference, None, outcome)

                return Built(self._reference, outcome)
        except UnpicklingError:
            return self._failed("its answer cannot be read")
        except (EOFError, OSError):
            self._process.join(_LOOK_SECONDS)
            code = self._process.exitcode
            if code == -signal.SIGKILL:
                return self._failed(
                    "its process was killed: was there too little memory?", killed=True
                )

            how = f"by signal {-code}" if code is not None and code < 0 else f"with status {code}"
            return self._failed(f"its process ended {how}")

        if time.monotonic() - self._began > self._limits.seconds:
            return self._failed(f"it took longer than {self._limits.seconds:g} s (--timeout)")

        used = self._memory.measure(self._limits.memory_bytes)
        if used > self._limits.memory_bytes:
            return self._failed(
                f"it took {used / 1e9:.1f} GB of memory, more than "
                f"{self._limits.memory_bytes / 1e9:g} GB (--memory-limit)"
            )

        return None

    def end(self, others: Iterable[_Builder]) -> None:
        """End the process with all that it has started; the other processes continue."""
        self.pipe.close()
        living = [worker.pid for worker in others]
        process_tree.end_all(self.pid, self._process.is_alive(), fork_server.pid(), living)
        self._process.join()

    def _failed(self, reason: str, *, killed: bool = False) -> Built:
        self.continues = False
        return Built(self._reference, None, reason, killed)


# The functions below run in the processes.


def _serve(build: Build, pipe: Connection) -> None:
    """Build networks until the pipe closes."""
    import torch

    process_tree.separate(pipe)
    process_tree.end_with_parent()
    torch.set_num_threads(1)
    # Packages warn of old arguments and missing libraries, and models may print.
    warnings.simplefilter("ignore")
    logging.disable()
    nothing = open(os.devnull, "w")
    sys.stdout = sys.stderr = nothing
    pipe.send(None)
    while True:
        try:
            reference = pipe.recv()
        except EOFError:
            return

        pipe.send(_outcome(build, reference))


def _outcome(build: Build, reference: str) -> ZooNetwork | str:
    try:
        return build(reference)
    except ArchiveError as error:
        return first_line(error, 500)
    except BaseException as error:
        # SystemExit and the like of a model's code, too.
        return f"{type(error).__name__}: {first_line(error, 300)}"

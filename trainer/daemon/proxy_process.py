"""A process that measures the proxies of networks, one after the other, for one daemon.

    daemon ── network, threads ──> process with a batch of the task ── scores or a reason ──> daemon

It measures on the CPU: scores are then the same from every trainer, and trials keep the memory of
their GPU. Beside trials it has a low priority, and where the machine's memory runs out, the system
ends it first. A crash leaves one network without scores; the next one gets another process. A
process ends at once with its daemon.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple, final

from archive.errors import TrainingError
from archive.trainer.trial import failures, fork_server, process_tree

if TYPE_CHECKING:
    from archive.architecture.graph import Architecture
    from archive.trainer.protocols.base import TrainingProtocol
    from archive.trainer.tasks.base import Task

MOST_SECONDS = 600.0
"""Longest time for reading the data, and for one network."""
NICENESS = 5
"""Niceness beside trials: the process gets about a quarter of a core that a trial needs, too.

With 10 it got a tenth, and hardly progressed beside other work."""
MOST_DEATHS = 3
"""Number of consecutive networks that end the process after which the machine counts as unfit for
the task."""
MOST_BYTES = 1 << 20
"""Largest answer."""
_TICK = 0.1
_JOIN_SECONDS = 5.0


class Answer(NamedTuple):
    """Scores of a network, or a reason why there are none; neither where the daemon stops."""

    scores: Mapping[str, float] | None = None
    reason: str = ""


@final
class MeasurementProcess:
    """Measures networks on a task in a separate process, which starts with the first network.

    Args:
        task: The task.
        protocol: Its protocol.
        stopping: Returns whether the caller no longer waits for the network; the process then ends.
    """

    def __init__(
        self, task: Task, protocol: TrainingProtocol, stopping: Callable[[], bool]
    ) -> None:
        """Keep the arguments."""
        self._subject = (task, protocol)
        self._stopping = stopping
        self._running: tuple[Connection, Any] | None = None
        self._deaths = 0

    def measure(self, network: Architecture, threads: int | None) -> Answer:
        """Return the scores of a network.

        Args:
            network: The network.
            threads: Number of CPU threads; None leaves it to torch.

        Raises:
            TrainingError: No network of the task can be measured on this machine.
        """
        if not (self._running or self._start()):
            return Answer()

        answer = self._ask((network, threads))
        self._deaths = self._deaths + 1 if answer and self._running is None else 0
        if self._deaths == MOST_DEATHS:
            raise TrainingError(answer["reason"])

        return Answer(answer.get("scores"), answer.get("reason", ""))

    def close(self) -> None:
        """End the process, whatever it does."""
        if self._running is not None:
            connection, process = self._running
            self._running = None
            connection.close()
            process.kill()
            process.join(_JOIN_SECONDS)

    def _start(self) -> bool:
        """Start the process, and return whether it is ready."""
        self._running = fork_server.start(_serve, self._subject)
        answer = self._ask(None)
        if "reason" in answer:
            self.close()
            raise TrainingError(answer["reason"])

        return "ready" in answer

    def _ask(self, request: tuple[Architecture, int | None] | None) -> dict[str, Any]:
        """Return the answer to a request; an empty one where the daemon stops."""
        assert self._running is not None
        connection, process = self._running
        deadline = time.monotonic() + MOST_SECONDS
        try:
            connection.send(request)
            while not connection.poll(_TICK):
                if self._stopping():
                    self.close()
                    return {}

                if time.monotonic() > deadline:
                    self.close()
                    return {"reason": f"it took longer than {MOST_SECONDS:g} s"}

            # The process runs code of other packages: only text is read from it.
            answer: dict[str, Any] = json.loads(connection.recv_bytes(MOST_BYTES))
        except (EOFError, OSError, ValueError):
            process.join(_JOIN_SECONDS)
            self.close()
            return {
                "reason": f"the process of the measurement ended with status {process.exitcode}"
            }

        return answer


# The functions below run in a separate process.


def _serve(subject: tuple[Task, TrainingProtocol], daemon: Connection) -> None:
    # Ctrl-C, or a service manager's signal, may reach all processes; the daemon decides when this
    # one ends.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)

    process_tree.offer_memory()
    os.nice(NICENESS)
    requests: SimpleQueue[Any] = SimpleQueue()
    threading.Thread(target=_listen, args=(daemon, requests), daemon=True, name="listener").start()
    with suppress(OSError):  # The daemon is gone.
        _answer_all(
            subject, requests, lambda **answer: daemon.send_bytes(json.dumps(answer).encode())
        )


def _listen(daemon: Connection, requests: SimpleQueue[Any]) -> None:
    """Receive requests; end the process when the daemon closes the pipe."""
    try:
        while True:
            requests.put(daemon.recv())
    except (EOFError, OSError):
        os._exit(1)


def _answer_all(
    subject: tuple[Task, TrainingProtocol], requests: SimpleQueue[Any], answer: Callable[..., None]
) -> None:
    """Answer the first request when the data are read, and all others with scores or a reason."""
    import torch

    from archive.trainer.proxies.measurement import ProxyMeasurement

    try:
        measurement = ProxyMeasurement(*subject)
    except Exception as error:
        answer(reason=failures.failure_of(error).reason)
        return

    requests.get()
    answer(ready=True)
    usual = torch.get_num_threads()
    while True:
        network, threads = requests.get()
        torch.set_num_threads(threads or usual)
        try:
            scores = measurement(network)
        except Exception as error:
            answer(reason=failures.failure_of(error).reason)
        else:
            answer(scores=scores)

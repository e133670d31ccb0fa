"""Networks of one task whose proxies a daemon has yet to measure."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from archive.architecture.graph import Architecture
    from archive.trainer.protocols.base import TrainingProtocol
    from archive.trainer.tasks.base import Task


@final
class ProxyWork:
    """Networks to measure on a task: those of trials first, then those of samples.

    Each object has its samples in another random order: trainers that share one seldom measure the
    same network at the same time, and each skips what another one has stored.

    Args:
        task: The task.
        protocol: Its protocol.

    Attributes:
        task: The task.
        protocol: Its protocol.
        trained: Networks of trials.
        sample: Networks of samples.
    """

    def __init__(self, task: Task, protocol: TrainingProtocol) -> None:
        """Start without networks."""
        self.task = task
        self.protocol = protocol
        self.trained: list[Architecture] = []
        self.sample: list[Architecture] = []
        self._seen: set[str] = set()

    def add_trained(self, network: Architecture) -> None:
        """Add the network of a trial, unless this object has given it out before."""
        self.trained += self._new([network])

    def add_sample(self, networks: Iterable[Architecture]) -> None:
        """Add random networks."""
        self.sample += self._new(networks)
        random.shuffle(self.sample)

    def take(self, count: int) -> Sequence[Architecture]:
        """Remove and return networks: as many of trials, or else of samples."""
        source = self.trained or self.sample
        taken = source[:count]
        del source[:count]
        return taken

    def put_back(self, networks: Iterable[Architecture], *, trained: bool) -> None:
        """Add networks that were taken and not measured."""
        source = self.trained if trained else self.sample
        source[:0] = networks

    def __len__(self) -> int:
        """Return the number of networks."""
        return len(self.trained) + len(self.sample)

    def _new(self, networks: Iterable[Architecture]) -> list[Architecture]:
        new = {network.key: network for network in networks if network.key not in self._seen}
        self._seen.update(new)
        return list(new.values())

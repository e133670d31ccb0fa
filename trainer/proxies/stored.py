"""Measurement of networks whose proxies the archive does not have, and their storage."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from archive.trainer.proxies import registry
from archive.trainer.proxies.measurement import SOURCE, ProxyMeasurement

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.architecture.graph import Architecture
    from archive.trainer.protocols.base import TrainingProtocol
    from archive.trainer.tasks.base import Task

log = logging.getLogger("archive.trainer")

Measure = Callable[["Architecture"], Mapping[str, float] | None]
"""Returns the scores of a network; None where it has none now, so that nothing is stored."""

BATCH = 10
"""Networks that are stored at a time: an interruption loses the measurements of fewer."""


def measure(
    archive: Archive,
    task: Task,
    protocol: TrainingProtocol,
    networks: Iterable[Architecture],
    *,
    measured: Measure | None = None,
    device: str = "cpu",
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> int:
    """Store the proxies of networks on a task; those that the archive has are not measured again.

    Args:
        archive: The archive; networks that it does not have are added.
        task: The task.
        protocol: Its protocol.
        networks: Networks of spaces that suit the task.
        measured: Measures a network; None measures in this process.
        device: Device of a measurement in this process, in torch's notation.
        progress: Receives the number of networks done and in all, after each.

    Returns:
        Number of measured networks.

    Raises:
        InvalidArchitectureError: A network cannot have the task's form; those before it are stored.
        UsageError: The protocol has a recipe.
        SettingsError: The data are missing.
    """
    new = unmeasured(archive, task, protocol, networks)
    if not new:
        return 0

    measured = measured or ProxyMeasurement(task, protocol, device)
    archive.architectures.add(new)
    count = 0
    for begin in range(0, len(new), BATCH):
        scores: dict[str, Mapping[str, float]] = {}
        for done, network in enumerate(new[begin : begin + BATCH], begin + 1):
            if (own := measured(network)) is not None:
                scores[network.key] = own

            progress(done, len(new))

        if scores:
            archive.proxies.add(task.name, protocol.name, SOURCE, scores)

        count += len(scores)

    return count


def unmeasured(
    archive: Archive, task: Task, protocol: TrainingProtocol, networks: Iterable[Architecture]
) -> list[Architecture]:
    """Return the networks, sorted by key, of which the archive lacks a proxy."""
    by_key = {network.key: network for network in networks}
    known = archive.proxies.of_networks(task.name, protocol.name, SOURCE, by_key)
    # A package may have added a proxy since.
    return [
        network
        for key, network in sorted(by_key.items())
        if {*registry.names()} - known.get(key, {}).keys()
    ]

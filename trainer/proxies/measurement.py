"""Measurement of the proxies of networks on a task.

    measure = ProxyMeasurement(task, protocol)          # loads one batch of the task
    measure(architecture)                               # {"synflow": 84.1, "params": 129306.0, ...}

The network is the one that the default recipe trains, with the initial weights of `SEED`; the batch
has the first `BATCH` training inputs in an order drawn from `SEED`. A network has one score for
each proxy on one kind of device; rounding differs between devices.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, final

from archive.errors import UsageError
from archive.store.protocol_names import DEFAULT_RECIPE, ProtocolName
from archive.trainer.proxies import registry
from archive.trainer.tasks import registry as task_registry
from archive.trainer.tasks.base import Task

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.architecture.graph import Architecture
    from archive.spaces.base import Space
    from archive.store.records import Study
    from archive.trainer.protocols.base import TrainingProtocol
    from archive.trainer.proxies.probe import NetworkProbe
    from archive.trainer.tasks.file_access import FileAccess
    from archive.trainer.tasks.tabular import TabularTask


log = logging.getLogger("archive.trainer")

BATCH = 64
"""Inputs of the batch, as in NAS-Bench-Suite-Zero."""

SEED = 0

SOURCE = "archive/1"
"""Name of these definitions; scores of different ones are not comparable."""


@final
class ProxyMeasurement:
    """Measures the proxies of networks on one batch of a task.

    Args:
        task: The task.
        protocol: Its protocol.
        device: Device in torch's notation.

    Raises:
        UsageError: The protocol has a recipe, which may train other networks than the builder's;
            or it trains on text.
        SettingsError: The data are missing.
    """

    def __init__(self, task: Task, protocol: TrainingProtocol, device: str = "cpu") -> None:
        """Load the batch."""
        import numpy as np
        import torch

        check_recipe(protocol)
        self.form = task.form(protocol)
        self._classifies = task.kind == "classification"
        self._device = device
        part = task.load(protocol).train
        rows = np.sort(np.random.default_rng(SEED).permutation(len(part))[:BATCH])
        self._inputs = torch.from_numpy(part.inputs[rows]).to(device)
        self._targets = torch.from_numpy(part.targets[rows]).to(device)

    def __call__(self, architecture: Architecture) -> Mapping[str, float]:
        """Return a network's scores by proxy, with its costs; NaN for an undefined proxy.

        Raises:
            InvalidArchitectureError: The architecture cannot have the task's form.
        """
        from archive.trainer.nn import builders, costs
        from archive.trainer.proxies.probe import NetworkProbe

        module = builders.build(architecture.canonical, self.form, SEED)
        size = costs.measure(module, self.form.input_shape)
        kind: Literal["classification", "regression"] = "regression"
        if self._classifies:
            kind = "classification"

        probe = NetworkProbe(module.to(self._device), self._inputs, self._targets, kind, SEED)
        scores = {name: _score(name, probe, architecture.key) for name in registry.names()}
        return {**scores, "params": float(size.params), "flops": float(size.flops)}


def check_recipe(protocol: TrainingProtocol) -> None:
    """Check that a protocol trains the networks of the default recipe.

    Raises:
        UsageError: It has another recipe, or its data are text.
    """
    if protocol.tokens is not None or protocol.flops is not None:
        raise UsageError(
            f"the proxies are of networks of images or numbers, and {protocol.name} trains on text"
        )

    recipe = ProtocolName.parse(protocol.name).recipe
    if recipe != DEFAULT_RECIPE:
        raise UsageError(
            "proxies are those of networks of the default recipe, and the protocol "
            f"{protocol.name} has {recipe!r}"
        )


def _score(name: str, probe: NetworkProbe, key: str) -> float:
    """Return a finite score, or NaN."""
    from torch.linalg import LinAlgError  # type: ignore[attr-defined]

    try:
        value = float(registry.get(name)(probe))
    except LinAlgError as error:
        # A decomposition that does not converge, as of values that are not finite.
        log.warning("proxy undefined proxy=%s architecture=%s reason=%r", name, key, str(error))
        return math.nan

    return value if math.isfinite(value) else math.nan


Measure = Callable[["Architecture"], Mapping[str, float] | None]
"""Returns the scores of a network; None where it has none now, so that nothing is stored."""

STORE_BATCH = 10
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
    new = find_unmeasured(archive, task, protocol, networks)
    if not new:
        return 0

    measured = measured or ProxyMeasurement(task, protocol, device)
    archive.architectures.add(new)
    count = 0
    for begin in range(0, len(new), STORE_BATCH):
        scores: dict[str, Mapping[str, float]] = {}
        for done, network in enumerate(new[begin : begin + STORE_BATCH], begin + 1):
            if (new_scores := measured(network)) is not None:
                scores[network.key] = new_scores

            progress(done, len(new))

        if scores:
            archive.proxies.add(task.name, protocol.name, SOURCE, scores)

        count += len(scores)

    return count


def find_unmeasured(
    archive: Archive, task: Task, protocol: TrainingProtocol, networks: Iterable[Architecture]
) -> list[Architecture]:
    """Return the networks, sorted by key, of which the archive lacks a proxy."""
    by_key = {network.key: network for network in networks}
    stored = archive.proxies.of_networks(task.name, protocol.name, SOURCE, by_key)
    # A package may have added a proxy since.
    return [
        network
        for key, network in sorted(by_key.items())
        if {*registry.names()} - stored.get(key, {}).keys()
    ]


def subject_of(study: Study, access: FileAccess) -> tuple[Task, TrainingProtocol]:
    """Return a study's task, and its protocol without choices after the initialisation.

    Inherited weights and objectives do.

    Raises:
        UsageError: The study is on a table, or its protocol has a recipe.
        ArchiveError: The task is not known here, or its file may not be opened or used.
    """
    task = with_inputs(task_registry.of_study(study, access))
    protocol = task.protocol(
        str(replace(ProtocolName.parse(study.protocol), morph=False, objective=None))
    )
    check_recipe(protocol)
    return task, protocol


def with_inputs(task: Task | TabularTask) -> Task:
    """Return a task whose networks get inputs.

    Raises:
        UsageError: A table answers it.
    """
    if not isinstance(task, Task):
        raise UsageError(
            f"the networks of the table {task.name!r} get no inputs: archive import proxies "
            "reads published scores"
        )

    return task


def sample_of(space: Space, count: int) -> list[Architecture]:
    """Return random networks of a space: always the same, and a prefix of any larger count."""
    import numpy as np

    from archive.spaces.base import distinct_sample

    return distinct_sample(space, count, np.random.default_rng(SEED))

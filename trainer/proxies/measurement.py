"""Measurement of the proxies of networks on a task.

    measure = ProxyMeasurement(task, protocol)          # loads one batch of the task
    measure(architecture)                               # {"synflow": 84.1, ..., "params": 129306.0, "flops": ...}

The network is the one that the default recipe trains, with the initial weights of `SEED`; the batch
has the first `BATCH` training inputs in an order drawn from `SEED`. A network has one score for
each proxy on one kind of device; rounding differs between devices.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, final

from archive.errors import UsageError
from archive.store.protocol_names import DEFAULT_RECIPE, ProtocolName
from archive.trainer.proxies import registry

if TYPE_CHECKING:
    from archive.architecture.graph import Architecture
    from archive.trainer.protocols.base import TrainingProtocol
    from archive.trainer.proxies.probe import NetworkProbe
    from archive.trainer.tasks.base import Task

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
        UsageError: The protocol has a recipe, which may train other networks than the builder's.
        SettingsError: The data are missing.
    """

    def __init__(self, task: Task, protocol: TrainingProtocol, device: str = "cpu") -> None:
        """Load the batch."""
        import numpy as np
        import torch

        check_recipe(protocol)
        self.form = task.form(protocol)
        self._kind = task.kind
        self._device = device
        part = task.load(protocol).train
        rows = np.sort(np.random.default_rng(SEED).permutation(len(part))[:BATCH])
        self._inputs = torch.from_numpy(part.inputs[rows]).to(device)
        self._targets = torch.from_numpy(part.targets[rows]).to(device)

    def __call__(self, architecture: Architecture) -> Mapping[str, float]:
        """Return the scores of a network by proxy, with its costs; NaN for a proxy that is not
        defined for it.

        Raises:
            InvalidArchitectureError: The architecture cannot have the task's form.
        """
        from archive.trainer.nn import builders, costs
        from archive.trainer.proxies.probe import NetworkProbe

        module = builders.build(architecture.canonical, self.form, SEED)
        size = costs.measure(module, self.form.input_shape)
        probe = NetworkProbe(module.to(self._device), self._inputs, self._targets, self._kind, SEED)
        scores = {name: _score(name, probe, architecture.key) for name in registry.names()}
        return {**scores, "params": float(size.params), "flops": float(size.flops)}


def check_recipe(protocol: TrainingProtocol) -> None:
    """Check that a protocol trains the networks of the default recipe.

    Raises:
        UsageError: It has another recipe.
    """
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

"""Networks of configurations: the module that a user's function builds, as an architecture.

The function runs without memory for weights, and with it where that fails.
`state` tells two modules of one network apart that train differently: by other initial weights, or
by numbers that a module keeps for its training, such as the learning rate of a Lightning module.
"""

from __future__ import annotations

import hashlib
import pickle
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from archive.architecture.aten.wiring import Input
from archive.architecture.graph import Architecture
from archive.errors import ArchiveError
from archive.trainer.intake import configured
from archive.trainer.intake.models import import_model
from archive.trainer.intake.reads import Reads
from archive.trainer.intake.weightless import without_weights
from archive.trainer.nn import costs

MOST_PARAMS = 200_000_000
"""Number of trained parameters beyond which a module is not built with weights."""

_OWN = frozenset(vars(nn.Module()))
"""Attributes of every module."""


@dataclass(frozen=True)
class BuiltNetwork:
    """A network that a function builds of a configuration.

    Attributes:
        architecture: The network in canonical order.
        reads: Names of the parameters that the function reads; None where they are unknown.
        state: Digest of the module with the weights of one seed; None where it is unknown.
    """

    architecture: Architecture
    reads: list[str] | None
    state: str | None


def build_network(
    function: Callable[..., Any], parameters: Mapping[str, Any], inputs: Sequence[Input]
) -> BuiltNetwork:
    """Return the network of a configuration.

    Args:
        function: The user's function.
        parameters: The configuration as a tree.
        inputs: Inputs of the module.

    Raises:
        UsageError: The module cannot be exported. Errors of the function pass.
    """
    reads = Reads()
    try:
        with without_weights():
            module = configured.build(function, parameters, reads)

        imported = import_model(module, inputs)
    except (RuntimeError, NotImplementedError, TypeError, ArchiveError):
        # Not every module can be made without numbers.
        module = configured.build(function, parameters, reads)
        imported = import_model(module, inputs)

    size = costs.count_numbers(module.parameters())
    state = None
    if size <= MOST_PARAMS and reads.known() is not None:
        state = state_of(function, parameters)

    return BuiltNetwork(imported.architecture.canonical, reads.known(), state)


def state_of(function: Callable[..., Any], parameters: Mapping[str, Any]) -> str | None:
    """Return a digest of a configuration's module with the weights of one seed.

    The order and the names of the modules do not count: they are the network's.

    Args:
        function: The user's function.
        parameters: The configuration as a tree.

    Returns:
        None where the module cannot be built, or has an attribute that cannot be compared.
    """
    try:
        random.seed(0)
        np.random.seed(0)
        with torch.random.fork_rng(devices=()):
            torch.default_generator.manual_seed(0)
            module = configured.build(function, parameters)

        digest = hashlib.sha256(f"{type(module).__module__}.{type(module).__qualname__}".encode())
        for tensor in chain(module.parameters(), module.buffers()):
            digest.update(_content(tensor))

        for record in sorted(_records(module)):
            digest.update(record)
    except Exception:
        return None

    return digest.hexdigest()[:16]


def _content(tensor: Tensor) -> bytes:
    head = f"{tensor.dtype} {tuple(tensor.shape)} {tensor.requires_grad}".encode()
    numbers = tensor.detach().cpu().contiguous().reshape(-1)
    return head + numbers.view(torch.uint8).numpy().tobytes()


def _records(module: nn.Module) -> Iterator[bytes]:
    """Yield the attributes of each part of a module that has any beside its tensors and parts."""
    for part in module.modules():
        attributes = {}
        for name, value in vars(part).items():
            if name not in _OWN:
                attributes[name] = value

        if attributes:
            yield type(part).__qualname__.encode() + pickle.dumps(sorted(attributes.items()))

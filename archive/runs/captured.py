"""The network that a program trains, captured from its live module.

The module is copied without its weights, on the device `meta`: it stays as it is, wherever it is,
and a large one costs no memory.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from itertools import chain
from typing import Any

import torch
from torch import nn

from archive.architecture.aten.wiring import Input
from archive.architecture.graph import Architecture
from archive.errors import ArchiveError, UsageError, first_line
from archive.trainer.intake.models import import_model

_UNNAMED = ("float16", "bfloat16", "float64")
"""Types of numbers whose network is the one of float32."""


def capture(model: nn.Module, example: Sequence[Any]) -> Architecture:
    """Return the network of a module, in canonical order.

    Args:
        model: The module.
        example: Its inputs: tensors with the batch as their first side.

    Raises:
        UsageError: The module cannot be copied or exported, or an input is no tensor.
    """
    inputs = list(map(_input_of, example))
    try:
        copied = _without_weights(model)
        return import_model(copied, inputs).architecture.canonical
    except ArchiveError:
        raise
    except Exception as error:
        # A module may hold a file, a process group or anything else.
        raise UsageError(
            f"{type(model).__name__} cannot be copied: {type(error).__name__}: "
            f"{first_line(error, 200)}"
        ) from error


def _input_of(value: Any) -> Input:
    if not isinstance(value, torch.Tensor) or not value.dim():
        raise UsageError(
            f"an example has tensors with the batch as their first side, got {type(value).__name__}"
        )

    dtype = str(value.dtype).removeprefix("torch.")
    return Input(tuple(value.shape[1:]), "float32" if dtype in _UNNAMED else dtype)


def _without_weights(model: nn.Module) -> nn.Module:
    """Return a copy of a module whose tensors have no numbers."""
    plain = getattr(model, "_orig_mod", model)
    if isinstance(plain, nn.parallel.DistributedDataParallel | nn.DataParallel):
        plain = plain.module

    memo: dict[int, Any] = {}
    for tensor in chain(plain.parameters(), plain.buffers()):
        empty = torch.empty_like(tensor, device="meta")
        if isinstance(tensor, nn.Parameter):
            empty = nn.Parameter(empty, requires_grad=tensor.requires_grad)

        memo[id(tensor)] = empty

    copied: nn.Module = copy.deepcopy(plain, memo)
    return copied

"""Models without memory for their weights.

    with without_weights():
        model = factory()           # parameters on the device meta, buffers with their values

Buffers and other tensors of a model may have values that its outputs depend on, such as tables of
relative positions. They are computed by the model's code, as always.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from archive.errors import UsageError


class AbsentValuesError(UsageError):
    """The outputs of a model depend on values that its code has not computed without weights."""


@contextmanager
def without_weights() -> Iterator[None]:
    """Put parameters that are made meanwhile on the device `meta`."""
    make: Any = nn.Parameter.__new__

    def make_without_memory(
        cls: type[nn.Parameter], data: Tensor | None = None, requires_grad: bool = True
    ) -> Any:
        return make(cls, None if data is None else data.detach().to("meta"), requires_grad)

    parameter: Any = nn.Parameter
    parameter.__new__ = make_without_memory
    try:
        yield
    finally:
        parameter.__new__ = make


@contextmanager
def memory_lent(model: nn.Module) -> Iterator[dict[str, Tensor]]:
    """Move the tensors of a model from the device `meta` to the CPU meanwhile.

    A trace needs all tensors on one device. Nothing is written to the memory, so that the system
    only reserves addresses for it.

    Yields:
        Tensors of the model without values, by name.
    """
    lent: dict[int, Tensor] = {}
    owners: list[tuple[nn.Module, str, Tensor]] = []
    absent: dict[str, Tensor] = {}
    for prefix, module in model.named_modules(remove_duplicate=False):
        for name, tensor in [*module._parameters.items(), *module._buffers.items()]:
            if tensor is not None and tensor.is_meta:
                owners.append((module, name, tensor))
                absent[f"{prefix}.{name}".lstrip(".")] = tensor
                if id(tensor) not in lent:
                    lent[id(tensor)] = _reserve(tensor)

    try:
        for module, name, tensor in owners:
            # Recurrent layers keep a list of their weights, which this updates.
            setattr(module, name, lent[id(tensor)])

        yield absent
    finally:
        for module, name, tensor in owners:
            setattr(module, name, tensor)


def _reserve(tensor: Tensor) -> Tensor:
    memory = torch.empty_like(tensor, device="cpu")
    if isinstance(tensor, nn.Parameter):
        return nn.Parameter(memory, requires_grad=tensor.requires_grad)

    return memory

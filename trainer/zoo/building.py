"""A model of a zoo without weights, as an architecture."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Any

from archive.architecture.graph import Architecture
from archive.errors import ArchiveError

PACKAGES: Mapping[str, Callable[[], str]] = {
    name: partial(version, name) for name in ("timm", "torchvision")
}
"""Packages with published networks, and functions that return their installed version."""


@dataclass(frozen=True)
class ZooNetwork:
    """A model of a zoo as an architecture.

    Attributes:
        architecture: The network in canonical order.
        params: Number of trained numbers.
        flops: Multiply-adds of one input; None where they are unknown.
        family: Module of the package that defines the model.
    """

    architecture: Architecture
    params: int
    flops: int | None
    family: str


def convert(make: Callable[[], Any], size: Sequence[int]) -> ZooNetwork:
    """Return the network of a model, without memory for its weights where that is possible.

    Args:
        make: Function that makes the model; called on the device `meta`, then on the CPU where
            the model cannot be made or imported without numbers.
        size: Shape of an input without the batch.

    Raises:
        UsageError: The model cannot be imported. Errors of its code pass.
    """
    import torch

    from archive.architecture.aten.wiring import Input
    from archive.trainer.intake.models import import_model

    inputs = [Input(tuple(size))]
    try:
        with torch.device("meta"):
            model = make()

        imported = import_model(model, inputs)
    except (RuntimeError, NotImplementedError, TypeError, ArchiveError):
        model = make()
        imported = import_model(model, inputs)

    family = type(model).__module__.rpartition(".")[2]
    return ZooNetwork(imported.architecture.canonical, imported.params, imported.flops, family)

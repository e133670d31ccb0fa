"""A model of a zoo without weights, as an architecture."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version

from archive.architecture.graph import Architecture

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


def build_network(package: str, reference: str) -> ZooNetwork:
    """Return a model of a package as an architecture.

    Args:
        package: Name of the package.
        reference: Name of the model; the recipe in it decides the classes and the input's size.

    Raises:
        UsageError: It cannot be imported.
    """
    # Only the processes that build networks load torch.
    from archive.trainer.intake.packages import import_network

    network = import_network(package, reference)
    imported = network.imported
    return ZooNetwork(
        imported.architecture.canonical, imported.params, imported.flops, network.family
    )

"""Distances between architectures, and covariances made of them: pure functions, no input or output, no database.

`kernels.get("otmann")` returns a distance, `kernels.names()` lists them. Everything is loaded when it is first asked
for, and the compiler not before the first network is prepared.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from archive.kernels.base import Components, Distance, PairDistance
    from archive.kernels.covariance import Covariance, Exponential, Product, Sum, nasbot_covariance
    from archive.kernels.gram import Gram
    from archive.kernels.otmann import OTMANN
    from archive.kernels.registry import get, names
    from archive.kernels.spectrum import IndefiniteKernelWarning, Repair, repair

__all__ = [
    "OTMANN",
    "Components",
    "Covariance",
    "Distance",
    "Exponential",
    "Gram",
    "IndefiniteKernelWarning",
    "PairDistance",
    "Product",
    "Repair",
    "Sum",
    "get",
    "names",
    "nasbot_covariance",
    "repair",
]

_HOMES = {
    "base": ("Components", "Distance", "PairDistance"),
    "covariance": ("Covariance", "Exponential", "Product", "Sum", "nasbot_covariance"),
    "gram": ("Gram",),
    "otmann": ("OTMANN",),
    "registry": ("get", "names"),
    "spectrum": ("IndefiniteKernelWarning", "Repair", "repair"),
}


def __getattr__(name: str) -> Any:
    """Load a public name from the module it lives in."""
    for home, members in _HOMES.items():
        if name in members:
            value = getattr(import_module(f"archive.kernels.{home}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

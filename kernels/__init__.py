"""Distances between architectures, and covariances made of them: pure functions, no input or output, no database.

`kernels.get("otmann")` returns a distance, `kernels.names()` lists them. Everything is loaded when it is first asked
for, and the compiler not before the first network is prepared.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from archive.kernels.adjacency import AdjacencyEncoding, ContinuousAdjacencyEncoding
    from archive.kernels.arc import Arc
    from archive.kernels.base import Components, Distance, PairDistance
    from archive.kernels.bourgain import Bourgain
    from archive.kernels.conditional import ArcCovariance, Differences
    from archive.kernels.cosine import Cosine
    from archive.kernels.covariance import Covariance, Exponential, Product, Sum, exponential, nasbot_covariance
    from archive.kernels.edit import EditDistance
    from archive.kernels.embedding import Embedded, EmbeddedDistance
    from archive.kernels.gram import Gram
    from archive.kernels.gromov_wasserstein import GromovWasserstein, GromovWassersteinWarning
    from archive.kernels.hamming import Hamming
    from archive.kernels.otmann import OTMANN
    from archive.kernels.paths import PathEncoding
    from archive.kernels.power_exponential import PowerExponential
    from archive.kernels.profile import Profile
    from archive.kernels.registry import get, names
    from archive.kernels.spectrum import (
        Definiteness,
        IndefiniteKernelWarning,
        Repair,
        definiteness,
        is_positive_semidefinite,
        repair,
    )
    from archive.kernels.stationary import Stationary
    from archive.kernels.tree_wasserstein import TreeWasserstein
    from archive.kernels.wasserstein import Wasserstein
    from archive.kernels.weisfeiler_lehman import WeisfeilerLehman

__all__ = [
    "OTMANN",
    "AdjacencyEncoding",
    "Arc",
    "ArcCovariance",
    "Bourgain",
    "Components",
    "ContinuousAdjacencyEncoding",
    "Cosine",
    "Covariance",
    "Definiteness",
    "Differences",
    "Distance",
    "EditDistance",
    "Embedded",
    "EmbeddedDistance",
    "Exponential",
    "Gram",
    "GromovWasserstein",
    "GromovWassersteinWarning",
    "Hamming",
    "IndefiniteKernelWarning",
    "PairDistance",
    "PathEncoding",
    "PowerExponential",
    "Product",
    "Profile",
    "Repair",
    "Stationary",
    "Sum",
    "TreeWasserstein",
    "Wasserstein",
    "WeisfeilerLehman",
    "definiteness",
    "exponential",
    "get",
    "is_positive_semidefinite",
    "names",
    "nasbot_covariance",
    "repair",
]

_HOMES = {
    "adjacency": (
        "AdjacencyEncoding",
        "ContinuousAdjacencyEncoding",
    ),
    "arc": ("Arc",),
    "base": (
        "Components",
        "Distance",
        "PairDistance",
    ),
    "bourgain": ("Bourgain",),
    "conditional": (
        "ArcCovariance",
        "Differences",
    ),
    "cosine": ("Cosine",),
    "covariance": (
        "Covariance",
        "Exponential",
        "Product",
        "Sum",
        "exponential",
        "nasbot_covariance",
    ),
    "edit": ("EditDistance",),
    "embedding": (
        "Embedded",
        "EmbeddedDistance",
    ),
    "gram": ("Gram",),
    "gromov_wasserstein": (
        "GromovWasserstein",
        "GromovWassersteinWarning",
    ),
    "hamming": ("Hamming",),
    "otmann": ("OTMANN",),
    "paths": ("PathEncoding",),
    "power_exponential": ("PowerExponential",),
    "profile": ("Profile",),
    "registry": (
        "get",
        "names",
    ),
    "spectrum": (
        "Definiteness",
        "IndefiniteKernelWarning",
        "Repair",
        "definiteness",
        "is_positive_semidefinite",
        "repair",
    ),
    "stationary": ("Stationary",),
    "tree_wasserstein": ("TreeWasserstein",),
    "wasserstein": ("Wasserstein",),
    "weisfeiler_lehman": ("WeisfeilerLehman",),
}


def __getattr__(name: str) -> Any:
    """Load a public name from the module it lives in."""
    for home, members in _HOMES.items():
        if name in members:
            value = getattr(import_module(f"archive.kernels.{home}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

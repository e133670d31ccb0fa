"""Distances between architectures, and covariances made of them: pure functions, no input or output, no database.

`kernels.get("otmann")` returns a distance, `kernels.names()` lists them. Everything is loaded when it is first asked
for, and the compiler not before the first network is prepared.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from archive.kernels.base import Components, Distance, PairDistance
    from archive.kernels.covariance.arc import ArcCovariance, Differences
    from archive.kernels.covariance.base import (
        Covariance,
        Exponential,
        Product,
        Sum,
        exponential,
        nasbot_covariance,
    )
    from archive.kernels.covariance.cosine import Cosine
    from archive.kernels.covariance.power_exponential import PowerExponential
    from archive.kernels.covariance.spectrum import (
        Definiteness,
        IndefiniteKernelWarning,
        Repair,
        definiteness,
        is_positive_semidefinite,
        repair,
    )
    from archive.kernels.covariance.stationary import Stationary
    from archive.kernels.distances.bourgain import Bourgain
    from archive.kernels.distances.edit.distance import EditDistance
    from archive.kernels.distances.gromov_wasserstein import GromovWasserstein, GromovWassersteinWarning
    from archive.kernels.distances.otmann import OTMANN
    from archive.kernels.distances.tree_wasserstein.distance import TreeWasserstein
    from archive.kernels.distances.wasserstein import Wasserstein
    from archive.kernels.features.adjacency import AdjacencyEncoding, ContinuousAdjacencyEncoding
    from archive.kernels.features.arc import Arc
    from archive.kernels.features.embedding import Embedded, EmbeddedDistance
    from archive.kernels.features.hamming import Hamming
    from archive.kernels.features.paths import PathEncoding
    from archive.kernels.features.topology import Profile
    from archive.kernels.features.weisfeiler_lehman import WeisfeilerLehman
    from archive.kernels.gram import Gram
    from archive.kernels.registry import get, names

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
    "features.adjacency": (
        "AdjacencyEncoding",
        "ContinuousAdjacencyEncoding",
    ),
    "features.arc": ("Arc",),
    "base": (
        "Components",
        "Distance",
        "PairDistance",
    ),
    "distances.bourgain": ("Bourgain",),
    "covariance.arc": (
        "ArcCovariance",
        "Differences",
    ),
    "covariance.cosine": ("Cosine",),
    "covariance.base": (
        "Covariance",
        "Exponential",
        "Product",
        "Sum",
        "exponential",
        "nasbot_covariance",
    ),
    "distances.edit.distance": ("EditDistance",),
    "features.embedding": (
        "Embedded",
        "EmbeddedDistance",
    ),
    "gram": ("Gram",),
    "distances.gromov_wasserstein": (
        "GromovWasserstein",
        "GromovWassersteinWarning",
    ),
    "features.hamming": ("Hamming",),
    "distances.otmann": ("OTMANN",),
    "features.paths": ("PathEncoding",),
    "covariance.power_exponential": ("PowerExponential",),
    "features.topology": ("Profile",),
    "registry": (
        "get",
        "names",
    ),
    "covariance.spectrum": (
        "Definiteness",
        "IndefiniteKernelWarning",
        "Repair",
        "definiteness",
        "is_positive_semidefinite",
        "repair",
    ),
    "covariance.stationary": ("Stationary",),
    "distances.tree_wasserstein.distance": ("TreeWasserstein",),
    "distances.wasserstein": ("Wasserstein",),
    "features.weisfeiler_lehman": ("WeisfeilerLehman",),
}


def __getattr__(name: str) -> Any:
    """Load a public name from the module it lives in."""
    for home, members in _HOMES.items():
        if name in members:
            value = getattr(import_module(f"archive.kernels.{home}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

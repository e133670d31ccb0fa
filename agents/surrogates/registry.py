"""The registry of surrogates by name, with any kernel that they support.

For example, `registry.get("gp", "path")`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from archive import kernels
from archive.agents.surrogates.base import Surrogate
from archive.agents.surrogates.gp.distance import DistanceGP
from archive.agents.surrogates.gp.fitted import Pairwise
from archive.agents.surrogates.gp.marginal_likelihood import MarginalLikelihood
from archive.errors import UnknownNameError, UsageError
from archive.kernels.base import Distance
from archive.kernels.features.embedding import EmbeddedDistance
from archive.kernels.gram import Gram


def names() -> tuple[str, ...]:
    """Return the names of all surrogates."""
    return tuple(sorted(_MAKERS))


def takes(surrogate: str, kernel: str) -> bool:
    """Return whether a surrogate supports a kernel.

    The ensemble needs features, a Gaussian process distances.
    """
    return surrogate != "ensemble" or isinstance(kernels.get(kernel), EmbeddedDistance)


def get(
    name: str, kernel: str | Distance[Any], pairwise: Pairwise | None = None, **config: Any
) -> Surrogate:
    """Return a surrogate.

    Args:
        name: `gp` (maximum a posteriori hyperparameters), `gp-slice` (samples of them) or
            `ensemble`.
        kernel: A distance, or its name in the registry of kernels.
        pairwise: Source of the distances, to share a cache; by default a `Gram` of the kernel.
        **config: Settings of `DistanceGP` or `Ensemble`, by name.

    Raises:
        UnknownNameError: No surrogate or no kernel has this name.
        UsageError: The surrogate does not support this kernel.
    """
    if name not in _MAKERS:
        raise UnknownNameError("surrogate", name, names())

    distance = kernels.get(kernel) if isinstance(kernel, str) else kernel
    return _MAKERS[name](distance, Gram(distance) if pairwise is None else pairwise, config)


def _gp(distance: Distance[Any], pairwise: Pairwise, config: dict[str, Any]) -> Surrogate:
    return DistanceGP(pairwise, distance.default_covariance(), MarginalLikelihood(), **config)


def _gp_slice(distance: Distance[Any], pairwise: Pairwise, config: dict[str, Any]) -> Surrogate:
    return DistanceGP(pairwise, distance.default_covariance(), **config)


def _ensemble(distance: Distance[Any], pairwise: Pairwise, config: dict[str, Any]) -> Surrogate:
    from archive.agents.surrogates.ensemble.model import Ensemble

    if not isinstance(distance, EmbeddedDistance):
        raise UsageError(f"an ensemble needs a kernel with features, got {distance.name}")

    return Ensemble(distance, **config)


_MAKERS: dict[str, Callable[[Distance[Any], Pairwise, dict[str, Any]], Surrogate]] = {
    "gp": _gp,
    "gp-slice": _gp_slice,
    "ensemble": _ensemble,
}

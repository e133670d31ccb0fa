"""Selection of the distances that are stored in the archive, and their names.

A distance is stored where reading it is faster than computing it again. Measured on one core,
microseconds per pair, with reading at 20 to 40:

| space       | otmann | wasserstein | gromov-wasserstein | edit | embedded kernels |
|-------------|--------|-------------|--------------------|------|------------------|
| cnn         | 66     | 204         | 3069 (one start)   | 15   | < 0.1            |
| mlp         | 111    | 163         | 2248               | 11   | < 0.1            |
| nasbench201 | 9      | 11          | 28                 | 1.4  | < 0.1            |

So the three transports are stored (`PairDistance.store_pairs`) for networks of layers. The edit
distance, the embedded kernels and all distances of cells are computed again; `archive.kernels.gram`
caches them within a process.
"""

from __future__ import annotations

import inspect
import re
from hashlib import blake2b
from typing import Any

from archive.architecture.operations import vocabulary
from archive.kernels.base import Distance, PairDistance

_COMPUTATION = ("threads", "solver")
"""Settings that change the computation of a distance, but not its value."""


def has_costly_distances(space: str) -> bool:
    """Return whether a space has networks of layers, not cells, whose distances take long."""
    return not vocabulary(space).cells


def worth_storing(distance: Distance[Any], space: str) -> bool:
    """Return whether reading a distance of a space is faster than computing it again."""
    return (
        isinstance(distance, PairDistance) and distance.store_pairs and has_costly_distances(space)
    )


def kinds(distance: Distance[Any]) -> dict[str, slice]:
    """Return the names that a distance is stored under, each with the slice of its components.

    The name consists of the kernel's name and the settings that differ from its defaults: `otmann`,
    `otmann_normalised`, `gromov_wasserstein_starts_1`. Different distances have different names.
    """
    name = _name(distance)
    k = distance.unnormalised
    if k == len(distance.components):
        return {name: slice(0, k)}

    return {name: slice(0, k), f"{name}_normalised": slice(k, None)}


def _name(distance: Distance[Any]) -> str:
    parts = [distance.name]
    for setting in inspect.signature(type(distance)).parameters.values():
        value = getattr(distance, setting.name, setting.default)
        if setting.name not in _COMPUTATION and value != setting.default:
            parts += [setting.name, _plain(value)]

    return re.sub(r"\W", "_", "_".join(parts))


def _plain(value: Any) -> str:
    if isinstance(value, str | int | bool):
        return str(value)

    return blake2b(repr(value).encode(), digest_size=4).hexdigest()

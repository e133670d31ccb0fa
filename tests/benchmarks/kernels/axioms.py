"""Measured axioms of every kernel of the registry.

    relabelling           largest change of a distance when both networks' layers are reordered
    triangle              largest d(x, z) - d(x, y) - d(y, z) of the unnormalised components
    smallest eigenvalue   of exp(-d^p / median), with the p that surrogates use

All are over the components and the spaces, the first two relative to the largest distance, the
third to the largest eigenvalue. The docstring of a kernel states its axioms; figures without a goal
are for information.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from archive import kernels
from archive.architecture.graph import Architecture
from archive.benchmarks.measurement import Figure
from archive.kernels.features.embedding import EmbeddedDistance
from tests.benchmarks.kernels.samples import SPACES, relabelled, walk

Floats = NDArray[np.float64]

ROUNDING = 1e-9
"""Rounding of sums of a few dozen terms."""
METRICS = frozenset({"edit", "otmann", "tree-wasserstein", "wasserstein"})
POSITIVE = frozenset({"tree-wasserstein"})
"""Claimed besides those of every embedded distance, which follow from its norm."""


def measure(networks: int = 40, seed: int = 0) -> Iterator[Figure]:
    """Measure all registered kernels on networks of every space.

    Args:
        networks: Networks of each space, the initial pool and mutations of it.
        seed: Seed of the mutations and of the relabelling.
    """
    samples = {space: walk(space, networks, np.random.default_rng(seed)) for space in SPACES}
    for name in kernels.names():
        yield from _figures(name, samples, seed)


def _figures(name: str, samples: dict[str, list[Architecture]], seed: int) -> list[Figure]:
    kernel = kernels.get(name)
    embedded = isinstance(kernel, EmbeddedDistance)
    power = 2.0 if isinstance(kernel, EmbeddedDistance) and kernel.norm == "l2" else 1.0
    rng = np.random.default_rng(seed)
    relabelling = 0.0
    triangle = -np.inf
    eigenvalue = np.inf
    for sample in samples.values():
        stack = _stack(name, sample)
        again = _stack(name, [relabelled(architecture, rng) for architecture in sample])
        relabelling = max(
            relabelling, float(np.abs(again - stack).max() / max(stack.max(), 1e-300))
        )
        triangle = max(
            triangle, *(_triangle(distances) for distances in stack[: kernel.unnormalised])
        )
        eigenvalue = min(eigenvalue, *(_smallest(distances**power) for distances in stack))

    metric = f"<= {ROUNDING:g}" if embedded or name in METRICS else None
    positive = f">= -{ROUNDING:g}" if embedded or name in POSITIVE else None
    return [
        Figure(f"{name}: largest change under relabelling", relabelling, "", f"<= {ROUNDING:g}"),
        Figure(f"{name}: largest excess in the triangle inequality", triangle, "", metric),
        Figure(
            f"{name}: smallest eigenvalue of exp(-d{'^2' if power == 2 else ''})",
            eigenvalue,
            "",
            positive,
        ),
    ]


def _stack(name: str, sample: Sequence[Architecture]) -> Floats:
    with warnings.catch_warnings():
        # Pairs that did not converge are visible in the figures.
        warnings.simplefilter("ignore")
        return kernels.get(name).distances(sample).stack


def _triangle(distances: Floats) -> float:
    largest = float(distances.max())
    if largest == 0.0:
        return 0.0

    detours = (distances[:, :, None] + distances[None, :, :]).min(axis=1)
    return float((distances - detours).max() / largest)


def _smallest(powers: Floats) -> float:
    positive = powers[powers > 0]
    scale = float(np.median(positive)) if len(positive) else 1.0
    values = np.linalg.eigvalsh(np.exp(-powers / scale))
    return float(values[0] / values[-1])

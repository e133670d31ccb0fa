"""Benchmark of the Arc kernel's speed.

On configurations: the covariance of a pair, in the paper's space of 23 hyperparameters and the
depth. On architectures: a pair of networks with both components. The references are Python loops
over the parameters, as the paper writes the pseudo-metric.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

import numpy as np

from archive.architecture.graph import Architecture
from archive.benchmarks.measurement import Figure
from archive.kernels.covariance.arc import ArcKernel
from archive.kernels.features.arc import ArcFeatures, places
from archive.parameters.domains import Choice, Value
from archive.parameters.leaves import Configuration
from archive.parameters.parameter_space import ParameterSpace
from tests.benchmarks.kernels.perceptrons import perceptrons
from tests.benchmarks.kernels.samples import SPACES, best_seconds, draw

DIFFERENCE = "<= 1e-9"


def measure(count: int = 200, seed: int = 0, pairs: int = 200) -> Iterator[Figure]:
    """Measure the kernel on configurations and on architectures.

    Args:
        count: Configurations, and networks of each space.
        seed: Seed of both.
        pairs: Pairs that the references compute.

    Yields:
        The figures, in the order to show them.
    """
    yield from _configurations(count, np.random.default_rng(seed), pairs)
    for space in SPACES:
        yield from _architectures(space, count, np.random.default_rng(seed), pairs)


def _configurations(count: int, rng: np.random.Generator, pairs: int) -> list[Figure]:
    space = perceptrons()
    sample = [space.sample(rng) for _ in range(count)]
    omega = rng.uniform(0.1, 2.0, len(space.parameters))
    rho = rng.uniform(0.05, 1.0, len(space.parameters))
    choices = space.option_counts
    kernel = ArcKernel(range(len(choices)), choices)
    theta = np.log(np.concatenate([[1.0], omega, rho]))
    prepared = kernel.prepare(space.encode(sample))
    value = best_seconds(lambda: kernel.value(theta, prepared))
    chosen = [tuple(int(at) for at in pair) for pair in rng.integers(count, size=(pairs, 2))]
    begin = time.thread_time()
    expected = [
        naive_covariance(space, sample[i], sample[j], omega.tolist(), rho.tolist())
        for i, j in chosen
    ]
    naive = (time.thread_time() - begin) / len(chosen)
    covariance = kernel.value(theta, prepared)
    difference = max(abs(covariance[i, j] - e) for (i, j), e in zip(chosen, expected, strict=True))
    name = f"arc, {len(space.parameters)} hyperparameters"
    return [
        Figure(f"{name}: covariance of a pair", 1e6 * value / count**2, "us", None, 1e6 * naive),
        Figure(f"{name}: largest difference from the reference", difference, "", DIFFERENCE),
    ]


def _architectures(name: str, count: int, rng: np.random.Generator, pairs: int) -> list[Figure]:
    arc = ArcFeatures()
    sample = draw(name, count, rng)
    prepared = [arc.prepare(network) for network in sample]
    stack = arc.distances(prepared).stack
    seconds = best_seconds(lambda: arc.distances(prepared))
    chosen = [tuple(int(at) for at in pair) for pair in rng.integers(count, size=(pairs, 2))]
    begin = time.thread_time()
    expected = [naive_architectures(arc, sample[i], sample[j]) for i, j in chosen]
    naive = (time.thread_time() - begin) / len(chosen)
    difference = max(
        float(np.abs(stack[:, i, j] - e).max()) for (i, j), e in zip(chosen, expected, strict=True)
    )
    return [
        Figure(f"arc, {name}: a pair", 1e6 * seconds / count**2, "us", None, 1e6 * naive),
        Figure(f"arc, {name}: largest difference from the reference", difference, "", DIFFERENCE),
    ]


def naive_covariance(
    space: ParameterSpace,
    first: Configuration,
    second: Configuration,
    omega: list[float],
    rho: list[float],
) -> float:
    """Return the Matern covariance at the pseudo-metric of two configurations, parameter by
    parameter.
    """
    one = space.existing(first)
    two = space.existing(second)
    total = 0.0
    for parameter, w, r in zip(space.parameters, omega, rho, strict=True):
        x: Value | None = one.get(parameter.name)
        y: Value | None = two.get(parameter.name)
        if x is None or y is None:
            total += w * w * (x is not y)
        else:
            apart = (
                0.5 * (x != y)
                if isinstance(parameter.domain, Choice)
                else parameter.domain.encode(x) - parameter.domain.encode(y)
            )
            total += 4 * w * w * math.sin(math.pi * r * apart / 2) ** 2

    s = math.sqrt(5 * total)
    return (1 + s + s * s / 3) * math.exp(-s)


def naive_architectures(
    arc: ArcFeatures, first: Architecture, second: Architecture
) -> tuple[float, float]:
    """Return both components of two networks, place by place, from the networks as they are."""
    one = places(first)
    two = places(second)
    squared = arc.omega**2
    operations = units = 0.0
    for place in {*one, *two}:
        x = one.get(place)
        y = two.get(place)
        if x is None or y is None:
            operations += squared
        elif (x.op, x.stride) != (y.op, y.stride):
            operations += 4 * squared * math.sin(math.pi * arc.rho / 4) ** 2

        a = x.units if x else None
        b = y.units if y else None
        if a is not None and b is not None:
            units += (
                4 * squared * math.sin(math.pi * arc.rho * (arc.code(a) - arc.code(b)) / 2) ** 2
            )
        elif a is not None or b is not None:
            units += squared

    return math.sqrt(operations), math.sqrt(units)

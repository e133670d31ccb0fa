"""Benchmark of kernels on networks of a thousand layers.

The networks are of the space `torch`, like imported ones: stages of residual blocks of
convolutions, normalisations and rectifiers, with random widths and windows. Times are processor
time of one core, for prepared networks.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from archive import kernels
from archive.architecture.aten import weights
from archive.architecture.graph import Architecture, Connection, Layer
from archive.architecture.layer import Attributes
from archive.benchmarks.measurement import Figure
from archive.kernels.distances.otmann import OTMANN
from tests.benchmarks.kernels.samples import best_seconds

LAYERS = 1000
MILLISECONDS = "<= 50"
NU_STR: tuple[tuple[float, ...], ...] = ((0.1, 0.2, 0.4, 0.8), (0.001, 0.002, 0.004, 0.008))
"""The default weights of hops separate networks of this depth altogether; small ones leave the most
to be solved."""


def measure(networks: int = 30, layers: int = LAYERS, seed: int = 0) -> Iterator[Figure]:
    """Measure preparing, pairs and whole sets.

    Args:
        networks: Number of networks.
        layers: Number of layers of each, at least.
        seed: Seed of the networks.
    """
    rng = np.random.default_rng(seed)
    sample = [residual_network(layers, rng) for _ in range(networks)]
    count = networks * (networks - 1) / 2
    for nu_str in NU_STR:
        otmann = OTMANN(nu_str=nu_str, threads=1)
        prepared = [otmann.prepare(network) for network in sample]
        seconds = best_seconds(lambda k=otmann, p=prepared: k.distances(p), time.thread_time, 3)  # type: ignore[misc]
        name = f"otmann, {layers} layers, nu_str from {nu_str[0]:g}: a pair"
        yield Figure(name, 1e3 * seconds / count, "ms", MILLISECONDS)

    preparing = best_seconds(lambda: OTMANN().prepare(sample[0]), time.thread_time, 3)
    yield Figure(f"otmann, {layers} layers: preparing a network", 1e3 * preparing, "ms")
    whole = kernels.get("weisfeiler-lehman")
    features = best_seconds(lambda: whole.prepare(sample[0]), time.thread_time, 3)
    yield Figure(f"weisfeiler-lehman, {layers} layers: preparing a network", 1e3 * features, "ms")
    embedded = [whole.prepare(network) for network in sample]
    pairs = best_seconds(lambda: whole.distances(embedded), time.thread_time, 3)
    yield Figure(
        f"weisfeiler-lehman, {layers} layers: all pairs of {networks} networks", 1e3 * pairs, "ms"
    )


def residual_network(layers: int, rng: np.random.Generator) -> Architecture:
    """Return a network of the space `torch` in four stages of residual blocks, with at least so
    many layers.
    """
    sequence = [Layer("ip", attributes=Attributes({"input": "3x224x224"}))]
    edges: list[Connection] = []

    def put(op: str, stride: int = 1, tails: tuple[int, ...] = (), **attributes: object) -> int:
        settings = Attributes(attributes)
        sequence.append(
            Layer(op, weights.units(Layer(op, None, stride, settings)), stride, settings)
        )
        edges.extend((tail, len(sequence) - 1, 0) for tail in tails or (len(sequence) - 2,))
        return len(sequence) - 1

    width = 3
    for stage in range(4):
        before = width
        width = int(rng.integers(2, 17)) * 8 * 2**stage
        last = put("convolution", 2, weight=[width, before, 3, 3], padding=1)
        while len(sequence) < layers * (stage + 1) / 4:
            for _ in range(2):
                side = int(rng.choice([1, 3, 5, 7]))
                put("convolution", weight=[width, width, side, side], padding=side // 2)
                put(
                    "batch_norm",
                    weight=[width],
                    bias=[width],
                    running_mean=[width],
                    running_var=[width],
                )
                end = put("relu")

            last = put("add", tails=(last, end))

    put("mean", dim=[-1, -2])
    put("linear", weight=[1000, width], bias=[1000])
    put("op")
    return Architecture("torch", sequence, edges)

"""Benchmark of drawing: networks of 200 layers, as notebooks and pages show
them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from archive.architecture.diagram import svg
from archive.architecture.graph import Architecture, Layer
from archive.benchmarks.measurement import Figure

LAYERS = 200
SKIPS = (0, 60, 150)
FARTHEST = 12


def measure(repetitions: int = 5, seed: int = 0) -> Iterator[Figure]:
    """Measure the processor time of a picture: folding, layout and SVG.

    The canonical form is computed before, as that of every stored network is.

    Args:
        repetitions: Number of pictures; the median counts.
        seed: Seed of the networks.

    Yields:
        One figure for each number of skips, in milliseconds.
    """
    rng = np.random.default_rng(seed)
    for skips in SKIPS:
        network = _network(skips, rng).canonical
        seconds = []
        for _ in range(repetitions):
            begin = time.process_time()
            svg(network)
            seconds.append(time.process_time() - begin)

        name = f"one picture, {LAYERS} layers and {skips} skips"
        yield Figure(name, 1000 * float(np.median(seconds)), "ms", "<= 50")


def _network(skips: int, rng: np.random.Generator) -> Architecture:
    """Return a perceptron of random layers in a chain, with skips over up to eleven of them."""
    operations = ("relu", "tanh", "elu")
    inner = LAYERS - 3
    layers = [
        Layer(operations[rng.integers(3)], int(2 ** rng.integers(3, 10))) for _ in range(inner)
    ]
    edges = {(u, u + 1) for u in range(LAYERS - 1)}
    while len(edges) < LAYERS - 1 + skips:
        tail = int(rng.integers(0, inner - FARTHEST))
        edges.add((tail, tail + int(rng.integers(2, FARTHEST + 1))))

    return Architecture("mlp", [Layer("ip"), *layers, Layer("linear"), Layer("op")], sorted(edges))

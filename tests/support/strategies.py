"""Hypothesis strategies for networks, shared by the tests of graphs, codecs and spaces."""

from __future__ import annotations

import random
from functools import cache

import hypothesis
import numpy as np
from hypothesis import strategies as st

from archive import spaces
from archive.architecture.graph import Architecture, Layer
from archive.spaces.base import Space

CELL_LABELS = ("conv3x3-bn-relu", "conv1x1-bn-relu", "maxpool3x3")


@cache
def space_of(name: str) -> Space:
    return spaces.get(name)


@st.composite
def cells(
    draw: st.DrawFn, min_inner: int = 0, max_inner: int = 5, labels: tuple[str, ...] = CELL_LABELS
) -> Architecture:
    """Any labelled DAG between an input and an output, dead ends and all."""
    n = draw(st.integers(min_inner, max_inner)) + 2
    ops = draw(st.lists(st.sampled_from(labels), min_size=n - 2, max_size=n - 2))
    pairs = [(u, v) for u in range(n) for v in range(u + 1, n)]
    chosen = draw(st.lists(st.booleans(), min_size=len(pairs), max_size=len(pairs)))
    layers = [Layer("ip"), *(Layer(op) for op in ops), Layer("op")]
    return Architecture(
        "nasbench101", layers, [pair for pair, wanted in zip(pairs, chosen, strict=True) if wanted]
    )


def generators() -> st.SearchStrategy[np.random.Generator]:
    return st.integers(0, 2**32 - 1).map(np.random.default_rng)


WALKS = 2 * hypothesis.settings.default.max_examples
"""Random walks in each space: mutations cost more than most of what is tested, so that tests share
their networks."""


def members(name: str) -> st.SearchStrategy[Architecture]:
    """A member of a space, some mutations away from its initial pool."""
    return st.builds(walked, st.just(name), st.integers(0, WALKS - 1), st.integers(0, 12))


@cache
def walked(name: str, seed: int, steps: int) -> Architecture:
    """The network that a random walk from the initial pool of a space reaches after a number of
    mutations."""
    space = space_of(name)
    rng = np.random.default_rng([seed, steps])
    if steps:
        return space.mutate(walked(name, seed, steps - 1), rng).child

    pool = space.initial_pool()
    return pool[rng.integers(len(pool))]


def relabelled(architecture: Architecture, seed: int) -> Architecture:
    """The same network with its layers and edges given in a random order."""
    shuffle = random.Random(seed)
    order = list(range(len(architecture.layers)))
    shuffle.shuffle(order)
    position = {old: new for new, old in enumerate(order)}
    edges = [
        (position[tail], position[head], *used) for tail, head, *used in architecture.connections
    ]
    shuffle.shuffle(edges)
    return Architecture(architecture.space, [architecture.layers[old] for old in order], edges)

"""Spaces and histories that the agents' tests share."""

from __future__ import annotations

import functools
import itertools
from dataclasses import replace

import numpy as np

from archive.agents.base import History, Observation
from archive.agents.objectives.goals import Goals
from archive.architecture.graph import Architecture, Layer
from archive.errors import InvalidArchitectureError
from archive.spaces.base import Mutation, Space
from archive.spaces.layerwise import MlpChain
from archive.store.records import Objective


class Chains(Space):
    """Chains of one or two layers out of four kinds: 20 networks in all, to run out of."""

    name = "mlp"
    layers = (("relu", 8), ("relu", 16), ("tanh", 8), ("tanh", 16))

    @property
    def config(self):
        return {}

    @functools.cache  # noqa: B019  every instance has the same networks
    def every(self):
        kinds = [Layer(op, units) for op, units in self.layers]
        bodies = [*itertools.product(kinds), *itertools.product(kinds, kinds)]
        return [chain(*body) for body in bodies]

    def validate(self, architecture):
        if architecture.key not in {known.key for known in self.every()}:
            raise InvalidArchitectureError("no chain of one or two layers")

    def decisions(self):
        return MlpChain(self)

    def initial_pool(self, rng=None):
        return self.every()[:3]

    def sample(self, rng):
        return self.every()[rng.integers(20)]

    def mutate(self, architecture, rng):
        return Mutation(self.sample(rng), ("swap_label",))

    def neighbours(self, architecture):
        yield from (
            Mutation(other, ("swap_label",))
            for other in self.every()
            if other.key != architecture.key
        )


def chain(*body):
    layers = [Layer("ip"), *body, Layer("linear"), Layer("op")]
    return Architecture("mlp", layers, itertools.pairwise(range(len(layers))))


def units(architectures):
    """A known cost: the sum of the layers' units."""
    return np.array(
        [sum(layer.units or 0 for layer in each.layers) for each in architectures], np.float64
    )


def with_goals(history):
    """The history with a second objective that is learnt, and a third that is known; the first
    result lacks one."""
    objectives = (
        Objective("accuracy"),
        Objective("loss", "minimise"),
        Objective("units", "minimise"),
    )
    rng = np.random.default_rng(len(history.observations))
    further = [(-seen.score + 0.1 * rng.standard_normal(), np.nan) for seen in history.observations]
    seen = [
        replace(one, further=each) for one, each in zip(history.observations, further, strict=True)
    ]
    seen[:1] = [replace(one, further=(np.nan, np.nan)) for one in seen[:1]]
    return replace(history, observations=tuple(seen), goals=Goals(objectives, {"units": units}))


def observed(architectures, scores):
    pairs = zip(architectures, scores, strict=True)
    return tuple(
        Observation(found, float(score), f"study#{at:05d}")
        for at, (found, score) in enumerate(pairs)
    )


@functools.cache
def grown(space, count, seed=0):
    """A history as a search leaves it: the pool, then mutations; scores favour small networks."""
    rng = np.random.default_rng(seed)
    found = {
        architecture.functional_key: architecture for architecture in space.initial_pool()[:count]
    }
    while len(found) < count:
        parent = list(found.values())[rng.integers(len(found))]
        child = space.mutate(parent, rng).child
        found.setdefault(child.functional_key, child)

    scores = [
        1.0 / (1.0 + len(architecture.layers)) + 0.01 * rng.standard_normal()
        for architecture in found.values()
    ]
    return History(observed(found.values(), scores))

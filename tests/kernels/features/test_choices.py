"""Distances of decisions, beside their definitions."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from archive import kernels, spaces
from archive.kernels.features.choices import DecisionFeatures, describe, options_of

CHAIN = spaces.get("choices", decisions={at: ["a", "b", "c"] for at in "wxyz"})
SET = spaces.get(
    "choices", decisions={"w": ["a", "b"], "x": ["a", "b", "c"], "y": ["c", "d"]}, form="set"
)


@pytest.mark.parametrize("space", [CHAIN, SET])
def test_distances_are_those_of_the_definition(space):
    kernel = kernels.get("choices")
    networks = space.members()[::5]
    stack = kernel.distances(networks).stack
    made = [space.vector_of(network) for network in networks]
    for i, one in enumerate(made):
        for j, other in enumerate(made):
            assert stack[0, i, j] == sum(a != b for a, b in zip(one, other, strict=True))
            assert stack[1, i, j] == sum(abs(a - b) for a, b in zip(one, other, strict=True))
            labels = [Counter(layer.op for layer in networks[at].layers) for at in (i, j)]
            assert stack[2, i, j] == sum((labels[0] - labels[1]).values()) + sum(
                (labels[1] - labels[0]).values()
            )

    for distance in stack:
        assert np.linalg.eigvalsh(np.exp(-0.3 * distance))[0] > -1e-9


@pytest.mark.parametrize(("space", "ranked"), [(CHAIN, (0, 1, 2, 3)), (SET, (1,))])
def test_each_decision_has_a_distance_of_its_options_and_one_of_their_ranks(space, ranked):
    kernel = DecisionFeatures(options_of(space))
    networks = space.members()[::5]
    made = np.array([space.vector_of(network) for network in networks])
    differ = made[:, None] != made[None]
    ranks = np.abs(made[:, None] - made[None]) / 2
    expected = [*np.moveaxis(differ, -1, 0), *(ranks[..., at] for at in ranked)]
    np.testing.assert_array_equal(kernel.distances(networks).stack, expected)
    assert [name.split(":")[1] for name in kernel.components[differ.shape[-1] :]] == [
        str(at + 1) for at in ranked
    ]


def test_options_of_slots_have_no_ranks():
    space = spaces.get("nasbench201")
    kernel = DecisionFeatures(options_of(space))
    one = space.members()[0]
    other = space.members()[-1]
    places = space.slots(one)
    (distances,) = kernel.distances([one], [other]).stack.T
    assert distances[0].tolist() == [places[at] != space.slots(other)[at] for at in sorted(places)]


def test_it_describes_options_at_fixed_places():
    assert describe("choices")
    # Operations of the others have windows or units.
    assert not any(map(describe, ("nasbench201", "nasbench101", "cnn", "mlp")))

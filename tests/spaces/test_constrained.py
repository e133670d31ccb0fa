"""Subspaces of the networks that meet constraints on known costs: moves stay inside and reach all
of it."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from archive import spaces
from archive.architecture import codec
from archive.constraints import parse
from archive.errors import InfeasibleError, InvalidArchitectureError
from archive.spaces import constrained as constrained_module
from archive.spaces.constrained import ConstrainedSpace, constrain
from tests.support.histories import Chains, units


def layers(architectures):
    return np.array([len(each.layers) for each in architectures], np.float64)


def convolutions(architectures):
    return np.array(
        [sum("conv" in layer.op for layer in each.layers) for each in architectures], np.float64
    )


COSTS = {"layers": layers, "units": units, "convolutions": convolutions}


def limited(space, *texts):
    return constrain(space, tuple(map(parse, texts)), COSTS)


def test_constraints_on_quantities_that_are_not_known_change_nothing():
    space = spaces.get("nasbench201")
    assert limited(space, "latency_ms<=3") is space
    assert limited(space, "latency_ms<=3", "layers<=5").constraints == (parse("layers<=5"),)


def test_moves_stay_inside():
    texts = ["layers<=5", "convolutions>=1"]
    whole = spaces.get("nasbench201")
    space = limited(whole, *texts)
    rng = np.random.default_rng(0)
    pool = space.initial_pool()
    assert len({one.functional_key for one in pool}) == len(whole.initial_pool())
    assert [one for one in whole.initial_pool() if space.contains(one)] == pool[
        : sum(map(space.contains, whole.initial_pool()))
    ]
    children = [space.mutate(one, rng) for one in pool]
    for parent, mutation in zip(pool, children, strict=True):
        assert mutation.operations and mutation.child.functional_key != parent.functional_key

    every = [
        *pool,
        *(space.sample(rng) for _ in range(5)),
        *(mutation.child for mutation in children),
    ]
    every += [mutation.child for mutation in list(space.neighbours(pool[0]))[:20]]
    assert not space.violations(every).any()
    for one in every:
        space.validate(one)

    assert [one.key for one in space.initial_pool()] == [one.key for one in pool]
    assert space == limited(whole, *texts) != limited(whole, *texts[1:]) and space != whole
    assert pickle.loads(pickle.dumps(space)) == space


def test_rare_networks_of_a_space_without_a_list_are_found_by_descent(monkeypatch):
    monkeypatch.setattr(constrained_module, "REJECTIONS", 1)
    space = limited(spaces.get("mlp"), "units<=40", "layers>=5")
    found = space.sample(np.random.default_rng(0))
    assert space.contains(found) and not any(map(space.contains, space.whole.initial_pool()))
    monkeypatch.setattr(constrained_module, "STEPS", 3)
    with pytest.raises(
        InfeasibleError,
        match=r"found no network of the space mlp that meets units<=1: the "
        r"nearest, .*units",
    ):
        limited(spaces.get("mlp"), "units<=1").sample(np.random.default_rng(0))


def test_the_members_are_those_of_the_space_that_meet_the_constraints():
    whole = spaces.get("nasbench201")
    space = limited(whole, "layers<=5", "convolutions>=2")
    met = [
        each for each in whole.members() if len(each.layers) <= 5 and convolutions([each])[0] >= 2
    ]
    assert space.members() == met and 0 < len(met) < len(whole.members())
    with pytest.raises(
        InvalidArchitectureError,
        match=r"does not meet layers<=5: its layers is "
        r"[678]",
    ):
        space.validate(next(each for each in whole.members() if len(each.layers) > 5))

    decisions = space.decisions()
    drawn = np.random.default_rng(0)
    assert all(
        decisions.decode(decisions.encode(one)).functional_key == one.functional_key
        for one in met[:3]
    )
    decoded = [decisions.decode(decisions.complete([-1] * 6, drawn)) for _ in range(50)]
    assert any(one is None for one in decoded) and all(
        one is None or space.contains(one) for one in decoded
    )


class Islands(Chains):
    """Chains whose mutations change one layer: those with equal units are no mutations of each
    other."""

    def mutate(self, architecture, rng):
        near = [
            move
            for move in super().neighbours(architecture)
            if _differing(architecture, move.child) == 1
        ]
        return near[int(rng.integers(len(near)))]

    def neighbours(self, architecture):
        yield from (
            move
            for move in super().neighbours(architecture)
            if _differing(architecture, move.child) == 1
        )


def _differing(one, other):
    if len(one.layers) != len(other.layers):
        return 2

    return sum(a != b for a, b in zip(one.layers, other.layers, strict=True))


def test_mutations_pass_other_networks_to_reach_separate_parts():
    """Two layers of 8 and 16 units: exchanging them takes a step through 16 or 32 units in all."""

    def uneven(architectures):
        pairs = [
            [layer.units for layer in each.layers if layer.units and layer.op != "linear"]
            for each in architectures
        ]
        return np.array([float(len(pair) == 2 and pair[0] != pair[1]) for pair in pairs])

    space = ConstrainedSpace(Islands(), (parse("uneven>=1"),), {"uneven": uneven})
    every = [one for one in Chains().every() if uneven([one])[0]]
    start = every[0]
    near = {mutation.child.functional_key for mutation in space.neighbours(start)}
    assert len(near) < len(every) - 1
    rng = np.random.default_rng(0)
    seen = set()
    current = start
    for _ in range(300):
        mutation = space.mutate(current, rng)
        assert space.contains(mutation.child) and "draw" not in mutation.operations
        seen.add(mutation.child.functional_key)
        current = mutation.child

    assert seen == {one.functional_key for one in every}


def test_constraints_that_nothing_meets_name_the_nearest_network():
    space = limited(spaces.get("nasbench201"), "layers<=1")
    expected = (
        r"no network of the space nasbench201 meets layers<=1: the nearest, \|none.*, has "
        r"layers 2"
    )
    for move in (space.initial_pool, lambda: space.sample(np.random.default_rng(0))):
        with pytest.raises(InfeasibleError, match=expected) as error:
            move()

    (nearest,) = (
        each for each in spaces.get("nasbench201").members() if each.key == error.value.nearest
    )
    assert (error.value.exit_code, len(nearest.layers)) == (3, 2)
    unknown = ConstrainedSpace(
        Chains(), (parse("x<=1"),), {"x": lambda networks: np.full(len(networks), np.nan)}
    )
    with pytest.raises(InfeasibleError, match="their costs are unknown"):
        unknown.initial_pool()


def test_dead_edges_may_have_operations_that_no_member_uses():
    def threes(architectures):
        return [
            sum(one.layers[at].op == "nor_conv_3x3" for at in one.live) for one in architectures
        ]

    space = ConstrainedSpace(spaces.get("nasbench201"), (parse("threes<=0"),), {"threes": threes})
    dead = codec.from_nasbench201(
        "|skip_connect~0|+|nor_conv_3x3~0|none~1|+|none~0|nor_conv_1x1~1|none~2|"
    )
    assert space.contains(dead)
    decisions = space.decisions()
    assert all("nor_conv_3x3" not in each.choices for each in decisions.decisions)
    assert decisions.decode(decisions.encode(dead)).functional_key == dead.functional_key

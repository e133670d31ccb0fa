"""The nearest networks of an index against all distances, and lower bounds against the distances
they bound."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive import kernels, spaces
from archive.errors import UsageError
from archive.kernels.packing import join, pack, unpack
from archive.kernels.search import index as module
from archive.kernels.search.index import component_of, index

SPACES = ("cnn", "mlp", "nasbench201", "nasbench101")
BOUNDED = [
    ("otmann", {}),
    ("otmann", {"variant": "code", "nu_str": (0.0,)}),
    ("wasserstein", {}),
    ("wasserstein", {"weights": "mass"}),
    ("edit", {}),
    ("edit", {"layers": "attributes", "lam": 0.5}),
]
EMBEDDED = [
    ("tree-wasserstein", {}),
    ("tree-wasserstein", {"sizes": True}),
    ("tree-wasserstein", {"weights": (0.5, 0.25, 0.25, 0.0)}),
    ("path", {}),
    ("weisfeiler-lehman", {}),
]


@functools.cache
def networks(space, count=40):
    """Return that many networks of a space by random walks, all different."""
    rng = np.random.default_rng(1)
    own = spaces.get(space)
    by_key = {one.key: one for one in own.initial_pool()}
    while len(by_key) < count:
        walker = list(by_key.values())[int(rng.integers(len(by_key)))]
        child = own.mutate(walker, rng).child
        by_key[child.key] = child

    return list(by_key.values())[:count]


def filled(kernel, some):
    made = index(kernel, some[0].space)
    # In two parts, as an index grows.
    for part in (some[:7], some[7:]):
        made.add([kernel.prepare(one) for one in part])

    return made


def exact(kernel, network, some, component=None):
    stack = kernel.distances([network], some).stack[:, 0]
    return stack[: kernel.unnormalised].mean(axis=0) if component is None else stack[component]


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize(("name", "config"), BOUNDED)
def test_no_distance_is_below_its_bound(space, name, config):
    some = networks(space)
    kernel = kernels.get(name, **config)
    bound = kernel.lower_bound(space)
    sketches = bound.describe(pack([kernel.prepare(one) for one in some]))
    stack = kernel.distances(some).stack[: kernel.unnormalised]
    bounds = np.array([bound.bound(sketch, sketches) for sketch in sketches])
    assert (bounds <= stack * (1 + 1e-9) + 1e-12).all()
    # It is of use: most bounds are positive.
    assert (bounds > 0).mean() > 0.5


CASES = [
    *((space, *kernel) for space in SPACES for kernel in BOUNDED),
    # Vectors are compared alike in all spaces.
    *((space, *kernel) for space in ("mlp", "nasbench201") for kernel in EMBEDDED),
    ("nasbench201", "gromov-wasserstein", {"starts": 1}),
]


@pytest.mark.parametrize(("space", "name", "config"), CASES)
def test_the_nearest_are_those_of_all_distances(space, name, config, monkeypatch):
    monkeypatch.setattr(module, "FIRST", 8)
    count = 25 if name == "gromov-wasserstein" else 40
    some = networks(space)[:count]
    kernel = kernels.get(name, **config)
    searched = filled(kernel, some)
    allowed = np.arange(1, count)
    for component in (None, 0, len(kernel.components) - 1):
        values = exact(kernel, some[0], some[1:], component)
        for k in (1, 5, count + 5):
            near = searched.nearest(some[0], k, component, allowed)
            assert near.certain == len(near.positions) == min(k, count - 1)
            np.testing.assert_allclose(near.distances, np.sort(values)[:k], rtol=1e-12, atol=1e-12)
            np.testing.assert_allclose(
                values[near.positions - 1], near.distances, rtol=1e-12, atol=1e-12
            )
            assert len(set(near.positions.tolist())) == len(near.positions)


def test_only_what_may_be_near_is_compared(monkeypatch):
    monkeypatch.setattr(module, "FIRST", 4)
    some = networks("cnn", 200)
    searched = filled(kernels.get("otmann"), some)
    near = searched.nearest(some[0], 3, None, np.arange(1, 200))
    assert near.compared < 100 and near.certain == 3


@functools.cache
def filled_with_cells():
    some = networks("nasbench201")
    kernel = kernels.get("otmann")
    return some, kernel, filled(kernel, some)


@given(st.data())
def test_what_is_allowed_and_what_is_compared_at_most(data):
    some, kernel, searched = filled_with_cells()
    allowed = np.array(
        sorted(data.draw(st.sets(st.integers(0, len(some) - 1), max_size=40))), np.int64
    )
    most = data.draw(st.integers(1, 45))
    k = data.draw(st.integers(1, 8))
    query = some[data.draw(st.integers(0, len(some) - 1))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "FIRST", 2)
        patch.setattr(module, "MOST", most)
        near = searched.nearest(query, k, None, allowed)

    assert near.compared <= most and set(near.positions) <= set(allowed)
    values = exact(kernel, query, [some[at] for at in allowed]) if len(allowed) else np.zeros(0)
    # Certain neighbours are exact, and all are certain where every network may be compared.
    np.testing.assert_allclose(
        near.distances[: near.certain], np.sort(values)[: near.certain], rtol=1e-12
    )
    if most >= len(allowed):
        assert near.certain == min(k, len(allowed))


@pytest.mark.parametrize(
    ("name", "config"), [*BOUNDED[:1], *BOUNDED[2:3], *BOUNDED[4:5], *EMBEDDED]
)
def test_an_index_can_be_kept_as_arrays(name, config):
    some = networks("cnn")
    kernel = kernels.get(name, **config)
    searched = filled(kernel, some)
    assert searched.storable and all(array.dtype != object for array in searched.arrays.values())
    again = index(kernel, "cnn", searched.arrays)
    again.add([kernel.prepare(one) for one in networks("cnn", 70)[40:]])
    near = again.nearest(some[3], 4, None, np.arange(70))
    allowed = networks("cnn", 70)
    np.testing.assert_allclose(
        near.distances, np.sort(exact(kernel, some[3], allowed))[:4], rtol=1e-12, atol=1e-12
    )


def test_an_empty_index_has_nothing_near():
    for name in ("otmann", "path", "gromov-wasserstein"):
        kernel = kernels.get(name)
        searched = index(kernel, "cnn")
        searched.add([])
        if searched.arrays or name == "gromov-wasserstein":
            near = searched.nearest(networks("cnn")[0], 3, None, np.zeros(0, np.int64))
            assert len(near.positions) == near.certain == near.compared == 0


def test_networks_are_unpacked_as_they_were_packed():
    kernel = kernels.get("otmann")
    some = [kernel.prepare(one) for one in networks("cnn")[:5]]
    arrays = join(pack(some[:2]), pack(some[2:]))
    for at, one in enumerate(some):
        same = unpack(type(one), arrays, at, one.key, one.space)
        for name in ("key", "space", "total", "masses", "labels", "places", "blocks"):
            np.testing.assert_array_equal(getattr(same, name), getattr(one, name))


def test_components_have_names():
    kernel = kernels.get("otmann")
    assert component_of(kernel, None) is None and component_of(kernel, "otmann_normalised:0.1") == 4
    with pytest.raises(UsageError, match=r"otmann:0\.1.*got otmann:9"):
        component_of(kernel, "otmann:9")

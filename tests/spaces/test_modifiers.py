"""The nine modifiers of Table 6, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.architecture.graph import Architecture, Edge, Layer
from archive.errors import InvalidArchitectureError
from archive.spaces.cnn import vgg
from archive.spaces.layerwise import Limits
from archive.spaces.modifiers import apply
from archive.spaces.modifiers.choices import reconnections, removable, runs, swaps, wedges
from tests.support.strategies import members

IP = Layer("ip")
OP = Layer("op")
SOFTMAX = Layer("softmax")
LINEAR = Layer("linear")
MAX_POOL = Layer("max-pool", None, 2)
AVG_POOL = Layer("avg-pool", None, 2)


def cnn(inner: list[Layer], edges: list[Edge] | None = None) -> Architecture:
    layers = [IP, *inner, SOFTMAX, OP]
    return Architecture("cnn", layers, edges or [(u, u + 1) for u in range(len(layers) - 1)])


def mlp(widths: list[int], edges: list[Edge] | None = None) -> Architecture:
    layers = [IP, *(Layer("relu", units) for units in widths), LINEAR, OP]
    return Architecture("mlp", layers, edges or [(u, u + 1) for u in range(len(layers) - 1)])


def widths(network: Architecture) -> list[int]:
    return [layer.units for layer in network.layers if layer.units is not None]


@pytest.mark.parametrize(
    ("units", "more", "fewer"),
    [
        (64, 72, 56),
        (8, 9, 7),
        (1, 2, 0),
        (3, 4, 2),
        (11, 12, 10),
        (12, 14, 10),
        (100, 113, 87),
        (1024, 1152, 896),
    ],
)
def test_units_change_by_an_eighth_rounded_and_by_one_at_least(
    units: int, more: int, fewer: int
) -> None:
    assert (apply.change_units(units, +1), apply.change_units(units, -1)) == (more, fewer)


def test_inc_single_and_dec_single_change_one_layer() -> None:
    network = mlp([64, 128, 256])
    assert widths(apply.inc_single(network, 2)) == [64, 144, 256]
    assert widths(apply.dec_single(network, 3)) == [64, 128, 224]
    assert network == mlp([64, 128, 256])


def test_en_masse_changes_several_layers() -> None:
    network = mlp([64, 128, 256])
    assert widths(apply.inc_en_masse(network, [1, 3])) == [72, 128, 288]
    assert widths(apply.dec_en_masse(network, [1, 2])) == [56, 112, 256]


def test_layers_without_units_cannot_change_them() -> None:
    with pytest.raises(InvalidArchitectureError, match="max-pool has no units to change"):
        apply.inc_single(cnn([MAX_POOL]), 1)


@pytest.mark.parametrize(
    ("count", "size"),
    [(1, 1), (2, 1), (3, 2), (4, 2), (5, 2), (8, 2), (9, 2), (16, 2), (17, 3), (24, 3), (57, 8)],
)
def test_en_masse_picks_the_fractions_of_the_table(count: int, size: int) -> None:
    found = runs(mlp([8] * count))
    assert {len(run) for run in found} == {size}
    assert len(found) == count - size + 1
    assert all(run == list(range(run[0], run[0] + size)) for run in found)


def test_en_masse_counts_layers_that_have_units() -> None:
    assert runs(cnn([Layer("conv3", 8), MAX_POOL, Layer("conv3", 8), Layer("fc", 8)])) == [
        [1, 3],
        [3, 4],
    ]
    assert runs(cnn([MAX_POOL])) == []


def test_dup_path_duplicates_the_inner_layers() -> None:
    network = apply.dup_path(mlp([10, 20, 30]), [0, 1, 2, 3])
    assert sorted(widths(network)) == [10, 10, 20, 20, 30]
    expected = mlp(
        [10, 20, 10, 20, 30], [(0, 1), (1, 2), (0, 3), (3, 4), (2, 5), (4, 5), (5, 6), (6, 7)]
    )
    assert network.key == expected.key


def test_dup_path_to_the_output_duplicates_the_decision() -> None:
    network = apply.dup_path(cnn([Layer("conv3", 8, 2)]), [0, 1, 2, 3])
    assert [layer.op for layer in network.layers].count("softmax") == 2
    assert [layer for layer in network.layers if layer.op == "conv3"] == [Layer("conv3", 8, 2)] * 2


@pytest.mark.parametrize("path", [[], [0], [0, 1], [0, 2, 3], [1, 0, 1], [7, 8, 9], [-1, 0, 1]])
def test_dup_path_needs_a_path(path: list[int]) -> None:
    with pytest.raises(InvalidArchitectureError, match="path of three layers or more"):
        apply.dup_path(mlp([10, 20]), path)


def test_remove_layer_reconnects_what_it_orphans() -> None:
    network = mlp([10, 20, 30])
    assert apply.orphans(network, 2) == ([1], [3])
    assert list(reconnections(network, 2)) == [[(1, 3)]]
    assert apply.remove_layer(network, 2, [(1, 3)]) == mlp([10, 30])


def test_remove_layer_adds_no_edge_where_none_is_needed() -> None:
    network = mlp([10, 20, 30], [(0, 1), (1, 2), (1, 3), (2, 3), (3, 4), (4, 5)])
    assert apply.orphans(network, 2) == ([], [])
    assert list(reconnections(network, 2)) == [[]]
    assert apply.remove_layer(network, 2, []) == mlp([10, 30])


def test_remove_layer_pairs_orphans_and_joins_the_rest_to_anything() -> None:
    # Layers 1 and 2 feed 3 only; 4 is fed by 3 only, 5 by 3 and by the input.
    edges = [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4), (3, 5), (0, 5), (4, 6), (5, 6), (6, 7), (7, 8)]
    network = mlp([10, 20, 30, 40, 50, 60], edges)
    assert apply.orphans(network, 3) == ([1, 2], [4])
    found = {frozenset(edges) for edges in reconnections(network, 3)}
    assert found == {frozenset({(a, 4), (b, c)}) for a, b in ((1, 2), (2, 1)) for c in (4, 5)}
    for choice in found:
        apply.remove_layer(network, 3, choice)


def test_remove_layer_keeps_one_decision() -> None:
    one = mlp([10])
    two = apply.dup_path(one, [0, 1, 2, 3])
    assert removable(one) == [1]
    assert len(removable(two)) == 4
    with pytest.raises(InvalidArchitectureError, match="only decision layers feed the output"):
        apply.remove_layer(one, 2, [(1, 3)])


def test_remove_layer_needs_reconnection() -> None:
    network = mlp([10, 20, 30])
    with pytest.raises(InvalidArchitectureError, match="dead end"):
        apply.remove_layer(network, 2, [])

    with pytest.raises(InvalidArchitectureError, match="from its parents to its children"):
        apply.remove_layer(network, 2, [(0, 3)])

    for end in (0, 5, -1, 9):
        with pytest.raises(InvalidArchitectureError, match="cannot be removed"):
            apply.remove_layer(network, end, [])


def test_removing_a_halving_beside_another_path_is_illegal() -> None:
    conv = Layer("conv3", 8)
    network = apply.skip(cnn([conv, MAX_POOL, conv]), 1, 3)
    halving = next(u for u, layer in enumerate(network.layers) if layer == MAX_POOL)
    with pytest.raises(InvalidArchitectureError, match="image sizes do not meet"):
        apply.remove_layer(
            network, halving, [(network.parents[halving][0], network.children[halving][0])]
        )


def test_skip_connects_layers() -> None:
    assert apply.skip(mlp([10, 20]), 0, 2) == mlp(
        [10, 20], [(0, 1), (0, 2), (1, 2), (2, 3), (3, 4)]
    )


def test_skip_halves_the_image_as_often_as_needed() -> None:
    conv = Layer("conv3", 8)
    network = cnn([conv, MAX_POOL, Layer("conv5", 8, 2), conv])
    assert [apply.halvings(network, tail, 4) for tail in (0, 1, 2, 3)] == [2, 2, 1, 0]
    skipped = apply.skip(network, 1, 4)
    assert [layer.op for layer in skipped.layers].count("avg-pool") == 2
    expected = cnn(
        [conv, MAX_POOL, Layer("conv5", 8, 2), AVG_POOL, AVG_POOL, conv],
        [(0, 1), (1, 2), (2, 3), (1, 4), (4, 5), (3, 6), (5, 6), (6, 7), (7, 8)],
    )
    assert skipped.key == expected.key


def test_skip_cannot_enlarge_an_image_or_mix_it_with_vectors() -> None:
    conv = Layer("conv3", 8)
    fc = Layer("fc", 8)
    edges = [(0, 1), (0, 2), (1, 4), (2, 3), (4, 5), (3, 5), (5, 6), (6, 7)]
    network = cnn([MAX_POOL, conv, MAX_POOL, conv, conv], edges)
    small = next(
        u
        for u, layer in enumerate(network.layers)
        if layer == MAX_POOL and network.parents[u] == (0,)
    )
    large = next(
        u
        for u, layer in enumerate(network.layers)
        if layer == MAX_POOL and network.parents[u] != (0,)
    )
    assert small < large
    with pytest.raises(InvalidArchitectureError, match="cannot match the image sizes"):
        apply.skip(network, small, large)

    with pytest.raises(InvalidArchitectureError, match="cannot match the image sizes"):
        apply.skip(cnn([conv, fc, fc]), 1, 3)


@pytest.mark.parametrize(("tail", "head"), [(0, 1), (2, 1), (1, 1), (-1, 2), (1, 9)])
def test_skip_needs_two_unconnected_layers_in_order(tail: int, head: int) -> None:
    with pytest.raises(InvalidArchitectureError, match="two unconnected layers in order"):
        apply.skip(mlp([10, 20]), tail, head)


def test_skip_into_the_output_is_illegal() -> None:
    with pytest.raises(InvalidArchitectureError, match="only decision layers"):
        apply.skip(mlp([10, 20]), 1, 4)


def test_swap_label_keeps_units_and_stride_where_it_can() -> None:
    network = cnn([Layer("conv3", 24, 2)])
    assert apply.swap_label(network, 1, "res5").layers[1] == Layer("res5", 24, 2)
    assert apply.swap_label(network, 1, "avg-pool").layers[1] == AVG_POOL
    assert apply.swap_label(network, 1, "fc").layers[1] == Layer("fc", 24, 1)
    pooled = cnn([Layer("conv3", 24), MAX_POOL, Layer("conv3", 72)])
    assert apply.swap_label(pooled, 2, "conv7").layers[2] == Layer("conv7", 48, 2)
    with pytest.raises(InvalidArchitectureError, match="another label"):
        apply.swap_label(network, 1, "conv3")


def test_swap_labels_stay_within_what_can_be_legal() -> None:
    same, other = swaps(cnn([Layer("conv3", 8)]), 1)
    assert set(same) == {"conv5", "conv7", "res3", "res5", "res7"}
    assert set(other) == {"max-pool", "avg-pool", "fc"}
    same, other = swaps(cnn([MAX_POOL]), 1)
    assert set(same) == {"avg-pool", "conv3", "conv5", "conv7", "res3", "res5", "res7"}
    assert other == ["fc"]
    network = cnn([Layer("fc", 8), Layer("fc", 8)])
    assert (
        swaps(network, 2) == swaps(network, 0) == swaps(network, 3) == swaps(network, 4) == ([], [])
    )
    assert set(swaps(mlp([8]), 1)[0]) == {
        "crelu",
        "leaky-relu",
        "softplus",
        "elu",
        "logistic",
        "tanh",
    }


def test_wedge_layer_gets_the_mean_of_the_units_around_it() -> None:
    assert apply.wedge_layer(mlp([10, 21]), (1, 2), "tanh").layers[2] == Layer("tanh", 16)
    assert apply.wedge_layer(mlp([10, 20]), (0, 1), "tanh").layers[1] == Layer("tanh", 10)
    assert apply.wedge_layer(mlp([10, 20]), (2, 3), "tanh").layers[3] == Layer("tanh", 20)


def test_wedge_layer_looks_through_layers_without_units() -> None:
    network = cnn([Layer("conv3", 30), MAX_POOL, MAX_POOL, Layer("fc", 10)])
    assert apply.wedge_layer(network, (2, 3), "conv3").layers[3] == Layer("conv3", 20)
    assert apply.wedge_layer(cnn([MAX_POOL]), (1, 2), "fc").layers[2] == Layer("fc", 16)
    assert apply.wedge_layer(cnn([MAX_POOL]), (1, 2), "fc", default_units=40).layers[2] == Layer(
        "fc", 40
    )


def test_looking_through_a_lattice_of_pools_is_fast() -> None:
    """Twenty ranks of two pools have 2^20 paths."""
    edges: list[Edge] = [(0, 1), (0, 2)]
    for rank in range(19):
        edges += [(1 + 2 * rank + a, 3 + 2 * rank + b) for a in (0, 1) for b in (0, 1)]

    network = cnn([MAX_POOL] * 40, [*edges, (39, 41), (40, 41), (41, 42)])
    assert apply.surrounding_units(network, 41, 0, 16) == 16


def test_wedge_layer_has_strides_and_pools() -> None:
    network = cnn([Layer("conv3", 8), Layer("conv3", 8)])
    assert apply.wedge_layer(network, (1, 2), "conv5", stride=2).levels[2] == 1
    assert apply.wedge_layer(network, (1, 2), "avg-pool").layers[2] == AVG_POOL
    with pytest.raises(InvalidArchitectureError, match="an edge of the network"):
        apply.wedge_layer(network, (0, 2), "conv3")

    with pytest.raises(InvalidArchitectureError, match="a vector feeds it"):
        apply.wedge_layer(network, (1, 2), "fc")

    with pytest.raises(InvalidArchitectureError, match="feeds another layer than the output"):
        apply.wedge_layer(network, (3, 4), "fc")


def test_wedges_stay_within_what_can_be_legal() -> None:
    network = cnn([Layer("conv3", 8), Layer("fc", 8), Layer("fc", 8)])
    assert wedges(network, (2, 3)) == ([("fc", 1)], [])
    assert ("fc", 1) in wedges(network, (1, 2))[0]
    assert ("fc", 1) not in wedges(network, (0, 1))[0]
    assert ("max-pool", 2) in wedges(network, (0, 1))[1]


UNIT_CHANGES: list[Callable[[Architecture, int], Architecture]] = [
    apply.inc_single,
    apply.dec_single,
]


@given(members("cnn"), st.data())
def test_changing_units_keeps_the_graph(network: Architecture, data: st.DataObject) -> None:
    with_units = [u for u, layer in enumerate(network.layers) if layer.units is not None]
    change = data.draw(st.sampled_from(UNIT_CHANGES))
    if with_units:
        layer = data.draw(st.sampled_from(with_units))
        child = change(network, layer)
        assert child.edges == network.edges
        assert [a == b for a, b in zip(child.layers, network.layers, strict=True)].count(False) == 1


@given(members("cnn"))
def test_removing_a_wedged_layer_gives_the_network_back(network: Architecture) -> None:
    for tail, head in network.edges[:4]:
        # If all parents and children have other neighbours, a removal adds no edges.
        if head == len(network.layers) - 1 or len(network.children[tail]) > 1 < len(
            network.parents[head]
        ):
            continue

        same, _ = wedges(network, (tail, head))
        wedged = apply.wedge_layer(network, (tail, head), same[0][0])
        assert network.key in {child.key for child in _removals(wedged)}


def _removals(network: Architecture) -> Iterator[Architecture]:
    for layer in removable(network):
        for edges in reconnections(network, layer):
            with suppress(InvalidArchitectureError):
                yield apply.remove_layer(network, layer, edges)


def test_limits_know_nothing_of_modifiers() -> None:
    """A modifier may exceed the limits, which its caller checks."""
    wide = apply.inc_single(mlp([1024]), 1)
    with pytest.raises(InvalidArchitectureError, match="got 1152"):
        Limits().check(wide)

    Limits().check(vgg(4))

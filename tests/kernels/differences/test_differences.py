"""Differences of networks: the parts sum up to the distance, and say what happens to every
layer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive import kernels, spaces
from archive.architecture.diagram_comparison import merge
from archive.architecture.graph import Architecture
from archive.architecture.nasbench_codec import from_nasbench201
from archive.drawing import svg
from archive.errors import InvalidArchitectureError, UsageError
from archive.kernels.differences import difference, explainable_kernels
from archive.kernels.differences.picture import difference_diagram
from archive.spaces.darts.published import PUBLISHED
from tests.support import examples
from tests.support.networks.nets import net
from tests.support.networks.torch_nets import chain, layer, networks
from tests.support.strategies import members

SPACES = [name for name in spaces.names() if name not in ("graph", "program", "torch")]
PAIRS = st.sampled_from(SPACES).flatmap(
    lambda name: st.tuples(members(name), members(name))
) | st.tuples(networks(), networks())
ENTRIES = ("normal.c_k-1", "reduce.c_k-1")
CASES = {
    "edit": [{}, {"lam": 0.25, "layers": "attributes"}],
    "otmann": [{}, {"variant": "code", "nu_str": [0.7, 0.3]}],
}


@given(
    PAIRS,
    st.sampled_from([(name, config) for name in explainable_kernels() for config in CASES[name]]),
)
@examples(2)
def test_the_parts_sum_up_to_the_distance(
    pair: tuple[Architecture, Architecture], case: tuple
) -> None:
    first, second = pair
    name, config = case
    kernel = kernels.get(name, **config)
    for component in kernel.components[: kernel.unnormalised]:
        at = kernel.components.index(component)
        found = difference(first, second, name, component, **config)
        expected = float(kernel.distances([first], [second]).stack[at, 0, 0])
        assert found.distance == pytest.approx(expected, rel=1e-9, abs=1e-6)
        assert all(part.cost >= 0 for part in found.parts)
        assert sum(cost for *_, cost in found.totals()) == pytest.approx(found.distance)

    # Every layer once, and in the edit script in an order that suits both networks.
    for which, network in enumerate(pair):
        own = [each[which] for each in found.layers if each[which] is not None]
        assert sorted(own) == list(range(len(network.layers)))
        if name == "edit":
            place = {u: at for at, u in enumerate(own)}
            assert all(place[tail] < place[head] for tail, head in network.edges)

    # Where cells are drawn beside each other, the input and the output are not drawn.
    assert svg(difference_diagram(found)).count('class="aa-node') >= len(found.layers) - 2


@given(st.sampled_from(SPACES).flatmap(members), st.sampled_from(explainable_kernels()))
@examples(0.5)
def test_a_network_does_not_differ_from_itself(architecture: Architecture, kernel: str) -> None:
    found = difference(architecture, architecture, kernel)
    assert found.distance == 0
    statuses = {node.status for node in difference_diagram(found).nodes} | {
        link.status for link in difference_diagram(found).links
    }
    # Parallel layers of different units may exchange their computation at no cost.
    exchanged = {"changed"} if kernel == "otmann" else set()
    assert {found.change(pair) for pair in found.layers} <= {"matched", *exchanged}
    assert {part.change for part in found.parts} <= {"matched", *exchanged}
    assert statuses <= {"", "matched", *exchanged}


def test_an_edit_script_by_hand() -> None:
    first = net("cnn", "conv3/16 conv3/32 max-pool fc/8 softmax")
    second = net("cnn", "conv3/16 conv3/64 conv5/64 max-pool softmax")
    found = difference(first, second)
    said = [
        (part.change, part.first, part.second, part.cost)
        for part in found.parts
        if part.subject == "layer"
    ]
    assert said == [
        ("matched", (1,), (1,), 0.0),
        ("changed", (2,), (2,), 0.5),
        ("inserted", (), (3,), 1.0),
        ("matched", (3,), (4,), 0.0),
        ("removed", (4,), (), 1.0),
        ("matched", (5,), (5,), 0.0),
    ]
    assert found.distance == 2.5
    drawn = difference_diagram(found)
    assert [(node.label, node.detail, node.status) for node in drawn.nodes][1:6] == [
        ("conv3", "16", "matched"),
        ("conv3", "32 → 64", "changed"),
        ("conv5", "64", "inserted"),
        ("max-pool", "/2", "matched"),
        ("fc", "8", "removed"),
    ]
    links = {(link.tail, link.head): link.status for link in drawn.links}
    assert links == {
        **dict.fromkeys([(0, 1), (1, 2), (6, 7)], ""),
        **dict.fromkeys([(2, 3), (3, 4), (4, 6)], "inserted"),
        **dict.fromkeys([(2, 4), (4, 5), (5, 6)], "removed"),
    }
    assert drawn.heading[0].endswith("edit 2.5")


def test_a_moved_skip_names_places_of_the_sequence_where_layers_have_other_numbers() -> None:
    cell = "|nor_conv_3x3~0|+|nor_conv_3x3~0|nor_conv_3x3~1|+|skip_connect~0|nor_conv_3x3~1|{}~2|"
    (moved,) = (
        part
        for part in difference(
            *(from_nasbench201(cell.format(last)) for last in ("nor_conv_3x3", "none"))
        ).parts
        if part.change == "changed"
    )
    assert (moved.first, moved.second) == ((4, 7), (4, 6))
    assert moved.reason == "from place 3 over 3 → from place 3 over 2"


def test_the_cells_of_two_genotypes_are_compared_side_by_side() -> None:
    first, second = (PUBLISHED[name].architecture.canonical for name in ("DARTS_V1", "DARTS_V2"))
    drawn = difference_diagram(difference(first, second))
    assert [panel.title for panel in drawn.panels] == ["normal cell", "reduce cell"]
    assert all(node.label not in ("input", "output") for node in drawn.nodes)
    assert sum(len(panel.nodes) for panel in drawn.panels) == len(drawn.nodes)
    assert sum(node.label == "Σ" for node in drawn.nodes) == 8
    changed = [node for node in drawn.nodes if node.status == "changed"]
    assert sorted(node.label for node in changed) == [
        "avg_pool_3x3 → max_pool_3x3",
        "skip_connect → dil_conv_3x3",
    ]
    # Where a layer of one cell becomes one of the other, both cells are one graph.
    pairs: list[tuple[int, int]] = [(u, u) for u in range(len(first.layers))]
    normal, reduced = (
        next(u for u, each in enumerate(first.layers) if each.op == op) for op in ENTRIES
    )
    pairs[normal], pairs[reduced] = (normal, reduced), (reduced, normal)
    assert merge(first, first, pairs, {}).panels == ()


def test_a_changed_attribute_is_named_though_it_costs_nothing() -> None:
    first, second = (
        chain(layer("relu"), layer("batch_norm", weight=[3], eps=eps)) for eps in (1e-5, 1e-3)
    )
    found = difference(first, second)
    assert found.distance == 0
    (changed,) = [node for node in difference_diagram(found).nodes if node.status == "changed"]
    assert (changed.label, changed.detail, changed.note) == ("batch_norm", "eps 1e-05 → 0.001", "")


def test_a_transport_plan_by_hand() -> None:
    """One hidden layer of 8 units becomes one of 12: a third of the larger mass has no partner."""
    first = net("mlp", "relu/8 linear")
    second = net("mlp", "relu/12 linear")
    found = difference(first, second, "otmann")
    said = {
        (part.change, part.first, part.second): (part.amount, part.cost) for part in found.parts
    }
    assert said[("changed", (1,), (1,))] == (8.0, 0.0)
    assert said[("inserted", (), (1,))] == (4.0, 4.0)
    # Input, output and decision have a tenth of the mass each.
    for end in (0, 2, 3):
        assert said[("matched", (end,), (end,))] == (pytest.approx(0.8), 0.0)
        assert said[("inserted", (), (end,))] == (pytest.approx(0.4), pytest.approx(0.4))

    drawn = difference_diagram(found)
    assert [node.status for node in drawn.nodes] == ["matched", "changed", "matched", "matched"] * 2
    assert [panel.title for panel in drawn.panels] == [first.key[:8], second.key[:8]]
    assert max(drawn.flows, key=lambda flow: flow.share).tail == 1


def test_what_cannot_be_explained_says_why() -> None:
    first = net("mlp", "relu/8 linear")
    second = net("cnn", "conv3/8 softmax")
    with pytest.raises(UsageError, match="known for edit and otmann, got path"):
        difference(first, first, "path")

    with pytest.raises(
        UsageError,
        match=r"otmann has the components otmann:0.1, .* got "
        r"'otmann_normalised:0.1'",
    ):
        difference(first, first, "otmann", "otmann_normalised:0.1")

    with pytest.raises(InvalidArchitectureError, match="only networks of one space"):
        difference(first, second)

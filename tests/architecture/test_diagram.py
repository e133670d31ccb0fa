"""Diagrams of architectures: boxes, folding, junctions, cells."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive import spaces
from archive.architecture.aten.blocks import fold
from archive.architecture.codec import from_nasbench201
from archive.architecture.diagram import diagram, svg
from archive.architecture.diagram_comparison import gather
from archive.architecture.graph import Architecture, Layer
from archive.drawing import Diagram, text
from archive.spaces.darts.published import PUBLISHED
from tests.architecture.test_folding import residual_chain
from tests.drawing.test_layout import graphs
from tests.support import examples
from tests.support.networks.block_nets import residual_net
from tests.support.networks.nets import net
from tests.support.networks.torch_nets import chain, layer, networks
from tests.support.strategies import members, relabelled

SPACES = [name for name in spaces.names() if name not in ("graph", "program", "torch")]


@examples(0.5)
@given(st.sampled_from(SPACES).flatmap(members) | networks(), st.integers(0, 99))
def test_equal_networks_have_equal_pictures(architecture: Architecture, seed: int) -> None:
    assert svg(relabelled(architecture, seed)) == svg(architecture) == architecture._repr_svg_()


@examples(0.5)
@given(st.sampled_from(["cnn", "mlp"]).flatmap(members))
def test_an_unfolded_picture_has_every_layer_and_reaches_what_the_network_reaches(
    architecture: Architecture,
) -> None:
    drawn = diagram(architecture, fold=False)
    canonical = architecture.canonical
    boxes = {at: node.layer for at, node in enumerate(drawn.nodes) if node.layer is not None}
    assert sorted(boxes.values()) == list(range(len(canonical.layers)))
    assert all(canonical.layers[u].op in drawn.nodes[at].tip for at, u in boxes.items())
    # Through a junction, each of its inputs feeds each of its outputs.
    below: dict[int, list[int]] = {}
    for link in drawn.links:
        below.setdefault(link.tail, []).append(link.head)

    edges = {
        (boxes[tail], boxes[head])
        for tail in boxes
        for near in below.get(tail, ())
        for head in (below[near] if near not in boxes else [near])
    }
    assert edges == set(canonical.edges)


def test_repeated_parts_are_drawn_once_whether_the_network_tells_or_not() -> None:
    chain = residual_chain(5)
    drawn = diagram(chain, layers=True)
    blocks = diagram(fold(chain), layers=True)
    assert sorted(node.label for node in drawn.nodes) == [
        "add",
        "input",
        "mul",
        "output",
        "parameter",
        "relu",
    ]
    assert sorted(node.label for node in blocks.nodes) == sorted(node.label for node in drawn.nodes)
    for each in (drawn, blocks):
        (frame,) = each.frames
        assert frame.label == "× 5"
        assert sorted(each.nodes[u].label for u in frame.nodes) == [
            "add",
            "mul",
            "parameter",
            "relu",
        ]
        labels = [(each.nodes[link.tail].label, each.nodes[link.head].label) for link in each.links]
        assert ("add", "output") in labels and ("input", "relu") in labels and len(labels) == 6

    assert len(diagram(chain, fold=False, layers=True).nodes) == 22

    plain = diagram(net("mlp", "tanh/8 relu/16 relu/16 relu/16 relu/16 linear"))
    assert [node.label for node in plain.nodes] == ["input", "tanh", "relu", "linear", "output"]
    assert [frame.label for frame in plain.frames] == ["× 4"]


def test_a_block_without_layers_has_no_frame() -> None:
    empty = chain(layer("block_start", times=3), layer("block_end"), layer("relu"))
    spaces.get("torch").validate(empty)
    for fold_blocks in (True, False):
        drawn = diagram(empty, fold=fold_blocks, layers=True)
        assert (len(drawn.nodes), len(drawn.frames)) == (3, 0)

    assert "relu" in svg(empty)


def test_a_genotype_has_two_cells_with_numbered_nodes() -> None:
    drawn = diagram(PUBLISHED["DARTS_V2"].architecture)
    assert [panel.title for panel in drawn.panels] == ["normal cell", "reduce cell"]
    for panel in drawn.panels:
        circles = [
            node.label for u, node in enumerate(drawn.nodes) if node.junction and u in panel.nodes
        ]
        assert sorted(circles) == ["0", "1", "2", "3"]
        for u in panel.nodes:
            inputs = sum(link.head == u for link in drawn.links)
            # Each node sums two operations, and the output of the cell is made of four nodes.
            expected = (
                2
                if drawn.nodes[u].junction
                else {"c_k": 4, "c_k-1": 0, "c_k-2": 0}.get(drawn.nodes[u].label, 1)
            )
            assert inputs == expected


def test_layers_with_the_same_inputs_share_a_junction() -> None:
    drawn = diagram(
        from_nasbench201("|nor_conv_3x3~0|+|none~0|none~1|+|none~0|nor_conv_1x1~1|none~2|")
    )
    assert not any(node.junction for node in drawn.nodes)
    shared = net(
        "mlp",
        "relu/8 tanh/8 elu/8 elu/9 linear",
        [(0, 1), (0, 2), (1, 3), (2, 3), (1, 4), (2, 4), (3, 5), (4, 5), (5, 6)],
    )
    assert sum(node.junction for node in diagram(shared).nodes) == 1


@given(graphs(), st.lists(st.sampled_from(["", "inserted", "removed"]), min_size=42, max_size=42))
def test_gathered_lines_lead_where_they_led(plain: Diagram, statuses: list[str]) -> None:
    links = [
        replace(link, status=status) for link, status in zip(plain.links, statuses, strict=False)
    ]
    nodes = [replace(node, junction=False) for node in plain.nodes]
    drawn = gather(Diagram(tuple(nodes), tuple(links)))
    assert all(link.tail < link.head for link in drawn.links)
    assert len(drawn.links) <= len(links)
    found = set()
    for link in drawn.links:
        tail = drawn.nodes[link.tail]
        head = drawn.nodes[link.head]
        below = [k for k in drawn.links if k.tail == link.head] if head.junction else [link]
        assert all(k.status == link.status for k in below)
        if not tail.junction:
            found |= {(tail.label, drawn.nodes[k.head].label, k.status) for k in below}

    assert found == {(nodes[k.tail].label, nodes[k.head].label, k.status) for k in links}


@pytest.mark.parametrize("text", ["conv3/64", "conv3/8s2", "res7/64", "max-pool"])
def test_the_words_of_a_layer(text: str) -> None:
    node = diagram(net("cnn", f"{text} fc/8 softmax")).nodes[1]
    words = {
        "conv3/64": "conv3 64",
        "conv3/8s2": "conv3 8 /2",
        "res7/64": "res7 64",
        "max-pool": "max-pool /2",
    }
    assert f"{node.label} {node.detail}".strip() == words[text]
    assert node.kind == ("pool" if text == "max-pool" else "conv")


SIX = Architecture(
    "mlp",
    [Layer("ip"), *[Layer("relu", 8)] * 6, Layer("linear"), Layer("op")],
    list(pairwise(range(9))),
)


@pytest.mark.parametrize("network", [SIX, residual_net((4, 5), width=8)])
def test_each_repeat_is_drawn_once_or_in_full(network: Architecture) -> None:
    folded = diagram(network)
    parts = {frame.part for frame in folded.frames if frame.part}
    some = diagram(network, unfolded=[min(parts)])
    whole = diagram(network, unfolded=parts)
    assert len(folded.nodes) < len(some.nodes) <= len(whole.nodes)
    assert len(whole.nodes) == len(diagram(network, fold=False).nodes)
    assert {frame.part for frame in some.frames if frame.part} == parts
    assert {frame.part for frame in some.frames if frame.part and frame.unfolded} == {min(parts)}


@examples(0.5)
@given(st.sampled_from(["nasbench201", "nasbench101"]).flatmap(members))
def test_a_layer_on_no_way_from_input_to_output_is_pale_and_says_so(
    architecture: Architecture,
) -> None:
    """Whether a layer counts is decided by the function: without dead layers the network is the
    same."""
    canonical = architecture.canonical
    heads = {
        u: [head for tail, head in canonical.edges if tail == u]
        for u in range(len(canonical.layers))
    }
    ends = {layer.op: u for u, layer in enumerate(canonical.layers) if layer.op in ("ip", "op")}

    def leads(u: int, end: int) -> bool:
        return u == end or any(leads(head, end) for head in heads[u])

    drawn = diagram(architecture)
    for box in drawn.nodes:
        if box.layer is None:
            continue

        u = box.layer
        live = u in ends.values() or (leads(u, ends["op"]) and leads(ends["ip"], u))
        assert box.dead is not live
        assert ("reaches no output" in box.note) is (not live and not leads(u, ends["op"]))
        assert live or box.note

    dead = sum(box.dead for box in drawn.nodes)
    picture = svg(architecture)
    assert picture.count('<g class="aa-node aa-dead"') == dead
    assert ("aa-dead" in picture) is (dead > 0)
    lines = [str(line) for line in text(drawn)]
    assert sum(line.endswith(("reaches no output", "gets no input")) for line in lines) == sum(
        box.dead and not box.junction for box in drawn.nodes
    )


def test_a_cell_with_a_dead_branch() -> None:
    cell = from_nasbench201(
        "|nor_conv_3x3~0|+|none~0|none~1|+|skip_connect~0|none~1|nor_conv_1x1~2|"
    )
    boxes = {box.label: box for box in diagram(cell).nodes}
    assert [boxes[name].note for name in ("nor_conv_3x3", "skip_connect", "nor_conv_1x1")] == [
        "reaches no output", "", "gets no input",
    ]  # fmt: skip

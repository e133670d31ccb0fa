"""Outlines: stem, stages of blocks, head, of networks whose blocks are known, and of any network."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.architecture.diagram import diagram
from archive.architecture.graph import Architecture
from archive.architecture.outline.outline import Outline, outline
from archive.architecture.outline.summary import rows as rows_of_table
from tests.support import examples
from tests.support.networks.block_nets import language_net, mobile_net, residual_net
from tests.support.networks.torch_nets import classifiers, folded, networks
from tests.support.strategies import members, relabelled


def kinds(drawn: Outline) -> list[list[str]]:
    return [[block.kind for block in stage.blocks] for stage in drawn.stages]


def rows(drawn: Outline) -> list[tuple[str, str, tuple[tuple[str, object], ...]]]:
    """Everything that an outline says, without the positions of layers."""
    return [
        (section.name, block.kind, tuple(sorted(block.properties.items())))
        for section in drawn.sections
        for block in section.blocks
    ]


def test_a_network_of_bottlenecks_is_stem_stages_and_head():
    drawn = outline(residual_net((2, 3), width=8))
    assert [section.name for section in drawn.sections] == ["stem", "stage 1", "stage 2", "head"]
    assert kinds(drawn) == [["bottleneck"] * 2, ["bottleneck"] * 3]
    assert [stage.channels for stage in drawn.stages] == [32, 64]
    assert [stage.resolution for stage in drawn.stages] == [8, 4]
    first = drawn.stages[1].blocks[0].properties
    assert first["stride"] == 2
    assert first["shortcut"] == "conv 1×1 /2"
    assert first["expansion"] == 0.25
    assert drawn.stages[1].blocks[1].properties["shortcut"] == "identity"
    assert "squeeze_excitation" not in first


def test_inverted_bottlenecks_are_found_with_and_without_a_sum():
    drawn = outline(mobile_net(kernel=5, gated=True))
    assert kinds(drawn) == [["inverted bottleneck"] * 2] * 2
    for block in drawn.blocks:
        assert block.properties["kernel"] == 5
        assert block.properties["groups"] == "depthwise"
        assert block.properties["expansion"] == 6.0
        assert "squeeze_excitation" in block.properties

    assert ["shortcut" in block.properties for block in drawn.blocks] == [False, True] * 2


@pytest.mark.parametrize("products", [False, True])
@pytest.mark.parametrize("kv_heads", [1, 2, 4])
def test_heads_are_read_from_shapes_and_projections(products: bool, kv_heads: int):
    drawn = outline(language_net(heads=4, kv_heads=kv_heads, hidden=32, products=products))
    assert kinds(drawn) == [["transformer"] * 3]
    for block in drawn.blocks:
        read = block.properties
        assert (read["heads"], read["kv_heads"], read["head_size"]) == (4, kv_heads, 4)
        assert read["mlp_ratio"] == 2.0
        assert read["norm_place"] == "pre"


def test_a_norm_behind_the_sum_is_part_of_the_block():
    drawn = outline(language_net(post=True))
    assert kinds(drawn) == [["transformer"] * 3]
    assert {block.properties["norm_place"] for block in drawn.blocks} == {"post"}


def test_rows_name_equal_blocks_once():
    listed = rows_of_table(outline(residual_net((2, 3))))
    assert [(row.section, row.blocks, row.kind) for row in listed] == [
        ("stem", "", "conv 7×7 /2 8 batch relu, max pool 3×3 /2"),
        ("stage 1", "1-2", "2 × bottleneck"),
        ("stage 2", "3-5", "3 × bottleneck"),
        ("head", "", "mean, linear 10"),
    ]
    assert listed[2].details == "/2, 3×3, expansion 0.25, batch norm, relu, shortcut conv 1×1 /2"


def test_a_picture_has_a_box_for_each_module_of_one_block_of_a_kind():
    drawn = diagram(language_net(depth=3))
    assert [box.label for box in drawn.nodes] == [
        "input",
        "embedding",
        "layer norm",
        "attention",
        "add",
        "layer norm",
        "mlp",
        "add",
        "layer norm",
        "linear",
        "output",
    ]
    assert [frame.label for frame in drawn.frames] == ["stage 1, 16 channels", "3 × transformer"]
    assert len(diagram(language_net(depth=3), fold=False).nodes) == 23
    assert len(diagram(language_net(depth=3), layers=True).nodes) > 11


def test_a_folded_network_has_the_outline_of_all_its_layers():
    assert len(outline(folded()).blocks) == 4


@given(st.sampled_from([residual_net(), mobile_net(), language_net()]), st.integers(0, 99))
@examples(5)
def test_an_outline_does_not_depend_on_the_order_of_layers(net: Architecture, seed: int) -> None:
    assert rows(outline(relabelled(net, seed))) == rows(outline(net))


@given(networks(most=14))
@examples(20)
def test_every_layer_of_any_network_is_in_one_module(net: Architecture) -> None:
    check(net)


@pytest.mark.parametrize("name", ["cnn", "mlp", "nasbench101", "nasbench201", "darts"])
@given(data=st.data())
@examples(2)
def test_members_of_every_space_have_an_outline(name: str, data: st.DataObject) -> None:
    check(data.draw(members(name)))


def test_classifiers_have_outlines():
    for net in classifiers():
        check(net)


def check(net: Architecture) -> None:
    drawn = outline(net)
    layers = Counter(u for module in drawn.modules for u in module.layers)
    assert layers == Counter(range(len(drawn.architecture.layers)))
    in_blocks = Counter(u for part in drawn.sections for block in part.blocks for u in block.layers)
    assert in_blocks == layers
    assert all(parent < number for number, of in enumerate(drawn.parents) for parent in of)

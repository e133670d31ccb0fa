"""Translation of cells to the common vocabulary: the paths of operations stay the same."""

from __future__ import annotations

import numpy as np
import pytest

from archive import spaces
from archive.agents.transfer.cell_vocabulary import comparable, translate
from archive.architecture import codec
from archive.architecture.operations import vocabulary

WORDS = vocabulary("nasbench101").common


def test_an_identity_becomes_an_edge():
    cell = codec.from_nasbench201(
        "|nor_conv_3x3~0|+|skip_connect~0|none~1|+|none~0|avg_pool_3x3~1|nor_conv_1x1~2|"
    )
    translated = translate(cell)
    assert [layer.op for layer in translated.layers] == [
        "ip",
        "conv3x3-bn-relu",
        "maxpool3x3",
        "conv1x1-bn-relu",
        "op",
    ]
    at = {layer.op: place for place, layer in enumerate(translated.layers)}
    named = {
        (translated.layers[tail].op, translated.layers[head].op) for tail, head in translated.edges
    }
    assert named == {
        ("ip", "conv3x3-bn-relu"), ("conv3x3-bn-relu", "maxpool3x3"), ("ip", "conv1x1-bn-relu"),
        ("maxpool3x3", "op"), ("conv1x1-bn-relu", "op"),
    }  # fmt: skip
    assert len(at) == 5


def test_identities_in_a_row_and_side_by_side_are_one_edge():
    cell = codec.from_nasbench201(
        "|skip_connect~0|+|none~0|skip_connect~1|+|skip_connect~0|none~1|skip_connect~2|"
    )
    translated = translate(cell)
    assert ([layer.op for layer in translated.layers], translated.edges) == (
        ["ip", "op"],
        ((0, 1),),
    )


@pytest.mark.parametrize("name", ["nasbench101", "nasbench201"])
def test_equal_cells_stay_equal_and_paths_keep_their_operations(name):
    space = spaces.get(name)
    rng = np.random.default_rng(0)
    for _ in range(40):
        cell = space.sample(rng)
        translated = translate(cell)
        assert translated.space == "nasbench101"
        assert translate(cell.canonical).key == translated.key
        assert paths(translated) == {
            tuple(one for one in path if one) for path in paths(cell, vocabulary(name).common)
        }


def paths(cell, words=WORDS):
    """The operations along every path, identities as None."""
    ends = {0: [()]}
    for at, parents in enumerate(cell.parents):
        if at:
            op = cell.layers[at].op
            word = words.get(op, op)
            ends[at] = [(*path, word) for parent in parents for path in ends[parent]]

    return {path[:-1] for path in ends[len(cell.layers) - 1]}


def test_which_spaces_can_be_compared():
    assert comparable("cnn", "cnn")
    assert comparable("nasbench101", "nasbench201")
    assert not comparable("cnn", "mlp")
    assert not comparable("nasbench201", "darts")

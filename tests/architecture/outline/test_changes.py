"""Named changes between two networks: one edit is one change."""

from __future__ import annotations

from typing import Any

import pytest

from archive.architecture.outline.changes import changes, ranges
from archive.architecture.outline.outline import outline
from tests.support.networks.block_nets import language_net, mobile_net, residual_net


def lines(first: Any, second: Any) -> list[str]:
    return [str(change) for change in changes(outline(first), outline(second))]


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"kv_heads": 2}, "kv heads 4 -> 2 in blocks 1-3"),
        ({"heads": 2, "kv_heads": 2}, "heads 4 -> 2 in blocks 1-3"),
        ({"depth": 5}, "depth 3 -> 5"),
        ({"hidden": 32}, "mlp ratio 4 -> 2 in blocks 1-3"),
        ({"activation": "silu"}, "activation gelu -> silu"),
        # Heads of the same size: their number follows from the width, as does the hidden width.
        ({"width": 32, "heads": 8, "kv_heads": 8, "hidden": 128}, "width 16 -> 32"),
        ({"width": 32, "hidden": 128}, "width 16 -> 32"),
    ],
)
def test_one_edit_of_a_transformer_is_one_change(settings: dict[str, Any], line: str):
    assert lines(language_net(), language_net(**settings)) == [line]


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"width": 12}, "width 32/64 -> 48/96"),
        ({"depths": (2, 3)}, "depth 2/2 -> 2/3 in stage 2"),
        ({"kernel": 5}, "kernel 3 -> 5 in blocks 1-4"),
        ({"activation": "gelu"}, "activation relu -> gelu"),
        ({"groups": 4}, "groups added: 4 in blocks 1-4"),
        ({"gated": True}, "squeeze-excitation added: 0.25 in blocks 1-4"),
        (
            {"pooled": True},
            "shortcut conv 1×1 /2 -> avg pool 2×2 /2 + conv 1×1 in block 3",
        ),
        (
            {"deep": True},
            "stem conv 7×7 /2 + max pool 3×3 /2 -> conv 3×3 /2 + conv 3×3 + max pool 3×3 /2",
        ),
    ],
)
def test_one_edit_of_a_residual_network_is_one_change(settings: dict[str, Any], line: str):
    found = lines(residual_net(), residual_net(**settings))
    assert [text.removesuffix(" in stem") for text in found] == [line]


def test_the_other_direction_names_the_same_changes():
    plain = residual_net()
    rich = residual_net(deep=True, pooled=True, gated=True)
    there = changes(outline(plain), outline(rich))
    back = changes(outline(rich), outline(plain))
    assert {change.name for change in there} == {"stem", "shortcut", "squeeze-excitation"}
    for one, other in zip(there, back, strict=True):
        assert (one.name, one.where) == (other.name, other.where)
        assert (one.before, one.after) == (other.after, other.before)


def test_equal_networks_have_no_changes_and_others_always_have_one():
    assert lines(mobile_net(), mobile_net()) == []
    assert lines(mobile_net(), mobile_net(gated=True)) != []
    assert lines(mobile_net(), residual_net()) != []
    assert lines(mobile_net(), language_net()) != []


def test_numbers_in_a_row_are_written_as_a_range():
    assert ranges("block", [1, 2, 3]) == "blocks 1-3"
    assert ranges("stage", [4, 2, 1]) == "stages 1-2, 4"
    assert ranges("stage", [2]) == "stage 2"

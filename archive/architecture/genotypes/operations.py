"""Vocabularies of genotypes: `darts`, and `nasnet` with two operations more.

Liu, Simonyan, Yang: DARTS: Differentiable Architecture Search (2019), section 3.1; names as in its
repository (quark0/darts, `cnn/operations.py`). BANANAS (section 5) searches the same eight
operations, `none` among them. NASNet and AmoebaNet need two more: a separable convolution of side
7, and a pair of a 1x7 and a 7x1 convolution.

An architecture has two cells, so that each operation has two labels: `normal.sep_conv_3x3` and
`reduce.sep_conv_3x3`. Besides operations, each cell has two entries, `normal.c_k-2` and
`normal.c_k-1`, and exits, `normal.sum`; see `archive.architecture.genotypes.codec`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import filter as matching
from typing import Any

from archive.architecture.operations import Operation, define

NONE = "none"
CELLS = ("normal", "reduce")
ENTRIES = ("c_k-2", "c_k-1")
EXIT = "sum"

DARTS_PRIMITIVES = (
    NONE,
    "max_pool_3x3",
    "avg_pool_3x3",
    "skip_connect",
    "sep_conv_3x3",
    "sep_conv_5x5",
    "dil_conv_3x3",
    "dil_conv_5x5",
)
NASNET_PRIMITIVES = (*DARTS_PRIMITIVES, "sep_conv_7x7", "conv_7x1_1x7")

_WINDOWS = {
    "max_pool_3x3": 3,
    "avg_pool_3x3": 3,
    "sep_conv_3x3": 3,
    "sep_conv_5x5": 5,
    "sep_conv_7x7": 7,
    "dil_conv_3x3": 3,
    "dil_conv_5x5": 5,
    "conv_7x1_1x7": 7,
}


def label(cell: str, name: str) -> str:
    """Return the label of an operation, entry or exit in a cell."""
    return f"{cell}.{name}"


def name_of(label: str) -> str:
    """Return the name of an operation, entry or exit from its label in a cell."""
    return label.partition(".")[2]


def _operations(primitives: Sequence[str]) -> Iterator[Operation]:
    for cell in CELLS:
        for entry in ENTRIES:
            yield Operation(label(cell, entry), "entry", part=cell)

        for name in primitives:
            window = _WINDOWS.get(name, 0)
            pools = "pool" in name
            yield Operation(
                label(cell, name), "cell", kernel=window, pools=pools, part=cell, zero=name == NONE
            )

        yield Operation(label(cell, EXIT), "exit", part=cell)


def _tree(primitives: Sequence[str]) -> dict[str, Any]:
    """Return the similarity of operations.

    As in the trees of the NAS-Bench cells, operations of different kinds are at distance 2, and so
    are operations of different cells; convolutions that differ in their window are at distance 0.2,
    separable and dilated ones at 0.6, the two pools at 0.25.
    """
    tree: dict[str, Any] = {}
    for cell in CELLS:
        separable = _leaves(cell, matching(primitives, "sep_conv*"), 0.1)
        dilated = _leaves(cell, matching(primitives, "dil_conv*"), 0.1)
        pools = _leaves(cell, matching(primitives, "*pool*"), 0.125)
        convolutions = {
            label(cell, "separable"): {"weight": 0.2, "children": separable},
            label(cell, "dilated"): {"weight": 0.2, "children": dilated},
            **_leaves(cell, matching(primitives, "conv_*"), 0.3),
        }
        entries = _leaves(cell, ENTRIES, 0.1)
        tree |= {
            label(cell, "convolution"): {"weight": 0.7, "children": convolutions},
            label(cell, "pool"): {"weight": 0.875, "children": pools},
            label(cell, "entry"): {"weight": 0.9, "children": entries},
            label(cell, "skip_connect"): 1.0,
            label(cell, NONE): 1.0,
        }

    return tree


def _leaves(cell: str, names: Sequence[str], length: float) -> dict[str, Any]:
    """Return operations of a cell at the ends of branches of one length."""
    return {label(cell, name): length for name in names}


# A path passes each node of a cell at most once, by one operation: four nodes in DARTS, five in
# NASNet.
DARTS = define(
    "darts",
    _operations(DARTS_PRIMITIVES),
    dead_ends=True,
    tree=_tree(DARTS_PRIMITIVES),
    longest_path=4,
)
NASNET = define(
    "nasnet",
    _operations(NASNET_PRIMITIVES),
    dead_ends=True,
    tree=_tree(NASNET_PRIMITIVES),
    longest_path=5,
)

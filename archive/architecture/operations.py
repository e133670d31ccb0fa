"""Operation vocabularies: the labels of layers and their meaning.

A vocabulary belongs to a space. `cnn` and `mlp` are NASBOT's (appendix A.3: tables 4 and 5);
the cell vocabularies belong to the NAS-Bench tables; the vocabularies of DARTS are in
`archive.architecture.genotypes.operations`. Groups are the layer families that OTMANN's structural
cost distinguishes and that a space's mutations keep together.

Kernels know a network's space by its vocabulary alone, so a vocabulary also carries the similarity
of its operations and their names in other spaces.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from types import MappingProxyType
from typing import Any

from archive.errors import InvalidArchitectureError, UnknownNameError, UsageError
from archive.registry import Registry

INPUT = "ip"
OUTPUT = "op"

MOST_LABEL = 100
"""Longest label of an open vocabulary."""


@dataclass(frozen=True, slots=True)
class Operation:
    """The meaning of one label.

    Attributes:
        name: The label.
        group: `input`, `output`, `decision`, `conv`, `pool`, `fc`, `rectifier`, `sigmoid` or
            `cell`; where an architecture consists of several cells, also `entry` for an input of a
            cell and `exit` for a sum of operations that is part of the cell's output. Entries and
            exits compute nothing.
        has_units: Whether a layer of this operation has a number of units (channels or neurons).
        strides: The strides that a layer of this operation may have.
        flat: Whether its output is a vector rather than an image.
        kernel: Side of the convolution or pooling window; 0 without a window.
        residual: Whether the block adds its input to its output (NASBOT's res3, res5, res7).
        pools: Whether the layer computes the mean or maximum of its window, without weights.
        part: Name of the cell that it belongs to, where an architecture consists of several cells.
        zero: Whether the output is zero whatever the input: the layer is on no path.
    """

    name: str
    group: str
    has_units: bool = False
    strides: tuple[int, ...] = (1,)
    flat: bool = False
    kernel: int = 0
    residual: bool = False
    pools: bool = False
    part: str = ""
    zero: bool = False

    @property
    def trained(self) -> bool:
        """Whether a layer of this operation has weights. False for decision layers, too."""
        return self.has_units or (self.kernel > 0 and not self.pools)


# Compared by identity: objects derived from a vocabulary become invalid when its name is defined
# again.
@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The operations of the architectures of one space.

    Attributes:
        name: Name of the vocabulary, equal to `Architecture.space`.
        operations: Label to operation, input and output included.
        images: Whether layers have image sizes, which must be equal where paths join.
        dead_ends: Whether a layer may be disconnected from the input or the output. True for cells
            of the NAS-Bench tables, which contain networks that are partly or wholly disconnected.
        decisions: Whether every path ends in a decision layer (softmax or linear) before the
            output.
        tree: Similarity of operations: a nested rooted tree whose leaves are operations, with edge
            lengths (`archive.kernels.distances.tree_wasserstein.operation_trees`). None for a tree
            of the groups.
        common: Each operation's name in NAS-Bench-101, None for an identity; cells of several
            spaces are compared under these names. None if cells are compared with cells of their
            own space only.
        longest_path: Most operations on a path from input to output, entries and exits not counted;
            None where there is no such number.
        attributes: Whether layers have attributes beside units and stride, which are then optional.
        arguments: Whether operations tell their inputs apart, so that edges have arguments.
        settings: Names of the attributes by which layers of one operation and size differ, of few
            values each; with them, attributes are properties of the stored layers.
        is_open: Whether any other label is an operation as well, which is only equal to itself.
    """

    name: str
    operations: Mapping[str, Operation]
    images: bool = False
    dead_ends: bool = False
    decisions: bool = False
    tree: Mapping[str, Any] | None = None
    common: Mapping[str, str | None] | None = None
    longest_path: int | None = None
    attributes: bool = False
    arguments: bool = False
    settings: tuple[str, ...] = ()
    is_open: bool = False

    @cached_property
    def digest(self) -> str:
        """Digest of the vocabulary, on which the features of networks may depend."""
        return blake2b(repr(self).encode(), digest_size=16).hexdigest()

    @property
    def cells(self) -> bool:
        """Whether its networks are cells: no operation has units or attributes."""
        operations = self.operations.values()
        return not self.attributes and not any(operation.has_units for operation in operations)

    @property
    def described(self) -> bool:
        """Whether any operation has units, weights or a window, which give depth and size."""
        operations = self.operations.values()
        return self.attributes or any(
            operation.trained or operation.kernel > 0 for operation in operations
        )

    @cached_property
    def zeros(self) -> frozenset[str]:
        """The labels of operations whose output is zero."""
        return frozenset(name for name, operation in self.operations.items() if operation.zero)

    @cached_property
    def parts(self) -> tuple[str, ...]:
        """Names of the cells of an architecture, in the vocabulary's order.

        One empty name if there is one cell.
        """
        parts = dict.fromkeys(operation.part for operation in self.operations.values())
        # Input and output belong to no cell.
        parts.pop("", None)
        return tuple(parts) or ("",)

    def __getitem__(self, label: str) -> Operation:
        """Return the operation of a label.

        Raises:
            UnknownNameError: The label is not in this vocabulary.
        """
        try:
            return self.operations[label]
        except KeyError:
            if self.has(label):
                return Operation(label, "cell")

            raise UnknownNameError(f"operation of {self.name}", label, self.operations) from None

    def has(self, label: str) -> bool:
        """Return whether a label is an operation."""
        if label in self.operations:
            return True

        return self.is_open and 1 <= len(label) <= MOST_LABEL and label.isprintable()

    def check_listed(self) -> None:
        """Check that the operations can be listed.

        Raises:
            InvalidArchitectureError: Any label is an operation.
        """
        if self.is_open:
            raise InvalidArchitectureError(
                f"the operations of the space {self.name} have no list, which this kernel needs: "
                "weisfeiler-lehman, path and edit compare its networks"
            )

    def of_group(self, *groups: str) -> tuple[str, ...]:
        """Return the labels of these groups, in the vocabulary's order."""
        labels = []
        for label, operation in self.operations.items():
            if operation.group in groups:
                labels.append(label)

        return tuple(labels)


_vocabularies: dict[str, Vocabulary] = {}
_elsewhere = Registry(
    "space",
    "archive.spaces",
    {
        "choices": "archive.architecture.choice_operations:CHOICES",
        "darts": "archive.architecture.genotypes.operations:DARTS",
        "decoder": "archive.architecture.decoders.vocabulary:DECODER",
        "graph": "archive.architecture.open_graphs.operation_graphs:GRAPH",
        "nasnet": "archive.architecture.genotypes.operations:NASNET",
        "parameters": "archive.architecture.parameter_operations:PARAMETERS",
        "program": "archive.architecture.parameter_operations:PROGRAM",
        "torch": "archive.architecture.aten.vocabulary:TORCH",
    },
)
"""Spaces whose vocabularies are defined in other modules, which are imported at first use."""


def define(
    name: str,
    operations: Iterable[Operation],
    *,
    common: Mapping[str, str | None] | None = None,
    **settings: Any,
) -> Vocabulary:
    """Register a vocabulary; `ip` and `op` are added. Defining a name again replaces it.

    Args:
        name: Name of the vocabulary.
        operations: In the order of listings.
        common: See `Vocabulary`; it names every operation.
        **settings: Further attributes of the `Vocabulary`.

    Raises:
        UsageError: `common` names an unknown operation or omits one.
    """
    ends = (Operation(INPUT, "input"), Operation(OUTPUT, "output", flat=True))
    table = {operation.name: operation for operation in (*ends, *operations)}
    if common is not None and (wrong := sorted(common.keys() ^ (table.keys() - {INPUT, OUTPUT}))):
        raise UsageError(
            f"common must name every operation of {name} and no other: {wrong[0]!r} "
            "is missing or unknown"
        )

    _vocabularies[name] = Vocabulary(name, MappingProxyType(table), common=common, **settings)
    return _vocabularies[name]


def vocabulary(name: str) -> Vocabulary:
    """Return the vocabulary of a space. If another module or package defines it, that is imported.

    Raises:
        UnknownNameError: No space has this name.
        SettingsError: Another package's space cannot be loaded.
    """
    if name not in _vocabularies and name in _elsewhere.names():
        _elsewhere.load(name)

    try:
        return _vocabularies[name]
    except KeyError:
        raise UnknownNameError(
            "space", name, {*_vocabularies, *_elsewhere.built_in}, stored=True
        ) from None


def _convolutions() -> list[Operation]:
    operations: list[Operation] = []
    for kind, residual in (("conv", False), ("res", True)):
        for kernel in (3, 5, 7):
            name = f"{kind}{kernel}"
            operations.append(
                Operation(name, "conv", True, (1, 2), kernel=kernel, residual=residual)
            )

    return operations


def _window(side: int) -> dict[str, Any]:
    """Return the similarity of the operations with a window."""
    return {"weight": 0.05, "children": {f"conv{side}": 0.05, f"res{side}": 0.05}}


CNN = define(
    "cnn",
    [
        *_convolutions(),
        # NASBOT pools at stride 2 only (appendix B.1), so a pool always halves the image.
        Operation("max-pool", "pool", strides=(2,), kernel=2, pools=True),
        Operation("avg-pool", "pool", strides=(2,), kernel=2, pools=True),
        Operation("fc", "fc", True, flat=True),
        Operation("softmax", "decision", flat=True),
    ],
    images=True,
    decisions=True,
    # Within a group, the lengths give the label penalties of NASBOT's table 4: 0.1 between a
    # convolution and a residual block of one window, 0.2 between windows (0.2 to 0.3 there), 0.25
    # between the pools.
    tree={
        "conv": {
            "weight": 0.9,
            "children": {"window 3": _window(3), "window 5": _window(5), "window 7": _window(7)},
        },
        "pool": {"weight": 0.875, "children": {"max-pool": 0.125, "avg-pool": 0.125}},
        "fc": 1.0,
    },
)

_RECTIFIERS = ("relu", "crelu", "leaky-relu", "softplus", "elu")
_SIGMOIDS = ("logistic", "tanh")


def _activations(group: str, names: Iterable[str]) -> list[Operation]:
    return [Operation(name, group, True, flat=True) for name in names]


MLP = define(
    "mlp",
    [
        *_activations("rectifier", _RECTIFIERS),
        *_activations("sigmoid", _SIGMOIDS),
        Operation("linear", "decision", flat=True),
    ],
    decisions=True,
    # All are activations: in table 5 activations of one group are 0.1 apart, of different groups
    # 0.25, here 0.8 and 2.
    tree={
        "rectifier": {
            "weight": 0.6,
            "children": dict.fromkeys(_RECTIFIERS, 0.4),
        },
        "sigmoid": {"weight": 0.6, "children": dict.fromkeys(_SIGMOIDS, 0.4)},
    },
)

NASBENCH101 = define(
    "nasbench101",
    [
        Operation("conv3x3-bn-relu", "cell", kernel=3),
        Operation("conv1x1-bn-relu", "cell", kernel=1),
        Operation("maxpool3x3", "cell", kernel=3, pools=True),
    ],
    dead_ends=True,
    # The tree of figure 8 of the tree-Wasserstein paper.
    tree={
        "conv": {"weight": 0.9, "children": {"conv1x1-bn-relu": 0.1, "conv3x3-bn-relu": 0.1}},
        "maxpool3x3": 1.0,
    },
    common={name: name for name in ("conv3x3-bn-relu", "conv1x1-bn-relu", "maxpool3x3")},
    # Of seven vertices, input and output included.
    longest_path=5,
)

NASBENCH201 = define(
    "nasbench201",
    [
        Operation("nor_conv_3x3", "cell", kernel=3),
        Operation("nor_conv_1x1", "cell", kernel=1),
        Operation("avg_pool_3x3", "cell", kernel=3, pools=True),
        Operation("skip_connect", "cell"),
    ],
    dead_ends=True,
    # The same tree. A skip is as far from a pool as a convolution is.
    tree={
        "conv": {"weight": 0.9, "children": {"nor_conv_1x1": 0.1, "nor_conv_3x3": 0.1}},
        "avg_pool_3x3": 1.0,
        "skip_connect": 1.0,
    },
    common={
        "nor_conv_3x3": "conv3x3-bn-relu",
        "nor_conv_1x1": "conv1x1-bn-relu",
        "avg_pool_3x3": "maxpool3x3",
        "skip_connect": None,
    },
    # Layers are the edges of a cell of four nodes, of which a path passes at most three.
    longest_path=3,
)

"""The operation vocabularies: which labels a layer may carry, and what each label means.

A vocabulary belongs to a space. `cnn` and `mlp` are those of NASBOT (appendix A.3: tables 4 and 5); the cell
vocabularies are those of the NAS-Bench tables. Groups are the layer families that OTMANN's structural cost
distinguishes and that a space's mutations keep together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from archive.errors import UnknownNameError

INPUT = "ip"
OUTPUT = "op"


@dataclass(frozen=True, slots=True)
class Operation:
    """What one label means.

    Attributes:
        name: The label a layer carries.
        group: `input`, `output`, `decision`, `conv`, `pool`, `fc`, `rectifier`, `sigmoid` or `cell`.
        has_units: Whether a layer of this operation has a number of units (channels or neurons) of its own.
        strides: The strides that a layer of this operation may have.
        flat: Whether its output is a vector rather than an image.
        kernel: Side of the convolution or pooling window, 0 where there is none.
        residual: Whether the block adds its input to its output (NASBOT's res3, res5, res7).
        pools: Whether it takes the mean or the largest of its window, without weights.
    """

    name: str
    group: str
    has_units: bool = False
    strides: tuple[int, ...] = (1,)
    flat: bool = False
    kernel: int = 0
    residual: bool = False
    pools: bool = False

    @property
    def trained(self) -> bool:
        """Whether a layer of this operation has weights, those of decision layers apart."""
        return self.has_units or (self.kernel > 0 and not self.pools)


@dataclass(frozen=True)
class Vocabulary:
    """The operations that architectures of one kind are written in.

    Attributes:
        name: Name of the vocabulary, equal to `Architecture.space`.
        operations: Label to operation, input and output included.
        images: Whether layers have image sizes that must meet.
        dead_ends: Whether a layer may be cut off from the input or the output. True for cells of the NAS-Bench
            tables, which hold networks that are partly or wholly disconnected.
        decisions: Whether every path ends in a decision layer (softmax or linear) before the output.
        passes: Labels that change nothing, dropped by `functional_key`.
    """

    name: str
    operations: Mapping[str, Operation]
    images: bool = False
    dead_ends: bool = False
    decisions: bool = False
    passes: frozenset[str] = frozenset()

    def __getitem__(self, label: str) -> Operation:
        """Return the operation of a label.

        Raises:
            UnknownNameError: The label is not in this vocabulary.
        """
        try:
            return self.operations[label]
        except KeyError:
            raise UnknownNameError(f"operation of {self.name}", label, self.operations) from None

    def of_group(self, *groups: str) -> tuple[str, ...]:
        """Return the labels of these groups, in the vocabulary's order."""
        return tuple(name for name, operation in self.operations.items() if operation.group in groups)


_vocabularies: dict[str, Vocabulary] = {}


def define(
    name: str,
    operations: Iterable[Operation],
    *,
    images: bool = False,
    dead_ends: bool = False,
    decisions: bool = False,
    passes: Iterable[str] = (),
) -> Vocabulary:
    """Register a vocabulary; `ip` and `op` are added. Defining a name again replaces it."""
    ends = (Operation(INPUT, "input"), Operation(OUTPUT, "output", flat=True))
    table = {operation.name: operation for operation in (*ends, *operations)}
    vocabulary = Vocabulary(name, MappingProxyType(table), images, dead_ends, decisions, frozenset(passes))
    _vocabularies[name] = vocabulary
    return vocabulary


def vocabulary(name: str) -> Vocabulary:
    """Return the vocabulary of a space.

    Raises:
        UnknownNameError: No space has this name.
    """
    try:
        return _vocabularies[name]
    except KeyError:
        raise UnknownNameError("space", name, _vocabularies) from None


def _convolutions() -> list[Operation]:
    kinds = (("conv", False), ("res", True))
    return [
        Operation(f"{kind}{kernel}", "conv", True, (1, 2), kernel=kernel, residual=residual)
        for kind, residual in kinds
        for kernel in (3, 5, 7)
    ]


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
)

MLP = define(
    "mlp",
    [
        *(Operation(name, "rectifier", True, flat=True) for name in ("relu", "crelu", "leaky-relu", "softplus", "elu")),
        *(Operation(name, "sigmoid", True, flat=True) for name in ("logistic", "tanh")),
        Operation("linear", "decision", flat=True),
    ],
    decisions=True,
)

NASBENCH101 = define(
    "nasbench101",
    [
        Operation("conv3x3-bn-relu", "cell", kernel=3),
        Operation("conv1x1-bn-relu", "cell", kernel=1),
        Operation("maxpool3x3", "cell", kernel=3, pools=True),
    ],
    dead_ends=True,
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
)

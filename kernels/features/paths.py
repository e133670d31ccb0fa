"""Path encoding of BANANAS: the sequences of operations that lead from the input to the output.

White, Neiswanger, Savani: BANANAS: Bayesian Optimization with Neural Architectures for Neural
Architecture Search, section 4.

| symbol | meaning                                                             | value                          |
|--------|---------------------------------------------------------------------|--------------------------------|
| q      | operations of a cell, input and output not counted                  | 3 (NB101), 8 (DARTS, zero too) |
| n      | most operations on a path                                           | 5 (NB101), 4 (DARTS)           |
| sum    | possible paths, q^0 + ... + q^n, for each entry of each cell        | 364 (NB101), 4 * 4681 = 18724  |
| x_s    | 1 if some path has the label sequence s (or how many paths have it) | by name, `ip→conv3→op`         |

Features are sparse and named, so that the encoding is defined in spaces without a largest network,
and a sequence that no network has costs nothing. `every_path` names all features of a cell space in
a fixed order, for models with a fixed input dimension.

In `darts`, a path stays in one cell,
`ip→normal.c_k-2→normal.sep_conv_3x3→normal.skip_connect→normal.sum→op`; the entry and the sum are
no operations. Paths through an operation `none` count, as in BANANAS' code.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import ClassVar, Literal, NamedTuple, final
from urllib.parse import quote

from archive.architecture.graph import Architecture, Layer
from archive.architecture.networks import take
from archive.architecture.operations import INPUT, OUTPUT, Vocabulary, vocabulary
from archive.errors import InvalidArchitectureError, UsageError
from archive.kernels.features.embedding import EmbeddedDistance
from archive.values import check_flag, check_whole

ARROW = "→"

MOST_SEQUENCES = 10_000
"""Most label sequences of a network.

Networks of 60 layers, late in a search, have about 100 and take 1,000 hops.
"""
MOST_HOPS = 1_000_000
MOST_PATHS = 2**53
"""Largest count up to which float64 represents every integer."""
MOST_NAMES = 100_000
"""Most features that `every_path` names; DARTS has 18,724."""

_Prefix = tuple[int, int, str, dict[int, int]]
"""The paths from the input that begin with the same sequence of labels; they are extended together.

These are the number of labels before the last one, the number of operations on the paths so far,
the last label, and the number of paths to each layer in which they end.
"""


@final
class PathEncoding(EmbeddedDistance):
    """Number of label sequences that lead from input to output in one of two networks only.

    d(x, y) = sum_s |x_s - y_s|: the Hamming distance of binary path encodings, or the L1 distance
    of counts of paths. A pseudo-metric: networks of equal label sequences are at distance 0, and
    layers on no path from input to output do not count. exp(-beta d) is positive semi-definite for
    every beta > 0.

    Preparing walks all prefixes of label sequences once, with the layers that each can end in: a
    few hops a sequence and layer. The number of sequences is exponential in the number of
    consecutive branches, hence the limits. Choose it for cells; in networks of tens of layers
    almost every mutation changes a long path, and `length` or another distance is better. BANANAS,
    section 4 and ablations (3) and (4) of section 5.1.

    In `nasbench201`, layers are the edges of the cell; an operation `none` is an absent layer. In
    `darts` it is a layer that `Architecture.functional` lacks.

    Args:
        counts: Features are numbers of paths instead of 0 and 1.
        length: Longest path that counts, in operations; None for no limit. Long paths are rare and
            carry the least information: this is BANANAS' truncated encoding. On NAS-Bench-101, 3
            keeps 40 of 364 features, on DARTS 292 of 18,724 with 2.
        attributes: Put binned units and strides into the labels
            (`archive.kernels.features.paths.label`). The paper's cells have none; without
            them, networks that differ in units alone are at distance 0.

    Raises:
        UsageError: A setting is out of range.
    """

    name: ClassVar[str] = "path"
    norm: ClassVar[Literal["l1", "l2"]] = "l1"

    def __init__(
        self, counts: bool = False, length: int | None = None, attributes: bool = False
    ) -> None:
        self.counts = check_flag("counts", counts)
        self.attributes = check_flag("attributes", attributes)
        self.length = None if length is None else check_whole("length", length)

    @property
    def components(self) -> tuple[str, ...]:
        """Return `path`."""
        return (self.name,)

    def features(self, architecture: Architecture) -> tuple[Mapping[str, float], ...]:
        """Return the label sequences of all paths, by name.

        Raises:
            InvalidArchitectureError: The number of paths exceeds the limits of this module.
        """
        paths = path_counts(architecture, self.length, self.attributes)
        if not self.counts:
            return (dict.fromkeys(paths, 1.0),)

        if max(paths.values(), default=0) > MOST_PATHS:
            raise InvalidArchitectureError(
                "more than 2^53 paths have the same labels; set counts to false, or a length"
            )

        return ({name: float(count) for name, count in paths.items()},)


def path_counts(
    architecture: Architecture, length: int | None = None, attributes: bool = False
) -> dict[str, int]:
    """Count the paths from input to output by the sequence of their labels.

    Args:
        architecture: The network.
        length: Most operations on a path; None for any number.
        attributes: Whether labels contain units and strides.

    Returns:
        Number of paths by sequence, as in `ip→conv3→conv3→op`; empty where no path leads to the
        output.

    Raises:
        InvalidArchitectureError: More than 10,000 sequences, or more than 1,000,000 hops to find
            them.
    """
    last = len(architecture.layers) - 1
    labels = [label(layer, attributes) for layer in architecture.layers]
    is_operation = operations_counted(architecture)
    remaining = operations_to_output(architecture)
    most = last if length is None else length
    counts: dict[str, int] = {}
    path: list[str] = []
    stack: list[_Prefix] = [(0, 0, labels[0], {0: 1})]
    hops = 0
    while stack:
        depth, operations, text, ends = stack.pop()
        path[depth:] = [text]
        hops += sum(len(architecture.children[u]) for u in ends)
        complete, longer = _extend(
            architecture.children, ends, labels, remaining, most - operations
        )
        if complete:
            counts[ARROW.join([*path, labels[last]])] = complete

        if hops > MOST_HOPS or len(counts) > MOST_SEQUENCES:
            raise InvalidArchitectureError(_too_many(hops, length))

        # Either all layers of a label are operations, or none is.
        for text, next_ends in longer.items():
            done = operations + is_operation[min(next_ends)]
            stack.append((depth + 1, done, text, next_ends))

    return counts


def _extend(
    children: Sequence[Sequence[int]],
    ends: Mapping[int, int],
    labels: Sequence[str],
    remaining: Sequence[int | None],
    most: int,
) -> tuple[int, dict[str, dict[int, int]]]:
    """Extend paths by one hop.

    Args:
        children: Next layers of each layer; the last layer is the output.
        ends: Number of paths to each layer in which they end.
        labels: Label of each layer.
        remaining: Fewest operations from each layer to the output; None without a path to it.
        most: Operations that the paths may still contain.

    Returns:
        The number of extended paths that reach the output. For each label of a next layer, the
        number of the other paths to each layer of that label.
    """
    last = len(labels) - 1
    complete = 0
    longer: dict[str, dict[int, int]] = {}
    for u, count in ends.items():
        for v in children[u]:
            needed = remaining[v]
            if v == last:
                complete += count
            elif needed is not None and needed <= most:
                of_label = longer.setdefault(labels[v], {})
                of_label[v] = of_label.get(v, 0) + count

    return complete, longer


def number_of_paths(operations: int, length: int, ends: int = 1) -> int:
    """Return the number of features, `ends` * sum of operations^i for i = 0 ... length."""
    return ends * sum(int(operations**i) for i in range(length + 1))


def every_path(space: str, length: int | None = None) -> tuple[str, ...]:
    """Name every feature that a path encoding of a space can have, short paths first.

    Args:
        space: Name of a vocabulary.
        length: Most operations on a path; None for the longest of the space
            (`Vocabulary.longest_path`).

    Raises:
        UsageError: The space has no longest path, or the names are more than 100,000.
        UnknownNameError: No vocabulary has this name.
    """
    words = vocabulary(space)
    longest = words.longest_path if length is None else check_whole("length", length)
    if longest is None:
        raise UsageError(f"the space {space} has no longest path: a length is required, got None")

    cells = [_CellLabels.of(words, part) for part in words.parts]
    # The check of the length avoids the powers of a huge one.
    if longest > MOST_NAMES or sum(cell.paths(longest) for cell in cells) > MOST_NAMES:
        raise UsageError(
            f"at most {MOST_NAMES:,} paths can be named, {space} has more of length {longest}"
        )

    names: list[str] = []
    for length in range(longest + 1):
        for cell in cells:
            for entry in cell.entries:
                for steps in product(cell.operations, repeat=length):
                    names.append(ARROW.join([INPUT, *entry, *steps, *cell.exit, OUTPUT]))

    return tuple(names)


class _CellLabels(NamedTuple):
    """Labels of the layers of one cell, in feature names.

    Attributes:
        entries: The beginning of a path: one label for each entry, or no label where the cell has
            no entries.
        operations: The labels of operations.
        exit: The end of a path: one label, or none.
    """

    entries: Sequence[tuple[str, ...]]
    operations: Sequence[str]
    exit: Sequence[str]

    def paths(self, length: int) -> int:
        """Return the number of paths of at most `length` operations."""
        return number_of_paths(len(self.operations), length, len(self.entries))

    @classmethod
    def of(cls, words: Vocabulary, part: str) -> _CellLabels:
        """Return the labels of a part of a vocabulary."""
        entries: list[tuple[str, ...]] = []
        operations: list[str] = []
        exits: list[str] = []
        for operation in words.operations.values():
            if operation.part != part or operation.name in (INPUT, OUTPUT):
                continue

            name = label(Layer(operation.name))
            if operation.group == "entry":
                entries.append((name,))
            elif operation.group == "exit":
                exits.append(name)
            else:
                operations.append(name)

        return cls(entries or [()], operations, exits)


def _too_many(hops: int, length: int | None) -> str:
    limit = (
        f"more than {MOST_HOPS:,} hops"
        if hops > MOST_HOPS
        else f"more than {MOST_SEQUENCES:,} label sequences"
    )
    shorter = "smaller length than" if length is not None else "length, got"
    return f"too many paths from input to output ({limit}); set a {shorter} {length}"


_NO_OPERATION = ("input", "output", "entry", "exit")


def label(layer: Layer, attributes: bool = False) -> str:
    """Return a layer's label in feature names.

    Args:
        layer: The layer.
        attributes: Whether to add the power of two that is nearest to the units, and a stride of 2:
            `conv3:2^6/2`. With exact units almost every name would be unique, and networks would
            share no feature.
    """
    # Labels of user-defined operations may contain the arrows and brackets that structure feature
    # names.
    text = quote(layer.op, safe="")
    if not attributes:
        return text

    units = f":2^{round(math.log2(layer.units))}" if layer.units else ""
    return text + units + (f"/{layer.stride}" if layer.stride != 1 else "")


def operations_counted(architecture: Architecture) -> list[int]:
    """Return 1 for each operation, and 0 for the ends, entries and exits of cells."""
    groups = architecture.groups
    return [int(group not in _NO_OPERATION) for group in groups]


def among(live: Sequence[int], neighbours: Sequence[Sequence[int]]) -> dict[int, list[int]]:
    """Return the live neighbours of each live layer."""
    kept = frozenset(live)
    return {u: list(filter(kept.__contains__, neighbours[u])) for u in live}


def operations_to_output(architecture: Architecture) -> list[int | None]:
    """Return the least number of operations on a path from each layer to the output.

    None for a layer without one.

    The layer itself counts.
    """
    counted = operations_counted(architecture)
    fewest: list[int | None] = [None] * len(counted)
    fewest[-1] = 0
    for u in reversed(range(len(counted) - 1)):
        near = [hops for hops in take(fewest, architecture.children[u]) if hops is not None]
        fewest[u] = counted[u] + min(near) if near else None

    return fewest

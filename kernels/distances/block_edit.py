"""Edit distance of decoders with a block as the unit: blocks inserted, removed or changed.

| symbol  | meaning                                                               | shape  |
|---------|-----------------------------------------------------------------------|--------|
| phi     | features of a block, >= 0, in the table below                         | (f,)   |
| psi     | features of the stream: log2 of the width, a head of its own, log2 of | (4,)   |
|         | the vocabulary, settings of published networks                        |        |
| A       | A_ij = min(A_i-1,j + |phi_i|, A_i,j-1 + |phi'_j|,                     | scalar |
|         | A_i-1,j-1 + |phi_i - phi'_j|), with L1 norms                          |        |

    d(G, G') = A_nn' + |psi - psi'|

| feature of a block           | value                                                            |
|------------------------------|------------------------------------------------------------------|
| kinds of its parts           | lengths of the edges above them in the vocabulary's tree         |
| mass of each part            | parameters / (12 d^2): the mass of a block of GPT-2 is one       |
| heads, kv heads, state,      | 0.1 log2 of each, of active experts 0.1 log2(1 + active): an     |
| experts, active experts      | octave costs 0.1                                                 |
| window                       | 0.1 log2(1 + 1024 / window): 0 for the whole sequence            |
| rotary base                  | 0.02 log2                                                        |
| sandwich norms, parallel     | 0.25 each                                                        |
| what only published networks | 0.1 to 0.2 by a digest: no member of the space has it            |
| have                         |                                                                  |

A block that is missing has the features 0. The costs are therefore distances of one metric space,
and an inserted block costs its mass, its kinds and its settings. Sellers: On the theory and
computation of evolutionary distances (1974): with such costs the distance of sequences is a metric.
The blocks of a decoder are in normal form, and their features tell any two apart, so that networks
at distance 0 are one network.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archive.architecture.decoders.design import NORMS, Block, Design, design_of
from archive.architecture.decoders.parts import DecoderPart
from archive.architecture.decoders.vocabulary import ALL_FEED_FORWARDS, ALL_MIXERS, NAME
from archive.architecture.graph import Architecture
from archive.architecture.layer import Attributes
from archive.kernels.distances.tree_wasserstein.operation_trees import default_tree
from archive.kernels.packing import pack

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

OCTAVE = 0.1
"""Cost of a setting that doubles."""
BASE_OCTAVE = 0.02
"""Cost of a rotary base that doubles: bases differ by powers of ten."""
LONG = 1024
"""Positions beside which the window of sliding attention is short."""
ORDER = 0.25
"""Cost of another place of the norms, and of another order of the parts."""
CLASSICAL = 12
"""Parameters of a block of GPT-2, in squares of the width."""

_SETTINGS = ("heads", "kv_heads", "window", "state", "rotary_base", "experts", "active")


@dataclass(frozen=True, slots=True)
class SequencedBlocks:
    """Blocks of one decoder.

    Attributes:
        key: The architecture's key.
        space: The architecture's space.
        blocks: (n, f) float64, phi.
        stream: (1, 4) float64, psi.
    """

    key: str
    space: str
    blocks: Floats
    stream: Floats


def prepare_blocks(architecture: Architecture) -> SequencedBlocks:
    """Return the features of a decoder's blocks.

    Raises:
        InvalidArchitectureError: The graph is no decoder.
    """
    design = design_of(architecture)
    rows = [block_features(block, design.width) for block in design.blocks]
    return SequencedBlocks(
        architecture.key,
        architecture.space,
        blocks=np.array(rows, np.float64).reshape(len(rows), -1),
        stream=np.array([stream_features(design)]),
    )


def stream_features(design: Design) -> tuple[float, float, float, float]:
    """Return psi."""
    settings = (design.stream.embedding, design.stream.norm, design.stream.residual)
    texts = [values.text for values in (*settings, design.stream.head)]
    return (
        math.log2(design.width),
        float(not design.tied),
        math.log2(design.vocabulary),
        _text_feature("|".join(texts) if any(texts) else ""),
    )


@lru_cache(maxsize=65536)
def block_features(block: Block, width: int) -> tuple[float, ...]:
    """Return phi of a block, (f,), at a width of the stream."""
    values: list[float] = []
    for kinds, part in ((ALL_MIXERS, block.mixer), (ALL_FEED_FORWARDS, block.feed_forward)):
        values += _kind_features(kinds, part)
        values.append(0.0 if part is None else part.params(width) / (CLASSICAL * width**2))
        values += _setting_features(part)

    values.append(ORDER if block.norm == "sandwich" else 0.0)
    values.append(ORDER if block.parallel else 0.0)
    values.append(_text_feature("" if block.norm in NORMS else block.norm))
    return tuple(values)


def _kind_features(kinds: Sequence[str], part: DecoderPart | None) -> list[float]:
    """Return the length of each edge of the tree that is above the part."""
    paths = default_tree(NAME).paths
    edges: dict[str, float] = {}
    for kind in kinds:
        for node in paths[kind]:
            edges[node.name] = node.weight

    above = set() if part is None else {node.name for node in paths[part.op]}
    return [weight if name in above else 0.0 for name, weight in edges.items()]


def _setting_features(part: DecoderPart | None) -> list[float]:
    settings = {} if part is None else part.settings()
    values = []
    for name in _SETTINGS:
        value = settings.get(name)
        values.append(0.0 if value is None else _setting_feature(name, float(value)))

    values.append(_text_feature("" if part is None else _further_text(part)))
    return values


def _further_text(part: DecoderPart) -> str:
    """Return the settings that no member of the space has; empty for its members."""
    further: dict[str, Any] = dict(part.extras)
    for name, value in part.settings().items():
        if name not in _SETTINGS and name != "kernel":
            further[name] = value

    return Attributes(further).text


def _text_feature(text: str) -> float:
    """Return 0 for an empty text, and different numbers between one and two octaves for others."""
    if not text:
        return 0.0

    digest = hashlib.blake2b(text.encode(), digest_size=4).digest()
    return OCTAVE * (1 + int.from_bytes(digest) / 2**32)


def _setting_feature(name: str, value: float) -> float:
    if name == "window":
        return OCTAVE * math.log2(1 + LONG / value)

    if name == "rotary_base":
        return BASE_OCTAVE * math.log2(value)

    # One active expert is more than none.
    return OCTAVE * math.log2(1 + value if name == "active" else value)


class BlockBatch:
    """Concatenated arrays of decoders: the input of the compiled solver."""

    def __init__(self, networks: Sequence[SequencedBlocks]) -> None:
        packed = pack(networks)
        self.blocks = packed["blocks"]
        self.starts = packed["blocks.starts"]
        self.streams = packed["stream"]

    def solve(self, pairs: Integers) -> Floats:
        """Return (1, q) distances."""
        from archive.kernels.distances import block_edit_solver as solver

        out = np.empty((1, len(pairs)))
        row = np.empty(int(np.diff(self.starts).max()) + 1)
        solver.solve_pairs(
            np.ascontiguousarray(pairs), self.blocks, self.starts, self.streams, row, out[0]
        )
        return out

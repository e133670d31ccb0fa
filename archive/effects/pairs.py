"""Index of networks by all traits but one group: pairs that differ there, without comparing all pairs.

| symbol | meaning                                                          | shape  |
|--------|------------------------------------------------------------------|--------|
| C      | code of each trait of n networks; 0 where it is absent           | (n, T) |
| H      | digests of the codes                                             | (n, T) |
| k_g    | sum of the columns of H outside the group g, modulo 2^64         | (n,)   |

Networks of equal k_g are alike in all traits outside g. Sorting by k_g costs n log n for each group.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Digests = NDArray[np.uint64]

Traits = Mapping[str, str]
"""Properties of a network by name, as texts; equal texts are equal values."""

MOST_ALIKE = 64
"""Number of successors with which a network is paired at most, of those alike outside a group."""


@dataclass(frozen=True, eq=False)
class TraitTable:
    """Traits of n networks as codes.

    Attributes:
        names: Names of the T traits.
        values: The texts; a code is a position here, 0 the absent trait.
        codes: (n, T) int64.
    """

    names: list[str]
    values: list[str]
    codes: Integers


@dataclass(frozen=True, eq=False)
class NetworkPairs:
    """Pairs of networks that differ in the traits of one group, each pair once.

    Attributes:
        first: (p,) positions of the first networks, the smaller ones.
        second: (p,) positions of the second networks.
    """

    first: Integers
    second: Integers


def table_of(traits: Sequence[Traits]) -> TraitTable:
    """Return the traits of networks as codes."""
    columns: dict[str, int] = {}
    codes: dict[str, int] = {"": 0}
    cells: list[tuple[int, int, int]] = []
    for row, traits_of_network in enumerate(traits):
        for name, value in traits_of_network.items():
            column = columns.setdefault(name, len(columns))
            cells.append((row, column, codes.setdefault(value, len(codes))))

    table = np.zeros((len(traits), len(columns)), np.int64)
    if cells:
        rows, places, entries = np.array(cells, np.int64).T
        table[rows, places] = entries

    return TraitTable(list(columns), list(codes), table)


def pairs_of(table: TraitTable, groups: Iterable[Collection[str]]) -> NetworkPairs:
    """Return the pairs of networks that differ in the traits of one group.

    Args:
        table: Traits of the networks.
        groups: Names of traits that may differ together; a trait may be in several groups.
    """
    digests = _digests(table)
    firsts: list[Integers] = [np.zeros(0, np.int64)]
    seconds: list[Integers] = [np.zeros(0, np.int64)]
    whole = digests.sum(axis=1, dtype=np.uint64)
    for group in groups:
        columns = [column for column, name in enumerate(table.names) if name in group]
        inside = digests[:, columns].sum(axis=1, dtype=np.uint64)
        first, second = _alike(whole - inside, inside)
        firsts.append(first)
        seconds.append(second)

    ends = np.sort(np.stack([np.concatenate(firsts), np.concatenate(seconds)]), axis=0)
    return NetworkPairs(*np.unique(ends, axis=1))


def _digests(table: TraitTable) -> Digests:
    """Return H. Names take part: a value that moves to another trait is another value."""
    digests = np.zeros(table.codes.shape, np.uint64)
    for column, name in enumerate(table.names):
        codes, inverse = np.unique(table.codes[:, column], return_inverse=True)
        distinct = np.array([_digest(name, table.values[code]) for code in codes], np.uint64)
        digests[:, column] = distinct[inverse]

    return digests


def _digest(name: str, value: str) -> int:
    if not value:
        return 0

    return int.from_bytes(blake2b(f"{name}\0{value}".encode(), digest_size=8).digest(), "little")


def _alike(keys: Digests, inside: Digests) -> tuple[Integers, Integers]:
    """Return the pairs of networks of equal keys that differ inside the group."""
    order = np.lexsort((inside, keys))
    firsts: list[Integers] = [np.zeros(0, np.int64)]
    seconds: list[Integers] = [np.zeros(0, np.int64)]
    for distance in range(1, min(MOST_ALIKE, len(order) - 1) + 1):
        first = order[:-distance]
        second = order[distance:]
        same = keys[first] == keys[second]
        if not same.any():
            break

        pair = same & (inside[first] != inside[second])
        firsts.append(first[pair])
        seconds.append(second[pair])

    return np.concatenate(firsts), np.concatenate(seconds)

"""The members of a listed space with their features, prepared once and cached.

    members ── prepared by a kind of distance ──> features ──> vectors ──> rows of distances
                                                   │    ^
                                                   v    │
                                        a file for kind and members (archive.cache)

Measured memory: the process of a `portfolio` takes 0.35 GB for 20,000 cells of NAS-Bench-101 and
0.43 GB for 50,000, of which 0.15 GB is code. Rows of distances come on top, at 4 bytes a member,
component and known network (`archive.agents.surrogates.distance_cache`).

Vectors are laid out for rows of distances from members and from other networks:

| symbol | meaning                                                                   | shape               |
|--------|---------------------------------------------------------------------------|---------------------|
| M      | members                                                                   | scalar              |
| p      | names of features of a component, or intervals between places on a line   | scalar              |
| y      | the members' vectors of a component, whichever is smaller: transposed and |                     |
|        | dense, or their entries (`archive.kernels.features.l1_blocks.Entries`)    | (p, M) or (entries) |

Terms of a distance are added in the order of the features' names. A feature that no member has is
added at its place in that order, so that a row equals the one that the distance itself computes, to
the last bit.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from itertools import pairwise
from operator import itemgetter
from threading import Lock
from typing import final

import numpy as np
from numpy.typing import NDArray

from archive import cache
from archive.agents.surrogates.base import Array
from archive.architecture.graph import Architecture
from archive.architecture.networks import network_keys, take
from archive.architecture.operations import vocabulary
from archive.architecture.packing import PackedArchitectures
from archive.cache import Arrays
from archive.errors import UsageError
from archive.kernels.distances.tree_wasserstein.measures import cumulate
from archive.kernels.features import l1_blocks
from archive.kernels.features.embedding import Embedded, FeatureDistance
from archive.spaces.base import Space


@final
@dataclass(frozen=True, eq=False)
class Vectors:
    """The vectors of one component of all members.

    Attributes:
        columns: y.
        euclidean: Whether their distance is Euclidean rather than L1.
        names: Names of the features by place, sorted; None for areas on a line.
        places: (p + 1,) float64, ends of the intervals on the line, sorted; None for named
            features.
    """

    columns: Array | l1_blocks.Entries
    euclidean: bool
    names: Sequence[str] | None = None
    places: Array | None = None

    def rows(self, members: Sequence[int]) -> l1_blocks.BlockPart:
        """Return the distances of some members from all of them, (m, M)."""
        y = self.columns
        if isinstance(y, l1_blocks.Entries):
            return l1_blocks.SparseRows(_select(y, members), y, self.euclidean)

        return l1_blocks.DenseRows(np.ascontiguousarray(y[:, members].T), y, self.euclidean)

    def block(self, members: Sequence[int], others: Sequence[int]) -> l1_blocks.BlockPart:
        """Return the distances of some members from others, equal bit for bit to `rows`.

        Only for dense vectors.
        """
        y = self.columns
        assert not isinstance(y, l1_blocks.Entries)
        first = np.ascontiguousarray(y[:, members].T)
        second = np.ascontiguousarray(y[:, others])
        used = first.any(axis=0) | second.any(axis=1)
        return l1_blocks.DenseRows(
            np.ascontiguousarray(first[:, used]), second[used], self.euclidean
        )

    def rows_of(self, features: Sequence[Mapping[str, float]]) -> l1_blocks.BlockPart | None:
        """Return the distances of networks from all members, (m, M).

        Args:
            features: This component of the networks' features.

        Returns:
            None for a measure on a line with a place that no member has, because no interval ends
            at that place.
        """
        if self.names is None:
            return self._rows_on_line(features)

        others = sorted(set().union(*features) - self._place.keys())
        y = self.columns
        if isinstance(y, l1_blocks.Entries):
            positions: dict[str, float] = dict(self._place)
            for number, name in enumerate(others, start=1):
                positions[name] = self._before(name) + number / (len(others) + 1)

            return l1_blocks.SparseRows(
                l1_blocks.entries_of(features, positions),
                y,
                self.euclidean,
            )

        if not others:
            return l1_blocks.DenseRows(l1_blocks.dense(features, self._place), y, self.euclidean)

        position = _positions(sorted([*self.names, *others]))
        widened = np.insert(y, [self._before(name) + 1 for name in others], 0.0, axis=0)
        return l1_blocks.DenseRows(l1_blocks.dense(features, position), widened, self.euclidean)

    @cached_property
    def _place(self) -> dict[str, int]:
        return _positions(self.names or ())

    def _before(self, name: str) -> int:
        """Return the place before a name that no member has; -1 for the first."""
        return bisect_left(self.names or (), name) - 1

    def _rows_on_line(self, features: Sequence[Mapping[str, float]]) -> l1_blocks.BlockPart | None:
        assert self.places is not None and not isinstance(self.columns, l1_blocks.Entries)
        functions = list(map(cumulate, features))
        if not np.isin(_ends(functions), self.places).all():
            return None

        return l1_blocks.DenseRows(
            l1_blocks.areas(functions, self.places), self.columns, euclidean=False
        )


def _select(entries: l1_blocks.Entries, members: Sequence[int] | Integers) -> l1_blocks.Entries:
    members = np.asarray(members)
    sizes = np.diff(entries.starts)[members]
    starts = np.cumsum([0, *sizes], dtype=np.int64)
    # Position of each selected entry among all entries.
    shift = entries.starts[members] - starts[:-1]
    rows = np.arange(starts[-1]) + np.repeat(shift, sizes)
    return l1_blocks.Entries(starts, entries.places[rows], entries.values[rows])


def _ends(functions: Iterable[l1_blocks.Steps]) -> list[float]:
    """Return the distinct places of step functions, sorted."""
    return sorted(set[float]().union(*map(itemgetter(0), functions)))


def _positions(names: Iterable[str]) -> dict[str, int]:
    positions: dict[str, int] = {}
    for name in names:
        positions[name] = len(positions)

    return positions


MOST_LISTED = 50_000
"""Most members that agents rank for a proposal; of larger spaces (NAS-Bench-101 has 423,624) they
rank a sample."""

Integers = NDArray[np.int64]


def members_of(space: Space) -> Sequence[Architecture] | None:
    """Return the networks to rank for every proposal; None for an unlisted space.

    They are all members, or a fixed uniform sample of `MOST_LISTED`.
    """
    members = space.members()
    if members is None or len(members) <= MOST_LISTED:
        return members

    drawn = np.sort(np.random.default_rng(0).choice(len(members), MOST_LISTED, replace=False))
    return members.take(drawn) if isinstance(members, PackedArchitectures) else take(members, drawn)


def not_listed(space: Space) -> UsageError:
    """Return the error of a space that cannot be listed, where its members are asked for."""
    return UsageError(f"candidates 'members' needs a space that can be listed, got {space.name!r}")


def count_listed(space: Space) -> int:
    """Return the number of networks of `members_of`, without building them.

    0 for a space that cannot be listed.
    """
    return min(len(space.members() or ()), MOST_LISTED)


@final
class Listing:
    """The members of a space, with their features by kind of distance. Threads may share one.

    Args:
        members: Networks of one space, of distinct keys.
    """

    def __init__(self, members: Sequence[Architecture]) -> None:
        """Keep the members; features are prepared on first use."""
        self.members = members
        self._features: dict[object, Features] = {}
        self._vectors: dict[object, list[Vectors]] = {}
        self._lock = Lock()

    def __len__(self) -> int:
        """Count the members."""
        return len(self.members)

    @cached_property
    def position(self) -> Mapping[str, int]:
        """Key of a member to its position."""
        return _positions(network_keys(self.members))

    def prepare(self, kind: FeatureDistance, architecture: Architecture) -> Embedded:
        """Return a network as `kind.prepare` does; members are prepared together."""
        row = self.position.get(architecture.key)
        return kind.prepare(architecture) if row is None else self.features(kind).embed(row)

    def features(self, kind: FeatureDistance) -> Features:
        """Return the features of all members."""
        with self._lock:
            identity = _identity(kind)
            features = self._features.get(identity or kind)
            if features is None:
                features = self._features[identity or kind] = self._read_or_prepared(kind, identity)

            return features

    def vectors(self, kind: FeatureDistance) -> list[Vectors]:
        """Return the members' vectors of each component of `kind`, see `features`."""
        features = self.features(kind)
        with self._lock:
            identity = _identity(kind) or kind
            if identity not in self._vectors:
                self._vectors[identity] = list(features.vectors(kind))

            return self._vectors[identity]

    def _read_or_prepared(self, kind: FeatureDistance, identity: str | None) -> Features:
        """Read the features of all members from the cache, or prepare and cache them."""
        if identity is None or len(self.members) < cache.WORTH:
            return Features(self.members, _prepare(kind, self.members))

        keys = blake2b("".join(network_keys(self.members)).encode(), digest_size=16).hexdigest()
        space = self.members[0].space
        # The vocabulary of another package's space may change while the keys stay.
        identity = f"{identity} {space} {vocabulary(space).digest} {keys}"
        arrays = cache.read("features", identity)
        if arrays is None:
            arrays = _prepare(kind, self.members)
            cache.write("features", identity, arrays)

        return Features(self.members, arrays)


@final
@dataclass(frozen=True, eq=False)
class Features:
    """Sparse features of networks, concatenated for each component c.

    Attributes:
        members: The networks, M of them.
        arrays: `c.names`, JSON, and entries in the order in which they were prepared: `c.starts` (M
            + 1,) int64, `c.numbers` int32, the positions of their names, `c.values` float64.
    """

    members: Sequence[Architecture]
    arrays: Arrays

    def embed(self, row: int) -> Embedded:
        """Return the features of one member, as they were prepared."""
        member = self.members[row]
        features = tuple(self._features_of(c, row) for c in range(len(self._names)))
        return Embedded(member.key, member.space, features)

    def vectors(self, kind: FeatureDistance) -> Sequence[Vectors]:
        """Return the vectors of each part."""
        # Without members there are no arrays, hence no parts.
        compared = list(enumerate(kind.comparisons))[: len(self._names)]
        vectors = []
        for c, how in compared:
            vectors.append(self._areas(c) if how == "line" else self._laid_out(c, how == "l2"))

        return vectors

    @cached_property
    def _names(self) -> list[list[str]]:
        names: list[list[str]] = []
        while f"{len(names)}.names" in self.arrays:
            names.append(json.loads(self.arrays[f"{len(names)}.names"].tobytes()))

        return names

    def _features_of(self, c: int, row: int) -> dict[str, float]:
        begin, end = self.arrays[f"{c}.starts"][row : row + 2]
        numbers = self.arrays[f"{c}.numbers"][begin:end].tolist()
        values = self.arrays[f"{c}.values"][begin:end].tolist()
        return dict(zip(map(self._names[c].__getitem__, numbers), values, strict=True))

    def _laid_out(self, c: int, euclidean: bool) -> Vectors:
        """Number the features by name: sums are rounded as in `l1_blocks.of_vectors`."""
        starts = self.arrays[f"{c}.starts"]
        values = self.arrays[f"{c}.values"]
        sizes = np.diff(starts)
        order = sorted(range(len(self._names[c])), key=self._names[c].__getitem__)
        names = take(self._names[c], order)
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        places = rank[self.arrays[f"{c}.numbers"]]
        owners = np.repeat(np.arange(len(sizes)), sizes)
        if l1_blocks.is_dense(len(rank), sizes.tolist()):
            columns = np.zeros((len(rank), len(sizes)))
            columns[places, owners] = values
            return Vectors(columns, euclidean, names)

        by_place = np.lexsort((places, owners))
        entries = l1_blocks.Entries(starts, places[by_place].astype(np.float64), values[by_place])
        return Vectors(entries, euclidean, names)

    def _areas(self, c: int) -> Vectors:
        """Return areas below distribution functions; their L1 distance is Wasserstein's."""
        first, row = self._distinct(c)
        functions = [cumulate(self._features_of(c, member)) for member in first]
        places = np.array(_ends(functions))
        areas = l1_blocks.areas(functions, places)[row]
        return Vectors(np.ascontiguousarray(areas.T), euclidean=False, places=places)

    def _distinct(self, c: int) -> tuple[list[int], NDArray[np.int64]]:
        """Return the first member with each distinct component, and its number by member.

        Cells have few depths and degrees: hundreds of networks share a measure.
        """
        starts = self.arrays[f"{c}.starts"].tolist()
        numbers = self.arrays[f"{c}.numbers"]
        values = self.arrays[f"{c}.values"]
        number_of: dict[bytes, int] = {}
        first: list[int] = []
        row = np.empty(len(self.members), np.int64)
        for index, (begin, end) in enumerate(pairwise(starts)):
            row[index] = number_of.setdefault(
                numbers[begin:end].tobytes() + values[begin:end].tobytes(), len(number_of)
            )
            if row[index] == len(first):
                first.append(index)

        return first, row


def _prepare(kind: FeatureDistance, members: Sequence[Architecture]) -> Arrays:
    components: dict[int, _Component] = {}
    for member in members:
        for c, part in enumerate(kind.prepare(member).features):
            if c not in components:
                components[c] = _Component()

            components[c].append(part)

    arrays: Arrays = {}
    for c, component in components.items():
        arrays[f"{c}.names"] = np.frombuffer(json.dumps(list(component.names)).encode(), np.uint8)
        arrays[f"{c}.starts"] = np.array(component.starts, np.int64)
        arrays[f"{c}.numbers"] = np.array(component.numbers, np.int32)
        arrays[f"{c}.values"] = np.array(component.values, np.float64)

    return arrays


class _Component:
    """Entries of one component of the features of networks; names are numbered in their order."""

    def __init__(self) -> None:
        self.names: dict[str, int] = {}
        self.starts = [0]
        self.numbers: list[int] = []
        self.values: list[float] = []

    def append(self, features: Mapping[str, float]) -> None:
        for name, value in features.items():
            self.numbers.append(self.names.setdefault(name, len(self.names)))
            self.values.append(value)

        self.starts.append(len(self.numbers))


def _identity(kind: FeatureDistance) -> str | None:
    """Return the class and the settings of a distance; equal texts mean equal features.

    None for a class of another package: the cache is renewed when the code of this package changes,
    and with no other. None also for settings that have no such text. Attributes with a leading
    underscore are caches, not settings.
    """
    cls = type(kind)
    settings = {}
    for name, value in sorted(vars(kind).items()):
        if not name.startswith("_"):
            settings[name] = value

    plain = all(map(_is_plain, settings.values()))
    internal = cls.__module__.startswith("archive.")
    return f"{cls.__module__}.{cls.__qualname__} {settings!r}" if internal and plain else None


def _is_plain(value: object) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_plain, value))

    return value is None or isinstance(value, bool | int | float | str)

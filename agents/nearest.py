"""Nearest architectures of an archive, by any kernel, across all studies.

    network ──> index of its space and the kernel ──> the k nearest

Exact up to 20,000 architectures, and beyond where lower bounds allow it; `Similar.certain` tells
(`archive.kernels.search.index`).

The index of one kernel and space is in memory and in a file:

    archive ── architectures not seen before ──> prepared ──> index (archive.kernels.search.index)
                                                                 │  ^
                                                                 v  │
                                   a file for kernel, settings, space and archive (archive.cache)

Preparing takes some hundred microseconds an architecture and is done once. The file is a cache of
numbers and may be deleted at any time. Architectures are never removed from an archive: their
number changes exactly when there are new ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from archive import cache, kernels
from archive.architecture.aten.vocabulary import NAME
from archive.architecture.graph import Architecture
from archive.architecture.operations import vocabulary
from archive.errors import InvalidArchitectureError
from archive.kernels.base import Distance
from archive.kernels.search.index import Index, NearestNeighbours, component_of, index
from archive.queries.networks import (
    CODES_OF_SPACE,
    CREATION,
    NETWORKS_OF_STUDY,
    NUMBER_OF_NETWORKS,
    RESULTS_OF_NETWORKS,
)
from archive.values import require_at_least

if TYPE_CHECKING:
    from archive.api import Archive


@dataclass(frozen=True)
class Neighbour:
    """An architecture near another one.

    Attributes:
        key: Its key.
        distance: How far it is.
        layers: Number of its layers.
        edges: Number of its edges.
        evaluations: Number of its results and of its configurations' results, in all studies.
        configurations: Keys of the configurations from which a model built it.
    """

    key: str
    distance: float
    layers: int
    edges: int
    evaluations: int
    configurations: tuple[str, ...] = ()


@dataclass(frozen=True)
class Similar:
    """The architectures that are nearest to one.

    Attributes:
        neighbours: The nearest first.
        certain: How many of them, from the first on, are sure to be the nearest.
        compared: Architectures that were compared in full.
        among: Architectures that were searched.
        left_out: Architectures of the space on which the kernel is not defined.
    """

    neighbours: tuple[Neighbour, ...]
    certain: int
    compared: int
    among: int
    left_out: int = 0

    @property
    def exact(self) -> bool:
        """Whether no other architecture can be nearer."""
        return self.certain == len(self.neighbours)


def similar(
    archive: Archive,
    architecture: Architecture | str,
    k: int = 10,
    kernel: str | None = None,
    **how: Any,
) -> Similar:
    """Return the nearest architectures of an archive; see `Nearest.similar`.

    The indexes of the last call's archive stay in memory for further calls.
    """
    return _nearest(archive).similar(architecture, k, kernel, **how)


class Nearest:
    """Nearest-neighbour search, with an index for each kernel and space. Threads may share it.

    Args:
        archive: The archive to search.
        notify: Called with a message before a slow step.
    """

    def __init__(self, archive: Archive, notify: Callable[[str], None] | None = None) -> None:
        """Start without an index."""
        self._archive = archive
        self._notify = notify
        self._stores: dict[str, IndexStore] = {}
        self._lock = Lock()

    def similar(
        self,
        architecture: Architecture | str,
        k: int = 10,
        kernel: str | None = None,
        *,
        component: str | None = None,
        study: str | None = None,
        **settings: Any,
    ) -> Similar:
        """Return the architectures of the archive nearest to one, without itself.

        Args:
            architecture: A network, which need not be in the archive, or a key or its prefix. A
                configuration of parameters stands for the network that its model builds.
            k: Most neighbours to return.
            kernel: Name of the kernel; None for the default of the network's space.
            component: Component of the kernel to use; None for the mean of those that are not
                normalised.
            study: Restricts the search to evaluations of this study; None for all of the network's
                space.
            **settings: Settings of the kernel.

        Raises:
            InvalidArchitectureError: The kernel is not defined on the network.
            UnknownNameError: There is no such architecture, kernel, setting or study.
            UsageError: k is less than 1, or the kernel cannot be searched or has no such component.
        """
        require_at_least(1, k=k)
        if kernel is not None:
            # An unknown name or component is an error before the archive is asked.
            component_of(kernels.get(kernel, **settings), component)

        if isinstance(architecture, str):
            architecture = self._archive.architectures.get(
                self._archive.architectures.find(architecture)
            )

        member = architecture
        architecture = self._archive.builds.network_of(member)
        kernel = kernel or default_kernel(architecture.space)
        distance = kernels.get(kernel, **settings)
        part = component_of(distance, component)
        within = None if study is None else self._of_study(study)
        if within is not None and architecture is not member:
            builds = self._archive.builds.of(within)
            within = [build.network for build in builds.values()]

        identity = f"{kernel} {sorted(settings.items())!r} {architecture.space}"
        with self._lock:
            result = self._search(identity, distance, architecture, k, part, within)
            if result is None:
                # A key of the index is missing in the archive, which was emptied or replaced
                # meanwhile.
                self._stores.pop(identity).forget()
                result = self._search(identity, distance, architecture, k, part, within)

        assert result is not None
        return result

    def _search(
        self,
        identity: str,
        distance: Distance[Any],
        architecture: Architecture,
        k: int,
        component: int | None,
        within: list[str] | None,
    ) -> Similar | None:
        store = self._stores.get(identity)
        if store is None:
            store = self._stores[identity] = IndexStore(
                self._archive, identity, distance, architecture.space, self._notify
            )

        store.refresh()
        allowed = store.allowed(architecture.key, within)
        left_out = store.left_out(architecture.key, within)
        if not len(allowed):
            return Similar((), 0, 0, 0, left_out)

        near = store.index.nearest(architecture, k, component, allowed)
        similar = self._describe(store.keys, near, len(allowed))
        return None if similar is None else replace(similar, left_out=left_out)

    def _describe(self, keys: Keys, near: NearestNeighbours, among: int) -> Similar | None:
        names = [keys[index].decode() for index in near.positions]
        rows = {row["key"]: row for row in self._evaluations(names)}
        if len(rows) < len(names):
            return None

        configurations = self._archive.builds.configurations(names)
        of_configurations: Counter[str] = Counter()
        for row in self._evaluations(chain.from_iterable(configurations.values())):
            of_configurations[row["key"]] = int(row["evaluations"])

        neighbours = []
        for key, distance in zip(names, near.distances, strict=True):
            row = rows[key]
            built_from = configurations.get(key, [])
            evaluations = int(row["evaluations"])
            for configuration in built_from:
                evaluations += of_configurations[configuration]

            neighbours.append(
                Neighbour(
                    key,
                    float(distance),
                    int(row["layers"]),
                    int(row["edges"]),
                    evaluations,
                    tuple(built_from),
                )
            )

        return Similar(tuple(neighbours), near.certain, near.compared, among)

    def _evaluations(self, keys: Iterable[str]) -> list[dict[str, Any]]:
        """Return sizes and numbers of results of networks; none is asked for without a key."""
        names = list(keys)
        if not names:
            return []

        return self._archive.connection.read(
            lambda tx: tx.run(RESULTS_OF_NETWORKS, keys=names).data()
        )

    def _of_study(self, name: str) -> list[str]:
        self._archive.studies.get(name)
        return self._archive.connection.read(
            lambda tx: [row["key"] for row in tx.run(NETWORKS_OF_STUDY, study=name)]
        )


@lru_cache(maxsize=1)
def _nearest(archive: Archive) -> Nearest:
    return Nearest(archive)


def default_kernel(space: str) -> str:
    """Return the kernel that compares the networks of a space, unless another one is asked for.

    Networks of `torch` have a thousand layers: OTMANN takes 20 ms a pair of them, features of
    Weisfeiler and Lehman 10 µs. It has no penalties for operations without a list.
    """
    return "weisfeiler-lehman" if space == NAME or vocabulary(space).is_open else "otmann"


Keys = NDArray[np.bytes_]

KIND = "nearest"
"""Kind of the cached files."""

BLOCK = 5000
"""Number of architectures that are read and prepared at a time."""


class IndexStore:
    """The index of one kernel and space, with the keys of its networks in order.

    Args:
        archive: The archive to index.
        identity: Kernel, settings and space as text.
        distance: The kernel.
        space: The space.
        notify: Called with a message before a slow step.

    Attributes:
        index: The index.
        keys: (n,) keys of its networks.
    """

    def __init__(
        self,
        archive: Archive,
        identity: str,
        distance: Distance[Any],
        space: str,
        notify: Callable[[str], None] | None,
    ) -> None:
        """Start empty; `refresh` fills the index."""
        self._archive = archive
        self._identity = identity
        self._notify = notify
        self.distance = distance
        self.space = space
        self.index: Index = index(distance, space)
        self.keys: Keys = np.zeros(0, "S32")
        # Networks that the kernel is not defined on; they are prepared only once.
        self._refused: Keys = np.zeros(0, "S32")
        self._count = -1
        self._saved = 0
        self._place = ""

    def refresh(self) -> None:
        """Add the new architectures of the archive."""
        if self._count < 0:
            created = self._archive.connection.read(
                lambda tx: tx.run(CREATION).single(strict=True)["created"]
            )
            settings = self._archive.connection.settings
            # Each user of a shared server has a separate file.
            source = f"{settings.uri} {self._archive.connection.database} {created}"
            self._place = f"{self._identity} {vocabulary(self.space).digest} {source}"
            self._load()

        count = self._archive.connection.read(
            lambda tx: int(tx.run(NUMBER_OF_NETWORKS).single(strict=True)["architectures"])
        )
        if count != self._count:
            self._add(self._new())
            self._count = count
            self._save()

    def allowed(self, key: str, within: list[str] | None) -> NDArray[np.int64]:
        """Return the positions to search: all but the network's, or a study's."""
        mask = self.keys != key.encode()
        if within is not None:
            mask &= np.isin(self.keys, np.array(within, "S32"))

        return np.flatnonzero(mask)

    def left_out(self, key: str, within: list[str] | None) -> int:
        """Return the number of `allowed` networks on which the kernel is not defined."""
        refused = self._refused[self._refused != key.encode()]
        return (
            len(refused) if within is None else int(np.isin(refused, np.array(within, "S32")).sum())
        )

    def forget(self) -> None:
        """Delete the file."""
        cache.delete(KIND, self._place, self._archive.connection.settings.home)

    def _new(self) -> list[str]:
        stored = self._archive.connection.read(
            lambda tx: [row[0] for row in tx.run(CODES_OF_SPACE, space=self.space)]
        )
        keys = np.array(sorted(stored), "S32")
        seen = np.concatenate([self.keys, self._refused])
        return list(map(bytes.decode, keys[~np.isin(keys, seen)].tolist()))

    def _add(self, keys: list[str]) -> None:
        if len(keys) > BLOCK and self._notify is not None:
            self._notify(
                f"preparing {len(keys)} architectures for {self._identity.split()[0]}, once"
            )

        for begin in range(0, len(keys), BLOCK):
            part = keys[begin : begin + BLOCK]
            networks = self._archive.architectures.get_many(part)
            prepared = []
            refused = []
            for key in part:
                try:
                    prepared.append((key, self.distance.prepare(networks[key])))
                except InvalidArchitectureError:
                    refused.append(key)

            if prepared:
                self.index.add([network for _, network in prepared])

            self.keys = np.concatenate([self.keys, np.array([key for key, _ in prepared], "S32")])
            self._refused = np.concatenate([self._refused, np.array(refused, "S32")])

    @property
    def _storable(self) -> bool:
        """Whether the index may be kept in a file.

        A file is renewed when the code of this package changes, and of no other.
        """
        return self.index.storable and type(self.distance).__module__.startswith("archive.")

    def _load(self) -> None:
        arrays = (
            cache.read(KIND, self._place, self._archive.connection.settings.home)
            if self._storable
            else None
        )
        # A file that is corrupt or of another format is ignored.
        with suppress(ValueError, KeyError):
            if arrays is not None:
                keys = arrays.pop("keys")
                refused = arrays.pop("refused")
                self.index = index(self.distance, self.space, arrays)
                self.keys = keys
                self._refused = refused
                self._saved = len(keys) + len(refused)

    def _save(self) -> None:
        count = len(self.keys) + len(self._refused)
        if not self._storable or count - self._saved < cache.WORTH:
            return

        arrays = {"keys": self.keys, "refused": self._refused, **self.index.arrays}
        cache.write(KIND, self._place, arrays, self._archive.connection.settings.home)
        self._saved = count

"""Nearest architectures of an archive, by any kernel, across all studies.

    network ──> index of its space and the kernel (`archive.agents.nearest.index_store`) ──> the k
    nearest

Exact up to 20,000 architectures, and beyond where lower bounds allow it; `Similar.certain` tells
(`archive.kernels.search.index`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Any

from archive import kernels
from archive.agents.nearest.index_store import IndexStore, Keys
from archive.architecture.graph import Architecture
from archive.argument_checks import require_at_least
from archive.kernels.base import Distance
from archive.kernels.search.index import NearestNeighbours, component_of

if TYPE_CHECKING:
    from archive.api import Archive

OF_STUDY = """
MATCH (s:Study {name: $study})-[:PROPOSED]->(p:Proposal)
WHERE p.state IN ['COMPLETE', 'PRUNED']
RETURN DISTINCT p.architecture AS key
"""

ABOUT = """
UNWIND $keys AS key
MATCH (a:Architecture {key: key})
OPTIONAL MATCH (a)<-[:OF]-(e:Evaluation)
RETURN key, a.layers AS layers, a.edges AS edges, count(e) AS evaluations
"""


@dataclass(frozen=True)
class Neighbour:
    """One architecture near another.

    Attributes:
        key: Its key.
        distance: Distance from the other one.
        layers: Number of its layers.
        edges: Number of its edges.
        evaluations: Number of its evaluations, in all studies.
    """

    key: str
    distance: float
    layers: int
    edges: int
    evaluations: int


@dataclass(frozen=True)
class Similar:
    """The architectures nearest to one.

    Attributes:
        neighbours: Nearest first. Equal distances are in the order of the index; which of them are
            the last ones depends on it.
        certain: Number of leading neighbours that are proven nearest: all, unless the search was
            cut off.
        compared: Architectures compared in full; a lower bound excluded the others.
        among: Number of architectures searched.
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
    kernel: str = "otmann",
    **how: Any,
) -> Similar:
    """Return the architectures of an archive that are nearest to one; see `Nearest.similar` for the
    arguments.

    The indexes of one archive are kept for further calls: those of the last call's.
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
        kernel: str = "otmann",
        *,
        component: str | None = None,
        study: str | None = None,
        **settings: Any,
    ) -> Similar:
        """Return the architectures of the archive nearest to one, without itself.

        Args:
            architecture: A network, which need not be in the archive, or a key or its prefix.
            k: Most neighbours to return.
            kernel: Name of the kernel.
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
        distance = kernels.get(kernel, **settings)
        chosen = component_of(distance, component)
        if isinstance(architecture, str):
            architecture = self._archive.architectures.get(
                self._archive.architectures.find(architecture)
            )

        within = None if study is None else self._of_study(study)
        identity = f"{kernel} {sorted(settings.items())!r} {architecture.space}"
        with self._lock:
            result = self._search(identity, distance, architecture, k, chosen, within)
            if result is None:
                # A key of the index is missing in the archive, which was emptied or replaced
                # meanwhile.
                self._stores.pop(identity).forget()
                result = self._search(identity, distance, architecture, k, chosen, within)

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
        found = self._described(store.keys, near, len(allowed))
        return None if found is None else replace(found, left_out=left_out)

    def _described(self, keys: Keys, near: NearestNeighbours, among: int) -> Similar | None:
        names = [keys[at].decode() for at in near.positions]
        rows = self._archive.connection.read(
            lambda tx: {row["key"]: row for row in tx.run(ABOUT, keys=names)}
        )
        if len(rows) < len(names):
            return None

        neighbours = [
            Neighbour(
                key,
                float(distance),
                *(int(rows[key][name]) for name in ("layers", "edges", "evaluations")),
            )
            for key, distance in zip(names, near.distances, strict=True)
        ]
        return Similar(tuple(neighbours), near.certain, near.compared, among)

    def _of_study(self, name: str) -> list[str]:
        self._archive.studies.get(name)
        return self._archive.connection.read(
            lambda tx: [row["key"] for row in tx.run(OF_STUDY, study=name)]
        )


@lru_cache(maxsize=1)
def _nearest(archive: Archive) -> Nearest:
    return Nearest(archive)

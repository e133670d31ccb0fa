"""The import of a zoo: networks that the archive lacks are built and stored with their results.

An evaluation's id has its task, protocol and model. A network whose evaluations are stored is not
built again, so that the same import again, after any end of the first one, does what is left.
Networks that could not come in stand in a file, a line each, and are tried again where the package
or this one has another version, or on request.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from archive import __version__, files
from archive.errors import SettingsError
from archive.exchange.importers.models import add_model
from archive.store.evaluations import Evaluations
from archive.trainer.zoo import timm_zoo, tv_zoo
from archive.trainer.zoo.building import PACKAGES, ZooNetwork
from archive.trainer.zoo.processes import BuildLimits, build_all
from archive.trainer.zoo.published import PublishedNetwork

if TYPE_CHECKING:
    from archive.api import Archive

ZOOS: Mapping[str, ModuleType] = {timm_zoo.NAME: timm_zoo, tv_zoo.NAME: tv_zoo}
"""The zoos: modules with `published` and `build`."""

OTHER_SIZE = "measured with another number of parameters than the network has"
"""Reason of results that are of another network, as with more classes."""


@dataclass(frozen=True)
class LeftOut:
    """A network, or some of its results, that could not come in.

    Attributes:
        name: Name of the architecture.
        results: Number of its results that are left out.
        reason: Why.
        conditions: Versions of the package and of this one, and the limits of the processes.
    """

    name: str
    results: int
    reason: str
    conditions: str


@dataclass(frozen=True)
class ZooProgress:
    """Progress of an import.

    Attributes:
        stored: Networks that are in the archive.
        left_out: Networks that are not, and cannot come in.
        total: All networks.
    """

    stored: int
    left_out: int
    total: int


@dataclass(frozen=True)
class ZooContent:
    """What the archive has after an import.

    Attributes:
        names: Number of names of networks that are in.
        architectures: Number of different networks that they name.
        evaluations: Number of their results.
        left_out: What is not in.
        file: File with these.
    """

    names: int
    architectures: int
    evaluations: int
    left_out: list[LeftOut]
    file: Path


def check_installed(zoo: str) -> None:
    """Check that a zoo's package is installed.

    Raises:
        SettingsError: It is not.
    """
    try:
        PACKAGES[zoo]()
    except ImportError:
        raise SettingsError(f"{zoo} is not installed: pip install 'nas-archive[zoo]'") from None


def import_zoo(
    archive: Archive,
    zoo: str,
    networks: Sequence[PublishedNetwork],
    limits: BuildLimits,
    *,
    again: bool = False,
    progress: Callable[[ZooProgress], None] = lambda progress: None,
) -> ZooContent:
    """Store networks of a zoo with their results, and return what the archive has.

    Args:
        archive: The archive.
        zoo: Name of the zoo.
        networks: Its networks.
        limits: Limits of the processes that build them.
        again: Whether to try networks again that could not come in.
        progress: Called after each network.

    Raises:
        UsageError: A task is on record with the other direction.
        TrainingError: No process can be started.
    """
    conditions = (
        f"{zoo} {PACKAGES[zoo]()}, archive {__version__}, "
        f"{limits.seconds:g} s, {limits.memory_bytes} bytes"
    )
    journal = _Journal(Path(archive.connection.settings.home, "zoo", f"{zoo}.jsonl"))
    stored = _Stored(archive)
    left_out: list[LeftOut] = []

    def leave_out(network: PublishedNetwork, results: int, reason: str) -> None:
        left = LeftOut(network.name, results, reason, conditions)
        left_out.append(left)
        journal.add(left)

    def report() -> None:
        missing = sum(left.name not in stored.names for left in left_out)
        progress(ZooProgress(len(stored.names), missing, len(networks)))

    waiting: dict[str, PublishedNetwork] = {}
    present = stored.find(networks)
    for network in networks:
        former = journal.lines.get(network.name)
        if (node := present.get(network.name)) is not None:
            if unsuited := stored.add_results(network, node):
                leave_out(network, unsuited, OTHER_SIZE)
        elif former is not None and former.conditions == conditions and not again:
            left_out.append(former)
        else:
            waiting[network.reference] = network

    report()
    with closing(build_all(ZOOS[zoo].build, waiting, limits)) as outcomes:
        for built in outcomes:
            network = waiting[built.reference]
            if built.network is None:
                leave_out(network, len(network.results), built.reason)
            elif unsuited := stored.add(network, built.network):
                leave_out(network, unsuited, OTHER_SIZE)

            report()

    journal.replace({network.name for network in networks}, left_out)
    return ZooContent(
        len(stored.names), len(stored.keys), stored.evaluations, left_out, journal.path
    )


@dataclass(frozen=True)
class _Node:
    """A stored network, as the results of its names need it."""

    key: str
    params: int | None
    family: str


class _Stored:
    """Networks of a zoo in the archive, and the writer of further ones.

    Attributes:
        names: Names of the networks.
        keys: Keys of their architectures.
        evaluations: Number of their results.
    """

    def __init__(self, archive: Archive) -> None:
        self.names: set[str] = set()
        self.keys: set[str] = set()
        self.evaluations = 0
        self._archive = archive
        self._writer = Evaluations(archive.connection, archive.architectures)
        self._ids: set[str] = set()

    def find(self, networks: Iterable[PublishedNetwork]) -> dict[str, _Node]:
        """Return the networks that have a result in the archive, by name."""
        names = {}
        for network in networks:
            names.update({result.id: network.name for result in network.results})

        nodes = {}
        rows = self._writer.networks_of(names)
        for id_, row in rows.items():
            nodes[names[id_]] = _Node(row["key"], row["params"], row["family"] or "")

        self._ids = set(rows)
        return nodes

    def add(self, network: PublishedNetwork, built: ZooNetwork) -> int:
        """Store a network with its results; return the number of results of another network."""
        node = _Node(built.architecture.key, built.params, built.family)
        if any(result.suits(node.params) for result in network.results):
            add_model(self._archive, built.architecture, params=built.params, flops=built.flops)

        return self.add_results(network, node)

    def add_results(self, network: PublishedNetwork, node: _Node) -> int:
        """Store the results of a stored network that are missing.

        Returns:
            Number of results that are left out, because their model had other parameters.
        """
        suited = [result for result in network.results if result.suits(node.params)]
        rows = []
        for result in suited:
            if result.id not in self._ids:
                rows.append((result.id, node.key, result.place, result.of_family(node.family)))

        if rows:
            self._writer.add_many([task for _, _, task, _ in rows], rows)

        if suited:
            self.names.add(network.name)
            self.keys.add(node.key)
            self.evaluations += len(suited)

        return len(network.results) - len(suited)


class _Journal:
    """The file of networks that could not come in, a line of JSON each.

    Attributes:
        path: The file.
        lines: Its lines by the name of the network.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: dict[str, LeftOut] = {}
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return

        for line in text.splitlines():
            # An interrupted import may have written a part of a line.
            with suppress(ValueError, TypeError):
                left = LeftOut(**json.loads(line))
                self.lines[left.name] = left

    def add(self, left: LeftOut) -> None:
        """Append a line."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(left)) + "\n")

    def replace(self, names: Collection[str], left_out: Iterable[LeftOut]) -> None:
        """Replace the lines of some networks."""
        lines = [left for name, left in self.lines.items() if name not in names]
        lines += left_out
        text = "".join(json.dumps(asdict(left)) + "\n" for left in lines)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        files.write_atomically(self.path, text)

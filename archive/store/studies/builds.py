"""Networks that models build of configurations of parameters.

    (configuration:Architecture) -[:BUILDS {model, version, reads, state, built}]-> (network:Architecture)

Several configurations may build one network. Two of them are one training, by `twins`, if

- the same version of the model built them, with equal weights and attributes of the modules from
  one seed (`state`), and
- they differ in parameters alone that the model reads (`reads`).

A search asks further that the training on record has not read these parameters itself
(`archive.queue.reuse`). What is unknown is different.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from archive.architecture import compact
from archive.architecture.graph import Architecture
from archive.architecture.parameter_operations import CONFIGURATIONS, NAME, parameters_of
from archive.database.statements import lock
from archive.store import architectures as networks

if TYPE_CHECKING:
    from neo4j import ManagedTransaction

    from archive.database.connection import Connection
    from archive.store.records import Proposal

BUILD = """
UNWIND $rows AS row
MATCH (c:Architecture {key: row.configuration})
USING INDEX SEEK c:Architecture(key)
MATCH (n:Architecture {key: row.network})
USING INDEX SEEK n:Architecture(key)
MERGE (c)-[b:BUILDS {model: row.model}]->(n)
SET b.version = row.version, b.reads = row.reads, b.state = row.state, b.built = timestamp()
"""

OF_CONFIGURATIONS = """
UNWIND $keys AS key
MATCH (c:Architecture {key: key})
MATCH (c)-[b:BUILDS]->(n:Architecture)
RETURN key, n.key AS network, b.model AS model, b.version AS version, b.built AS built
ORDER BY key, built DESC, network
"""

OF_NETWORKS = """
UNWIND $keys AS key
MATCH (n:Architecture {key: key})
MATCH (n)<-[b:BUILDS]-(c:Architecture)
RETURN key, c.key AS configuration, b.model AS model, b.built AS built
ORDER BY key, configuration, built DESC
"""

TWINS = """
UNWIND $keys AS key
MATCH (c:Architecture {key: key})
MATCH (c)-[b:BUILDS]->(n:Architecture)
MATCH (n)<-[other:BUILDS]-(twin:Architecture)
WHERE twin.key <> key AND other.model = b.model AND other.version = b.version AND other.state = b.state
RETURN key, twin.key AS twin, twin.functional_key AS functional_key, c.code AS code, twin.code AS twin_code,
       b.reads AS reads, other.reads AS twin_reads
ORDER BY key, twin
"""

OPEN = """
UNWIND $keys AS key
MATCH (a:Architecture {key: key})
USING INDEX SEEK a:Architecture(key)
MATCH (a)<-[:OF]-(p)
WHERE p.study = $study AND p.state IN ['WAITING', 'RUNNING']
RETURN DISTINCT key
"""


# Workers with tasks are trainers: a result that is told tells nothing of its reads.
TRAINED_BEFORE = """
UNWIND $keys AS key
MATCH (a:Architecture {key: key})
USING INDEX SEEK a:Architecture(key)
MATCH (a)<-[:OF]-(p)
WHERE p.study = $study AND p.state = 'RUNNING' AND p.lease_until >= timestamp()
  AND (p.started < $started OR (p.started = $started AND p.number < $number))
MATCH (w:Worker {id: p.worker})
WHERE w.tasks IS NOT NULL
RETURN count(p) AS running
"""


@dataclass(frozen=True)
class Build:
    """A network that a model builds of a configuration.

    Attributes:
        configuration: The configuration.
        network: The network, in the space `torch` or `graph`.
        model: Name of the model in spaces.
        version: Version of the model's package, or digest of its file; None where it is unknown.
        reads: Names of the parameters and groups that the model reads; None where it may read any.
        state: Digest of the module from one seed; None where it is unknown.
    """

    configuration: Architecture
    network: Architecture
    model: str
    version: str | None
    reads: Sequence[str] | None
    state: str | None


@dataclass(frozen=True)
class BuildRow:
    """A stored build.

    Attributes:
        configuration: Key of the configuration.
        network: Key of the network.
        model: Name of the model in spaces.
        version: Version of the model's package, or digest of its file; None where it is unknown.
        built: Time of the last build.
    """

    configuration: str
    network: str
    model: str
    version: str | None
    built: int


@dataclass(frozen=True)
class Twin:
    """A configuration that builds the network of another one, and trains alike.

    Attributes:
        key: Key of the configuration.
        functional_key: Its functional key.
        differences: Names of the parameters in which the two differ.
    """

    key: str
    functional_key: str
    differences: frozenset[str]


class ConfigurationBuilder(Protocol):
    """Builds the networks of configurations, where this machine has the model."""

    def builds(self, architectures: Sequence[Architecture]) -> list[Build | None]:
        """Return the network of each configuration; None where it is unknown."""


class Builds:
    """Writer and reader of the networks of configurations."""

    def __init__(self, connection: Connection, architectures: networks.Architectures) -> None:
        """Read and write through this connection; `architectures` reads networks."""
        self._connection = connection
        self._architectures = architectures

    def add(self, builds: Iterable[Build]) -> None:
        """Store builds with their configurations and networks; of a repeated one, the last."""
        listed = list(builds)
        stored = []
        for build in listed:
            stored += [build.configuration, build.network]

        if listed:
            networks.prepare(stored)
            self._connection.write(partial(_store, builds=listed))

    def of(self, keys: Iterable[str], model: str | None = None) -> dict[str, BuildRow]:
        """Return the last build of each configuration that has one, by key.

        Args:
            keys: Keys of any architectures.
            model: Name of the model in spaces; None for any.
        """
        latest: dict[str, BuildRow] = {}
        for row in self._rows(OF_CONFIGURATIONS, keys):
            if model in (None, row["model"]) and row["key"] not in latest:
                latest[row["key"]] = BuildRow(
                    row["key"], row["network"], row["model"], row["version"], row["built"]
                )

        return latest

    def network_of(self, architecture: Architecture) -> Architecture:
        """Return the network of a configuration that has one, or else the architecture itself."""
        return self.networks_of([architecture])[0]

    def networks_of(self, architectures: Sequence[Architecture]) -> list[Architecture]:
        """Return what is drawn and compared in place of some architectures.

        These are the networks of configurations, if each of the architectures is a configuration
        with a network: a configuration and a network have nothing in common.
        """
        if any(architecture.space not in CONFIGURATIONS for architecture in architectures):
            return list(architectures)

        rows = self.of(architecture.key for architecture in architectures)
        keys = []
        for architecture in architectures:
            if architecture.key not in rows:
                return list(architectures)

            keys.append(rows[architecture.key].network)

        read = self._architectures.get_many(keys)
        return [read[key] for key in keys]

    def configurations(self, keys: Iterable[str]) -> dict[str, list[str]]:
        """Return the keys of the configurations that build each network, by the network's key."""
        configurations: dict[str, dict[str, None]] = {}
        for row in self._rows(OF_NETWORKS, keys):
            configurations.setdefault(row["key"], {})[row["configuration"]] = None

        return {key: list(built) for key, built in configurations.items()}

    def twins(self, keys: Iterable[str]) -> dict[str, list[Twin]]:
        """Return the configurations that are one training with each of these, as the module says.

        Args:
            keys: Keys of any architectures; those without a twin are left out.
        """
        twins: dict[str, list[Twin]] = {}
        for row in self._rows(TWINS, keys):
            if row["reads"] is None or row["twin_reads"] is None:
                continue

            differences = _differences(row["code"], row["twin_code"])
            if differences <= {*row["reads"], *row["twin_reads"]}:
                twin = Twin(row["twin"], row["functional_key"], differences)
                twins.setdefault(row["key"], []).append(twin)

        return twins

    def open(self, study: str, keys: Iterable[str]) -> set[str]:
        """Return the given architectures that wait or run in a study."""
        requested = sorted(set(keys))
        if not requested:
            return set()

        rows = self._connection.read(lambda tx: tx.run(OPEN, keys=requested, study=study).data())
        return {row["key"] for row in rows}

    def is_in_training(self, proposal: Proposal) -> bool:
        """Return whether a trainer has begun before with a twin of a running proposal."""
        twins = self.twins([proposal.architecture_key]).get(proposal.architecture_key, [])
        asked = {
            "keys": [twin.key for twin in twins],
            "study": proposal.study,
            "started": proposal.started,
            "number": proposal.number,
        }
        if not twins:
            return False

        row = self._connection.read(lambda tx: tx.run(TRAINED_BEFORE, asked).single(strict=True))
        return bool(row["running"])

    def _rows(self, query: str, keys: Iterable[str]) -> list[dict[str, Any]]:
        requested = sorted(set(keys))
        if not requested:
            return []

        return self._connection.read(lambda tx: tx.run(query, keys=requested).data())


def _store(tx: ManagedTransaction, builds: Sequence[Build]) -> None:
    graphs = []
    rows = []
    for build in builds:
        graphs += [build.configuration, build.network]
        rows.append(
            {
                "configuration": build.configuration.key,
                "network": build.network.key,
                "model": build.model,
                "version": build.version,
                # Without an element, a list has no type that both servers agree on.
                "reads": list(build.reads or ()) or None,
                "state": build.state,
            }
        )

    networks.store(tx, graphs)
    lock(tx, "Architecture", {build.configuration.key for build in builds})
    tx.run(BUILD, rows=rows).consume()


def _differences(code: str, other_code: str) -> frozenset[str]:
    """Return the names of the parameters in which two configurations differ, by their texts."""
    first = _values(code)
    second = _values(other_code)
    different = set(first) ^ set(second)
    for name in set(first) & set(second):
        if first[name] != second[name]:
            different.add(name)

    return frozenset(different)


def _values(code: str) -> Mapping[str, str]:
    """Return the JSON text of each parameter and group of a configuration."""
    parameters = parameters_of(compact.decode("", NAME, "", code))
    return {name: json.dumps(value, sort_keys=True) for name, value in parameters.items()}

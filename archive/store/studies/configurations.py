"""Configurations of proposals: the values of named decisions and hyperparameters, by name.

Admission stores the values of named decisions as JSON text in their order (`configuration`), and
every value as a property `parameter_<name>`, so that a Cypher query can compare it:

    MATCH (p:Proposal {study: 'mine'}) WHERE p.parameter_lr < 0.01 RETURN p.number, p.parameter_lr

Proposals of an earlier release lack these properties. Their networks are then read and named; a
study without named decisions costs no statement.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from archive.architecture.layer import BESIDE
from archive.database.statements import rewritten
from archive.errors import ArchiveError
from archive.store.properties import from_json, proposal_id, to_json
from archive.store.studies.rows import ALL, PARAMETER, SOME, read_rows
from archive.values import LARGEST, is_number

if TYPE_CHECKING:
    from neo4j import ManagedTransaction

    from archive.architecture.graph import Architecture
    from archive.database.connection import Connection
    from archive.parameters.parameter_space import ParameterSpace
    from archive.store.records import Study
    from archive.store.snapshots import ProposalView

Configuration = dict[str, Any]

UNNAMED = frozenset(
    ["cnn", "darts", "decoder", "graph", "mlp", "nasbench101", "nasbench201", "nasnet", "torch"]
)
"""Spaces of this package whose networks have no named decisions; known without numpy."""

_NO_VIEWS: Mapping[int, ProposalView] = MappingProxyType({})

SPACE = """
MATCH (s:Study {name: $study})
USING INDEX SEEK s:Study(name)
MATCH (s)-[:IN]->(space:Space)
RETURN space.name AS name, space.config AS config
"""

SUPPLY = """
UNWIND $rows AS row
MATCH (p:Proposal {id: row.id})
USING INDEX SEEK p:Proposal(id)
SET p += row.properties
"""

REREAD = f"""
MATCH (s:Study {{name: $study}})
USING INDEX SEEK s:Study(name)
SET {rewritten("s")}
"""

ROWS = 1000
"""Proposals of one statement."""

# The oldest study names the decisions.
OF_NETWORK = """
MATCH (a:Architecture {key: $key})
USING INDEX SEEK a:Architecture(key)
MATCH (a)<-[:OF]-(p:Proposal)
MATCH (s:Study {name: p.study})-[:IN]->(space:Space)
RETURN space.name AS name, space.config AS config ORDER BY s.created, s.name LIMIT 1
"""


def has_names(space: str) -> bool:
    """Return whether the networks of a space have named decisions; False for an unknown space."""
    if space in UNNAMED:
        return False

    from archive.spaces import named_values

    return named_values.has_names(space)


def merge_values(named: Mapping[str, Any], hyperparameters: Mapping[str, Any]) -> Configuration:
    """Return the configuration of a proposal; a decision comes before a setting of its name."""
    return {**named, **hyperparameters, **named}


def configuration_properties(
    named: Mapping[str, Any], hyperparameters: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the properties of a proposal with these values."""
    properties: dict[str, Any] = {}
    if named:
        properties["configuration"] = json.dumps(named)

    for name, value in merge_values(named, hyperparameters).items():
        properties[PARAMETER + name] = _property(value)

    return properties


def named_within(
    tx: ManagedTransaction, study: str, networks: Sequence[Architecture]
) -> list[Configuration]:
    """Return the named values of networks of a study within a transaction.

    Networks without named decisions cost no statement.
    """
    if not any(has_names(network.space) for network in networks):
        return [{} for _ in networks]

    from archive.spaces.named_values import named_values, values_of_graph

    record = tx.run(SPACE, study=study).single()
    if record is None:
        return list(map(values_of_graph, networks))

    config = from_json(record["config"])
    return [named_values(record["name"], config, network) for network in networks]


def supply(tx: ManagedTransaction, study: str, config: Mapping[str, Any]) -> None:
    """Give the proposals of a study the defaults of parameters that its space has got.

    Args:
        tx: The transaction.
        study: Name of the study.
        config: Settings of its space, which has grown.
    """
    column, space = read_parameters(config)
    rows = []
    for identifier, text in read_rows(tx, ("proposal", column), study=study):
        if properties := supply_values(column, space, text):
            rows.append({"id": identifier, "properties": properties})

    for begin in range(0, len(rows), ROWS):
        tx.run(SUPPLY, rows=rows[begin : begin + ROWS]).consume()

    if rows:
        tx.run(REREAD, study=study).consume()


def read_parameters(config: Mapping[str, Any]) -> tuple[str, ParameterSpace]:
    """Return the property of a proposal that has its values, and the parameters of a space.

    Args:
        config: Settings of the space.
    """
    from archive.parameters.parameter_space import ParameterSpace

    # Parameters beside a network are hyperparameters of its proposals.
    if BESIDE in config:
        return "hyperparameters", ParameterSpace.from_json(config[BESIDE])

    return "configuration", ParameterSpace.from_json(config)


def supply_values(column: str, space: ParameterSpace, text: str | None) -> dict[str, Any]:
    """Return the properties that a proposal gets with the defaults of parameters that it lacks.

    Args:
        column: Property that has its values.
        space: The parameters, which may have grown after it was made.
        text: That property.
    """
    values = from_json(text)
    supplied = space.supply(values)
    if text is None or len(supplied) == len(values):
        return {}

    ordered = {name: supplied[name] for name in space.names if name in supplied}
    added = {name: value for name, value in ordered.items() if name not in values}
    stored = json.dumps(ordered) if column == "configuration" else to_json(ordered)
    return {column: stored, **configuration_properties({}, added)}


def complete_views(
    connection: Connection,
    study: Study,
    views: Sequence[ProposalView],
    known: Mapping[int, ProposalView] = _NO_VIEWS,
) -> list[ProposalView]:
    """Return views of a study in their order, with named values where the proposals lack them.

    Args:
        connection: Connection to the archive.
        study: The study.
        views: The views.
        known: Earlier views by number, whose values are used again.
    """
    completed = list(views)
    if not has_names(study.space):
        return completed

    missing = {}
    for position, view in enumerate(views):
        before = known.get(view.number)
        if _is_named(view):
            continue

        if before is not None and before.architecture_key == view.architecture_key:
            completed[position] = replace(view, configuration=before.configuration)
        else:
            missing[position] = view

    if missing:
        ids = [view.id for view in missing.values()]
        values = connection.read(partial(_compute, study=study, choice=SOME, ids=ids))
        for position, view in missing.items():
            configuration = merge_values(values.get(view.number, {}), view.hyperparameters)
            completed[position] = replace(view, configuration=configuration)

    return completed


def read_configurations(connection: Connection, study: Study) -> dict[int, Configuration]:
    """Return the values of named decisions of all proposals of a study, by number.

    Empty for a study without named decisions.
    """
    if not has_names(study.space):
        return {}

    return connection.read(partial(_read, study=study))


def configurations_of(
    connection: Connection, study: Study, numbers: Sequence[int]
) -> dict[int, Configuration]:
    """Return the named decisions and hyperparameters of some proposals of a study, by number.

    Proposals without named values are left out.
    """
    ids = [proposal_id(study.name, number) for number in numbers]
    if not ids:
        return {}

    columns = ("number", "configuration", "hyperparameters")
    rows = connection.read(lambda tx: read_rows(tx, columns, SOME, ids=ids))
    missing = []
    configurations: dict[int, Configuration] = {}
    for number, text, hyperparameters in rows:
        configurations[number] = merge_values(from_json(text), from_json(hyperparameters))
        if text is None:
            missing.append(proposal_id(study.name, number))

    if missing and has_names(study.space):
        computed = connection.read(partial(_compute, study=study, choice=SOME, ids=missing))
        for number, named in computed.items():
            configurations[number] = merge_values(named, configurations[number])

    return {number: values for number, values in configurations.items() if values}


def configuration_of_network(connection: Connection, architecture: Architecture) -> Configuration:
    """Return the named values of a network, as the oldest study with it names them."""
    if not has_names(architecture.space):
        return {}

    from archive.spaces.named_values import named_values, values_of_graph

    record = connection.read(lambda tx: tx.run(OF_NETWORK, key=architecture.key).single())
    if record is None:
        return values_of_graph(architecture)

    return named_values(record["name"], from_json(record["config"]), architecture)


def values_of(study: Study | None, architecture: Architecture) -> Configuration:
    """Return the named values of a network of a study; None for a network without a study."""
    if not has_names(architecture.space):
        return {}

    from archive.spaces.named_values import named_values, values_of_graph

    if study is None:
        return values_of_graph(architecture)

    return named_values(study.space, study.space_config, architecture)


def configuration_columns(configurations: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names in configurations, in the order of their first occurrence."""
    names: dict[str, None] = {}
    for configuration in configurations:
        names |= dict.fromkeys(configuration)

    return list(names)


def _is_named(view: ProposalView) -> bool:
    return not view.configuration.keys() <= view.hyperparameters.keys()


def _read(tx: ManagedTransaction, study: Study) -> dict[int, Configuration]:
    configurations: dict[int, Configuration] = {}
    missing = False
    for number, text in read_rows(tx, ("number", "configuration"), study=study.name):
        configurations[number] = from_json(text)
        missing = missing or text is None

    if missing:
        for number, values in _compute(tx, study).items():
            configurations[number] = configurations.get(number) or values

    return dict(sorted(configurations.items()))


def _compute(
    tx: ManagedTransaction, study: Study, choice: str = ALL, **parameters: Any
) -> dict[int, Configuration]:
    """Return the named values of proposals by number, from their networks."""
    from archive.architecture import compact
    from archive.spaces.named_values import named_values

    if choice == ALL:
        parameters = {"study": study.name}

    values = {}
    for number, space, code in read_rows(tx, ("number", "space", "code"), choice, **parameters):
        try:
            network = compact.decode("", space, "", code)
        except ArchiveError:
            continue

        values[number] = named_values(study.space, study.space_config, network)

    return values


def _property(value: Any) -> Any:
    """Return a value as a property: JSON text of null, a list or an object."""
    if isinstance(value, str | bool):
        return value

    if isinstance(value, int) and abs(value) >= LARGEST:
        return float(value)

    return value if is_number(value) else json.dumps(value, default=str)

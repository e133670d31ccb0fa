"""Creation of a study and its agents.

A study has a node with task and space, and may conflict with a study of the same name. Agents are
stored once for each kind, configuration and version.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import fields
from operator import index
from typing import TYPE_CHECKING, Any, LiteralString

from archive import constraints, objectives
from archive.architecture.layer import BESIDE
from archive.database.statements import revised
from archive.errors import SettingsError, StudyConflictError, UsageError
from archive.store.properties import space_id, task_id, to_json
from archive.store.records import Study
from archive.values import check_length

if TYPE_CHECKING:
    from neo4j import ManagedTransaction

    from archive.database.connection import Connection
    from archive.store.records import Study


CREATE = f"""
MERGE (s:Study {{name: $name}})
ON CREATE SET s += $properties, s.created = timestamp()
SET {revised("s")}
"""


def feasible_in(study: LiteralString) -> LiteralString:
    """Return the condition that the evaluation `e` meets the constraints of a study.

    Args:
        study: Prefix of the study's properties in Cypher: `s.` for a node, `$` for parameters.
    """
    return f"""({study}constrained IS NULL OR all(i IN range(0, size({study}constrained) - 1) WHERE
    CASE {study}operators[i]
      WHEN '<=' THEN e['metric_' + {study}constrained[i]] <= {study}bounds[i]
      WHEN '<' THEN e['metric_' + {study}constrained[i]] < {study}bounds[i]
      WHEN '>=' THEN e['metric_' + {study}constrained[i]] >= {study}bounds[i]
      ELSE e['metric_' + {study}constrained[i]] > {study}bounds[i] END))"""


def whole_in(study: LiteralString) -> LiteralString:
    """Return the condition that the evaluation `e` has a finite value of each further objective.

    Args:
        study: Prefix of the study's properties, as for `feasible_in`.
    """
    return f"""({study}objectives IS NULL OR all(i IN range(1, size({study}objectives) - 1) WHERE
    e['metric_' + {study}objectives[i]] - e['metric_' + {study}objectives[i]] = 0.0))"""


FEASIBLE = feasible_in("s.")
WHOLE = whole_in("s.")

PLACE = """
UNWIND $rows AS row
MATCH (s:Study {name: row.name}) WHERE NOT EXISTS { (s)-[:ON]->(:Task) }
MERGE (t:Task {id: row.task_id}) ON CREATE SET t.name = row.task, t.protocol = row.protocol
SET t.direction = coalesce(t.direction, row.direction)
MERGE (space:Space {id: row.space_id}) ON CREATE SET space.name = row.space, space.config = row.space_config
CREATE (s)-[:ON]->(t)
CREATE (s)-[:IN]->(space)
"""


GROW = f"""
MATCH (s:Study {{name: $name}})-[old:IN]->(:Space {{id: $before}})
MERGE (space:Space {{id: $space_id}})
ON CREATE SET space.name = $space, space.config = $space_config
DELETE old
CREATE (s)-[:IN]->(space)
SET {revised("s")}
RETURN s.name AS name
"""


def check(study: Study) -> None:
    """Check that a study can be stored.

    Raises:
        UsageError: The name is empty, too long or contains a `#`, task or protocol have no name or
            too long ones, or direction, budget or seed is invalid.
    """
    if not study.name or "#" in study.name:
        raise UsageError(f"a study needs a name without '#', got {study.name!r:.80}")

    for what, name in (("study", study.name), ("task", study.task), ("protocol", study.protocol)):
        if not name:
            raise UsageError(f"the {what} of a study needs a name, got {name!r}")

        check_length(f"the name of a {what}", name)

    if study.direction not in objectives.DIRECTIONS:
        raise UsageError(f"direction must be maximise or minimise, got {study.direction!r}")

    objectives.check(study.objectives)
    constraints.check(study.constraints)
    check_budget(study.budget)
    check_seed(study.seed)


def check_new_name(name: str) -> None:
    """Check that commands can name a new study with this name.

    Commands read names in options and arguments.

    Raises:
        UsageError: It is `all`, is blank at an end, contains a comma or a `#`, or begins with a
            hyphen.
    """
    if (
        not name
        or name == "all"
        or name != name.strip()
        or name.startswith("-")
        or "," in name
        or "#" in name
    ):
        raise UsageError(
            "a new study needs a name other than 'all' that contains no comma and no '#', begins with no hyphen, and "
            f"has no blank at an end, since other options could not refer to it otherwise: got {name!r}"
        )


def constraint_lists(study: Study) -> dict[str, Any]:
    """Return the constraints as parallel lists, for queries; None for a study without."""
    limits = study.constraints
    return {
        "constrained": [limit.name for limit in limits] or None,
        "operators": [limit.operator for limit in limits] or None,
        "bounds": [float(limit.bound) for limit in limits] or None,
    }


def objective_names(study: Study) -> list[str] | None:
    """Return the names of all objectives, for queries; None for a study with one."""
    return [objective.name for objective in study.objectives] if study.further else None


def check_budget(budget: int) -> None:
    """Check that a number of proposals can be the budget of a study.

    Raises:
        UsageError: It is negative, too large for the store, or no integer.
    """
    if not _is_integer(budget) or not 0 <= budget < 2**63:
        raise UsageError(f"budget must be an integer from 0 to 2^63 - 1, got {budget!r:.80}")


def check_seed(seed: int) -> None:
    """Check that a number can be the seed of a study: random generators take no negative one.

    Raises:
        UsageError: It is negative, too large for the store, or no integer.
    """
    if not _is_integer(seed) or not 0 <= seed < 2**63:
        raise UsageError(f"seed must be an integer from 0 to 2^63 - 1, got {seed!r:.80}")


def _is_integer(number: Any) -> bool:
    try:
        index(number)
    except TypeError:
        return False

    return True


def create(tx: ManagedTransaction, study: Study) -> None:
    """Store a study within a transaction; an existing study of the same name does not change."""
    tx.run(CREATE, name=study.name, properties=_properties(study)).consume()
    tx.run(PLACE, rows=[_place(study)]).consume()


def has_grown(requested: Study, stored: Study) -> bool:
    """Return whether a study is requested with more parameters or values than it has."""
    return _document(stored) is not None and to_json(requested.space_config) != to_json(
        stored.space_config
    )


def grow(tx: ManagedTransaction, requested: Study, stored: Study) -> bool:
    """Give a stored study the space of a requested one, which `check_same` has passed.

    Returns:
        Whether it did: not where the study has another space than `stored` by now.
    """
    before = space_id(stored.space, to_json(stored.space_config))
    return tx.run(GROW, before=before, **_place(requested)).single() is not None


def join_settings(
    space: str, first: Mapping[str, Any], second: Mapping[str, Any]
) -> Mapping[str, Any] | None:
    """Return the settings of the space that two copies of a space have grown into.

    Args:
        space: Name of the space.
        first: Settings of the space in one copy.
        second: Settings in the other one.

    Returns:
        The settings; None if they differ in more than the growth of parameters.

    Raises:
        SettingsError: No space has the parameters of both.
    """
    if to_json(first) == to_json(second):
        return first

    from archive.parameters.growth import join
    from archive.parameters.parameter_space import ParameterSpace

    if space == PARAMETERS:
        return join(ParameterSpace.from_json(first), ParameterSpace.from_json(second)).json()

    others = [{**config, BESIDE: None} for config in (first, second)]
    if BESIDE not in first or BESIDE not in second or to_json(others[0]) != to_json(others[1]):
        return None

    spaces = [ParameterSpace.from_json(config[BESIDE]) for config in (first, second)]
    return {**first, BESIDE: join(spaces[0], spaces[1]).json()}


def check_same(requested: Study, stored: Study) -> None:
    """Check that a stored study agrees with a requested one of the same name.

    Raises:
        StudyConflictError: It has another task, protocol, space, objective or direction, other
            further objectives or constraints, or other settings of its space. Parameters may have
            grown (`archive.parameters.growth`).
    """
    for attribute in fields(Study):
        if attribute.name not in ("task", "protocol", "space", "objective", "direction"):
            continue

        old = getattr(stored, attribute.name)
        new = getattr(requested, attribute.name)
        if old != new:
            raise StudyConflictError(
                f"study {requested.name!r} exists with {attribute.name} {old}, got {new}: choose another name for the study"
            )

    if requested.further != stored.further:
        old = ", ".join(map(str, stored.objectives))
        new = ", ".join(map(str, requested.objectives))
        raise StudyConflictError(
            f"study {requested.name!r} exists with the objectives {old}, got {new}: choose another name for the study"
        )

    if set(requested.constraints) != set(stored.constraints):
        old = ", ".join(map(str, stored.constraints)) or "none"
        new = ", ".join(map(str, requested.constraints)) or "none"
        raise StudyConflictError(
            f"study {requested.name!r} exists with the constraints {old}, got {new}: choose another name for the study"
        )

    if to_json(requested.space_config) == to_json(stored.space_config):
        return

    before = _document(stored)
    after = _document(requested)
    if before is not None and after is not None:
        _check_growth(requested.name, before, after)

    if stored.space != PARAMETERS:
        old_settings = dict(_settings(stored))
        new_settings = dict(_settings(requested))
        if before is not None and after is not None:
            del old_settings[BESIDE], new_settings[BESIDE]

        _check_same_settings(requested.name, old_settings, new_settings)


def _properties(study: Study) -> dict[str, Any]:
    return {
        "objective": study.objective,
        "direction": study.direction,
        "budget": study.budget,
        "config": to_json(study.config),
        "seed": study.seed,
        **_objectives(study),
        **({} if not study.constraints else constraint_lists(study)),
    }


def _objectives(study: Study) -> dict[str, list[str]]:
    """Return the objectives as parallel lists, for queries; empty for a study with one."""
    if not study.further:
        return {}

    names: list[str] = []
    directions: list[str] = []
    for objective in study.objectives:
        names.append(objective.name)
        directions.append(objective.direction)

    return {"objectives": names, "directions": directions}


def _place(study: Study) -> dict[str, Any]:
    config = to_json(study.space_config)
    return {
        "name": study.name,
        "task_id": task_id(study.task, study.protocol),
        "task": study.task,
        "protocol": study.protocol,
        "direction": study.direction,
        "space_id": space_id(study.space, config),
        "space": study.space,
        "space_config": config,
    }


PARAMETERS = "parameters"
"""Name of the space of parameters (`archive.spaces.parameters`)."""


def has_parameters(study: Study, config: Mapping[str, Any]) -> bool:
    """Return whether a study's space and settings of the same space have parameters, which may grow."""
    return study.space == PARAMETERS or (BESIDE in study.space_config and BESIDE in config)


def _document(study: Study) -> Mapping[str, Any] | None:
    """Return the parameters of a study's space as a JSON object; None of a space without any."""
    if study.space == PARAMETERS:
        return study.space_config

    return study.space_config.get(BESIDE)


def _check_growth(name: str, stored: Mapping[str, Any], requested: Mapping[str, Any]) -> None:
    from archive.parameters.growth import check_growth
    from archive.parameters.parameter_space import ParameterSpace

    try:
        check_growth(ParameterSpace.from_json(stored), ParameterSpace.from_json(requested))
    except SettingsError as error:
        raise StudyConflictError(
            f"study {name!r} exists with other parameters: {error}; choose another name "
            "for the study"
        ) from None


def _check_same_settings(
    name: str, stored: Mapping[str, Any], requested: Mapping[str, Any]
) -> None:
    for setting in sorted(stored.keys() | requested.keys()):
        if setting == BESIDE and (setting in stored) != (setting in requested):
            has, got = ("no", "some") if setting in requested else ("some", "none")
            raise StudyConflictError(
                f"study {name!r} exists with {has} parameters beside its networks, got {got}: "
                "choose another name for the study"
            )

        old = to_json(stored[setting]) if setting in stored else "its default"
        new = to_json(requested[setting]) if setting in requested else "its default"
        if old != new:
            raise StudyConflictError(
                f"study {name!r} exists with the space setting {setting} = {old}, got {new}: "
                "choose another name for the study"
            )


def _settings(study: Study) -> Mapping[str, Any]:
    """Return every setting of a study's space with defaults.

    Only the stored ones if the space is not installed.
    """
    from archive import spaces

    try:
        # The table of a space is a setting without a default, and a stored one may be any file.
        settings = dict(study.space_config)
        table = settings.pop("table", None)
        config = spaces.get(study.space, **settings).config
        return config if table is None else {**config, "table": table}
    except UsageError:
        return study.space_config


AGENT = """
MERGE (a:Agent {id: $id})
ON CREATE SET a.kind = $kind, a.config = $config, a.version = $version, a.created = timestamp()
"""


def register_agent(
    connection: Connection, kind: str, config: Mapping[str, Any], version: str
) -> str:
    """Store an agent and return its id, the same for the same kind, configuration and version."""
    text = to_json(config)
    properties = {
        "id": agent_id(kind, text, version),
        "kind": kind,
        "config": text,
        "version": version,
    }
    connection.write(lambda tx: tx.run(AGENT, properties).consume())
    return properties["id"]


def agent_id(kind: str, config: str, version: str) -> str:
    """Return the id of an agent; `config` is the stored text of its configuration."""
    digest = hashlib.blake2b(f"{kind}\n{version}\n{config}".encode(), digest_size=6).hexdigest()
    return f"{kind}-{digest}"


def kind_of(id_: str) -> str:
    """Return the kind of an agent from its id."""
    return id_.rpartition("-")[0] or id_


def agent_names(study: Study, ids: Iterable[str | None]) -> tuple[str, ...]:
    """Return the names of the agents of a study, without repetitions.

    The agent that the study was created for has the settings in its name, the others are named by
    their kinds.

    Args:
        study: The study.
        ids: Ids of the agents of its proposals; without any, the agent that it was created for is
            the only one.
    """
    configured = study.config.get("agent")
    kinds = dict.fromkeys(kind_of(id_) for id_ in ids if id_ is not None)
    if not isinstance(configured, str):
        return tuple(kinds)

    if not kinds:
        return (configured,)

    scheme = configured.partition(":")[0]
    return tuple(configured if kind == scheme else kind for kind in kinds)

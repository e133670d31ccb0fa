"""Agents: stored once for each kind, configuration and version."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from archive.store.properties import to_json

if TYPE_CHECKING:
    from archive.database.connection import Connection
    from archive.store.records import Study

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

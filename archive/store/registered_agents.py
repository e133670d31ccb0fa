"""Agents: stored once for each kind, configuration and version."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from archive.store.properties import to_json

if TYPE_CHECKING:
    from archive.database.connection import Connection

AGENT = """
MERGE (a:Agent {id: $id})
ON CREATE SET a.kind = $kind, a.config = $config, a.version = $version, a.created = timestamp()
"""


def register_agent(connection: Connection, kind: str, config: Mapping[str, Any], version: str) -> str:
    """Store an agent and return its id, the same for the same kind, configuration and version."""
    text = to_json(config)
    at = {"id": agent_id(kind, text, version), "kind": kind, "config": text, "version": version}
    connection.write(lambda tx: tx.run(AGENT, at).consume())
    return at["id"]


def agent_id(kind: str, config: str, version: str) -> str:
    """Return the id of an agent; `config` is the stored text of its configuration."""
    digest = hashlib.blake2b(f"{kind}\n{version}\n{config}".encode(), digest_size=6).hexdigest()
    return f"{kind}-{digest}"

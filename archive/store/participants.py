"""Who works on the archive: agents, by what they are; workers, by when they were last heard of."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from archive.store.properties import to_json

if TYPE_CHECKING:
    from archive.database.connection import Connection

AGENT = """
MERGE (a:Agent {id: $id})
ON CREATE SET a.kind = $kind, a.config = $config, a.version = $version, a.created = timestamp()
"""

WORKER = """
MERGE (w:Worker {id: $id})
SET w += $properties, w.heartbeat = timestamp()
"""

WORKERS = """
MATCH (w:Worker)
RETURN w.id AS id, w.host AS host, w.device AS device, w.heartbeat AS heartbeat,
       timestamp() - w.heartbeat AS silent
ORDER BY heartbeat DESC
"""


@dataclass(frozen=True)
class Worker:
    """A trainer's slot, as last heard of.

    Attributes:
        id: Unique among workers.
        host: Machine.
        device: What it trains on.
        heartbeat: When it was last heard of, in milliseconds by the server's clock.
        silent_seconds: How long ago that is.
    """

    id: str
    host: str | None
    device: str | None
    heartbeat: int
    silent_seconds: float


def register_agent(connection: Connection, kind: str, config: Mapping[str, Any], version: str) -> str:
    """Store what an agent is and return its id, the same for the same kind, configuration and version."""
    text = to_json(config)
    at = {"id": agent_id(kind, text, version), "kind": kind, "config": text, "version": version}
    connection.write(lambda tx: tx.run(AGENT, at).consume())
    return at["id"]


def agent_id(kind: str, config: str, version: str) -> str:
    """Return the id of an agent, its configuration as the text that is stored."""
    digest = hashlib.blake2b(f"{kind}\n{version}\n{config}".encode(), digest_size=6).hexdigest()
    return f"{kind}-{digest}"


def beat(connection: Connection, worker: str, **properties: str | None) -> None:
    """Store that a worker was heard of just now, with what it says of itself."""
    connection.write(lambda tx: tx.run(WORKER, id=worker, properties=properties).consume())


def workers(connection: Connection) -> list[Worker]:
    """Return all workers, the one heard of last first."""
    rows = connection.read(lambda tx: tx.run(WORKERS).data())
    return [
        Worker(row["id"], row["host"], row["device"], row["heartbeat"], max(0, row["silent"]) / 1000) for row in rows
    ]

"""Addresses and digests of trained weights; the trainer keeps the files (`archive.trainer.storage`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from archive.store.records import Checkpoint

if TYPE_CHECKING:
    from archive.database.connection import Connection

__all__ = ["Checkpoint", "Checkpoints"]

OF_EVALUATION = """
MATCH (:Evaluation {id: $id})-[:SAVED]->(c:Checkpoint)
RETURN c.uri AS uri, c.sha256 AS sha256, c.bytes AS bytes
"""


class Checkpoints:
    """Reader of the addresses of weights; `Proposals.complete` stores them, together with their evaluation."""

    def __init__(self, connection: Connection) -> None:
        """Read through this connection."""
        self._connection = connection

    def of_evaluation(self, evaluation: str) -> Checkpoint | None:
        """Return the weights of an evaluation, or None."""
        row = self._connection.read(lambda tx: tx.run(OF_EVALUATION, id=evaluation).single())
        return None if row is None else Checkpoint(row["uri"], row["sha256"], row["bytes"])

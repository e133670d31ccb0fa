"""Addresses and digests of trained weights; the trainer keeps the files
(`archive.trainer.storage`).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from archive.store.properties import UNSAVED_WEIGHTS
from archive.store.records import Weights

if TYPE_CHECKING:
    from archive.database.connection import Connection

OF_EVALUATION = """
MATCH (:Evaluation {id: $id})-[:SAVED]->(w:Weights)
RETURN w.uri AS uri, w.sha256 AS sha256, w.bytes AS bytes
"""

ENVIRONMENT = """
MATCH (e:Evaluation {id: $id})
RETURN e.environment AS environment
"""


class WeightsLookup:
    """Reader of the addresses of weights;

    `Proposals.complete` stores them, together with their evaluation.
    """

    def __init__(self, connection: Connection) -> None:
        """Read through this connection."""
        self._connection = connection

    def of_evaluation(self, evaluation: str) -> Weights | None:
        """Return the weights of an evaluation, or None."""
        row = self._connection.read(lambda tx: tx.run(OF_EVALUATION, id=evaluation).single())
        return None if row is None else Weights(row["uri"], row["sha256"], row["bytes"])

    def unsaved(self, evaluation: str) -> str | None:
        """Return why the weights of an evaluation could not be saved;

        None where they were, or where it has none.
        """
        row = self._connection.read(lambda tx: tx.run(ENVIRONMENT, id=evaluation).single())
        environment = {} if row is None else json.loads(row["environment"] or "{}")
        reason = environment.get(UNSAVED_WEIGHTS)
        return None if reason is None else str(reason)

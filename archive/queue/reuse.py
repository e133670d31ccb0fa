"""Known architectures are answered, not trained again: across studies, on the same task and under the same protocol.

    suggestion ── functional key, hyperparameters ──> a finished evaluation of any study, or an imported one
        │ there is none                                   │ the first on record
        v                                                 v
    Proposal WAITING                                  Proposal COMPLETE, with an Evaluation {answered_from, seconds: 0}

An answer is an evaluation of the study like any other, with metrics, curve and weights of the one that it repeats, and
says so: `answered_from` is that one's id, and its cost is 0 seconds. What is itself an answer, was pruned, was trained
on a part of the protocol or lacks the study's objective answers nothing. Where noise matters, ask for another training.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from archive.queue.admission import Suggestion
from archive.store.evaluations import task_id
from archive.store.properties import CURVE, METRIC, from_json, to_json, with_prefix
from archive.store.records import Checkpoint, Result, State, Study

if TYPE_CHECKING:
    from archive.database.connection import Connection

# From the key's few architectures outwards: begun at the task, it would visit all that was ever measured.
KNOWN = """
UNWIND $keys AS key
MATCH (a:Architecture {functional_key: key})
MATCH (a)<-[:OF]-(e:Evaluation)
WHERE e.answered_from IS NULL
MATCH (e)-[:ON]->(t:Task) WHERE t.id = $task
OPTIONAL MATCH (e)<-[:RESULTED_IN]-(p:Proposal)
OPTIONAL MATCH (p)<-[:PROPOSED]-(s:Study)
OPTIONAL MATCH (e)-[:SAVED]->(c:Checkpoint)
RETURN key, a.key AS architecture, properties(e) AS evaluation, p.state AS state, p.fidelity AS fidelity,
       p.hyperparameters AS hyperparameters, s.objective AS objective,
       c.uri AS uri, c.sha256 AS sha256, c.bytes AS bytes
ORDER BY e.created, e.id
"""

COUNT = """
MATCH (s:Study {name: $study})
MATCH (s)-[:PROPOSED]->(p:Proposal)
MATCH (p)-[:RESULTED_IN]->(e:Evaluation)
WHERE e.answered_from IS NOT NULL
RETURN count(e) AS answered
"""


class Answers:
    """Finds the known results of suggestions; `Proposals.create` adds both to a study."""

    def __init__(self, connection: Connection) -> None:
        """Read and write through this connection."""
        self._connection = connection

    def known(self, study: Study, suggestions: Sequence[Suggestion]) -> list[Result | None]:
        """Return what the archive knows of each suggestion, None where nothing, in their order.

        Args:
            study: Whose task, protocol and objective count.
            suggestions: Networks with their hyperparameters.
        """
        keys = sorted({suggestion.architecture.functional_key for suggestion in suggestions})
        at = task_id(study.task, study.protocol)
        rows = self._connection.read(lambda tx: tx.run(KNOWN, keys=keys, task=at).data()) if keys else []
        found: dict[tuple[str, str], tuple[str, Result]] = {}
        for row in rows:
            result = _result(row, study.objective)
            if result is not None:
                settings = to_json(from_json(row["hyperparameters"]))
                found.setdefault((row["key"], settings), (row["architecture"], result))
        return [_answer(found, suggestion) for suggestion in suggestions]

    def count(self, study: str) -> int:
        """Return how many evaluations of a study were answered from the archive."""
        return int(self._connection.read(lambda tx: tx.run(COUNT, study=study).single(strict=True)["answered"]))


def _answer(found: Mapping[tuple[str, str], tuple[str, Result]], suggestion: Suggestion) -> Result | None:
    if getattr(suggestion, "fidelity", None) is not None:
        return None
    hyperparameters = to_json(getattr(suggestion, "hyperparameters", None) or {})
    known = found.get((suggestion.architecture.functional_key, hyperparameters))
    if known is None:
        return None
    # Weights are laid out by layers: those of a network with other dead layers are not this one's.
    same = known[0] == suggestion.architecture.key
    return known[1] if same else replace(known[1], checkpoint=None)


def _result(row: Mapping[str, Any], objective: str) -> Result | None:
    """Return what an evaluation says of the objective; None where it says nothing, or not of the whole protocol."""
    node = row["evaluation"]
    metrics = with_prefix(METRIC, node)
    value = node["value"] if row["objective"] == objective else metrics.get(objective)
    # An imported evaluation has no proposal, hence no state.
    whole = row["state"] in (None, State.COMPLETE.value) and row["fidelity"] is None
    if value is None or not math.isfinite(value) or not whole:
        return None
    return Result(
        value,
        metrics,
        with_prefix(CURVE, node),
        epochs=node.get("epochs"),
        seconds=0.0,
        seed=node.get("seed"),
        device=node.get("device"),
        environment=from_json(node.get("environment")),
        checkpoint=None if row["uri"] is None else Checkpoint(row["uri"], row["sha256"], row["bytes"]),
        answered_from=node["id"],
    )

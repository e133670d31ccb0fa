"""Reuse of known results: no second training for the same network, task and protocol.

    suggestion ── functional key, hyperparameters ──> a finished evaluation of any study, or an
    imported one
        │ none                                            │ the first on record
        v                                                 v
    Proposal WAITING                                  Proposal COMPLETE, with an Evaluation {answered_from, seconds: 0}

A reused result becomes an evaluation of the study like any other, with metrics, curve and weights
of the original. Its `answered_from` is the id of the original, and its cost is 0 seconds.
Evaluations that are themselves reused, pruned, trained with a part of the protocol, or without one
of the study's objectives or constrained metrics, are not reused; nor are evaluations of studies
whose `choices` have other options behind the same labels
(`archive.architecture.choice_operations`). Studies that differ only in their objective have the
same trainings: each one's result answers the other, by its metric of that name. Where noise
matters, request another training.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from archive.architecture.choice_operations import conflict
from archive.queue.admission import SuggestionLike, pair_of, separate
from archive.store.properties import CURVE, METRIC, from_json, task_id, to_json, with_prefix
from archive.store.protocol_names import OBJECTIVE, without_objective
from archive.store.records import Result, State, Study, Weights

if TYPE_CHECKING:
    from archive.database.connection import Connection

# The query starts from the few architectures of a key: from the task, it would scan all evaluations
# of the task.
KNOWN = """
UNWIND $keys AS key
MATCH (a:Architecture {functional_key: key})
MATCH (a)<-[:OF]-(e:Evaluation)
WHERE e.answered_from IS NULL
MATCH (e)-[:ON]->(t:Task) WHERE t.id = $task OR t.id STARTS WITH $others
OPTIONAL MATCH (e)<-[:RESULTED_IN]-(p:Proposal)
OPTIONAL MATCH (p)<-[:PROPOSED]-(s:Study)
OPTIONAL MATCH (s)-[:IN]->(space:Space)
OPTIONAL MATCH (e)-[:SAVED]->(w:Weights)
RETURN key, a.key AS architecture, properties(e) AS evaluation, p.state AS state, p.fidelity AS fidelity,
       p.hyperparameters AS hyperparameters, s.objective AS objective,
       space.config AS space_config, w.uri AS uri, w.sha256 AS sha256, w.bytes AS bytes
ORDER BY e.created, e.id
"""

COUNT = """
MATCH (s:Study {name: $study})
MATCH (s)-[:PROPOSED]->(p:Proposal)
MATCH (p)-[:RESULTED_IN]->(e:Evaluation)
WHERE e.answered_from IS NOT NULL
RETURN count(e) AS answered
"""


class ReusedResults:
    """Lookup of known results for suggestions; `Proposals.create` adds both to a study."""

    def __init__(self, connection: Connection) -> None:
        """Read and write through this connection."""
        self._connection = connection

    def known(self, study: Study, suggestions: Sequence[SuggestionLike]) -> list[Result | None]:
        """Return the known result of each suggestion, in their order; None for an unknown one.

        Args:
            study: Study whose task, protocol and objective apply.
            suggestions: Networks with their hyperparameters, or members with parameters beside
                their networks.
        """
        suggestions = list(map(separate, suggestions))
        networks = map(attrgetter("architecture.functional_key"), suggestions)
        keys = sorted(set(networks))
        node_id = task_id(study.task, without_objective(study.protocol))
        asked = {"keys": keys, "task": node_id, "others": node_id + OBJECTIVE}
        rows = self._connection.read(lambda tx: tx.run(KNOWN, asked).data()) if keys else []
        reusable: dict[tuple[str, str], tuple[str, Result]] = {}
        for row in rows:
            result = _result(row, study)
            if result is not None:
                settings = to_json(from_json(row["hyperparameters"]))
                reusable.setdefault((row["key"], settings), (row["architecture"], result))

        return [_look_up(reusable, suggestion) for suggestion in suggestions]

    def count(self, study: str) -> int:
        """Return how many evaluations of a study reuse a known result."""
        return int(
            self._connection.read(
                lambda tx: tx.run(COUNT, study=study).single(strict=True)["answered"]
            )
        )


def _look_up(
    reusable: Mapping[tuple[str, str], tuple[str, Result]], suggestion: SuggestionLike
) -> Result | None:
    if getattr(suggestion, "fidelity", None) is not None:
        return None

    key, result = reusable.get(pair_of(suggestion), ("", None))
    if result is None:
        return None

    # Weights are stored by layer, so the weights of a network with other dead layers do not fit.
    return result if key == suggestion.architecture.key else replace(result, weights=None)


def _result(row: Mapping[str, Any], study: Study) -> Result | None:
    """Return an evaluation as a result for a study.

    None if it lacks a needed metric, or a part of the protocol.
    """
    node = row["evaluation"]
    metrics = with_prefix(METRIC, node)
    value = node["value"] if row["objective"] == study.objective else metrics.get(study.objective)
    for name in map(attrgetter("name"), (*study.further, *study.constraints)):
        if not math.isfinite(metrics.get(name, math.nan)):
            return None

    # An imported evaluation has no proposal, hence no state, and no study with a space.
    config = row["space_config"]
    if config is not None and conflict(study.space, from_json(config), study.space_config):
        return None

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
        hardware=node.get("hardware"),
        environment=from_json(node.get("environment")),
        weights=None if row["uri"] is None else Weights(row["uri"], row["sha256"], row["bytes"]),
        answered_from=node["id"],
    )

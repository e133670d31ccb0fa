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

A configuration of parameters also has the results of its twins (`archive.store.studies.builds`): of other
configurations with the same network, if the training on record read none of the parameters in which
the two differ. An evaluation says what its recipe read (`PARAMETERS_READ`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from archive.architecture.choice_operations import conflict
from archive.architecture.parameter_operations import NAME as PARAMETERS
from archive.queue.admission import SuggestionLike, pair_of, separate
from archive.rungs import Rungs
from archive.store.properties import CURVE, METRIC, from_json, task_id, to_json, with_prefix
from archive.store.protocol_names import OBJECTIVE, without_objective
from archive.store.records import Proposal, Result, State, Study, Weights
from archive.store.studies.builds import Builds, Twin

if TYPE_CHECKING:
    from archive.architecture.graph import Architecture
    from archive.database.connection import Connection

PARAMETERS_READ = "parameters_read"
"""Entry of an evaluation's environment: names of the parameters that its recipe read, besides the
model; without it, the recipe may have read any."""

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
RETURN key, a.key AS architecture, s.name AS study, properties(e) AS evaluation, p.state AS state,
       p.fidelity AS fidelity,
       p.hyperparameters AS hyperparameters, s.objective AS objective,
       space.config AS space_config, w.uri AS uri, w.sha256 AS sha256, w.bytes AS bytes
ORDER BY e.created, e.id
"""

RETRAIN = "retrain"
"""Entry of a proposal's basis: whether it is trained although a result is known."""

COUNT = """
MATCH (s:Study {name: $study})
MATCH (s)-[:PROPOSED]->(p:Proposal)
MATCH (p)-[:RESULTED_IN]->(e:Evaluation)
WHERE e.answered_from IS NOT NULL
RETURN count(e) AS answered
"""


class ReusedResults:
    """Lookup of known results for suggestions; `Proposals.create` adds both to a study."""

    def __init__(self, connection: Connection, builds: Builds) -> None:
        """Read and write through this connection; `builds` finds the twins of configurations."""
        self._connection = connection
        self._builds = builds

    def known(self, study: Study, suggestions: Sequence[SuggestionLike]) -> list[Result | None]:
        """Return the known result of each suggestion, in their order; None for an unknown one.

        Args:
            study: Study whose task, protocol and objective apply.
            suggestions: Networks with their hyperparameters, or members with parameters beside
                their networks.
        """
        suggestions = list(map(separate, suggestions))
        architectures = list(map(attrgetter("architecture"), suggestions))
        twins = self._twins(architectures)
        keys = {architecture.functional_key for architecture in architectures}
        for of_key in twins.values():
            keys |= {twin.functional_key for twin in of_key}

        reusable = self._read(study, sorted(keys))
        results = []
        for suggestion in suggestions:
            of_key = twins.get(suggestion.architecture.key, [])
            results.append(_look_up(reusable, suggestion, of_key))

        return results

    def of_twin(self, study: Study, proposal: Proposal) -> Result | None:
        """Return the study's result that a twin of a proposal has by a training; None without one.

        Results of other studies do not count: where a study is to use these, the proposal has its
        result since its creation.

        Args:
            study: The study.
            proposal: A proposal of a configuration that takes such results (`takes_twins`).
        """
        twins = self._builds.twins([proposal.architecture_key]).get(proposal.architecture_key, [])
        keys = {twin.functional_key for twin in twins}
        reusable = self._read(study, sorted(keys), within=study.name)
        outcome = _of_twin(reusable, to_json(proposal.hyperparameters), twins)
        # Weights are stored by layer, of another configuration.
        return None if outcome is None else replace(outcome.result, weights=None)

    def _twins(self, architectures: Sequence[Architecture]) -> dict[str, list[Twin]]:
        keys = []
        for architecture in architectures:
            if architecture.space == PARAMETERS:
                keys.append(architecture.key)

        return self._builds.twins(keys)

    def _read(
        self, study: Study, keys: Sequence[str], within: str | None = None
    ) -> dict[tuple[str, str], _Reusable]:
        """Return the first result of each network, by functional key and hyperparameters.

        Args:
            study: Study whose task, protocol and objective apply.
            keys: Functional keys of the networks.
            within: Name of the only study whose results count; None for any.
        """
        node_id = task_id(study.task, without_objective(study.protocol))
        asked = {"keys": keys, "task": node_id, "others": node_id + OBJECTIVE}
        rows = self._connection.read(lambda tx: tx.run(KNOWN, asked).data()) if keys else []
        reusable: dict[tuple[str, str], _Reusable] = {}
        for row in rows:
            result = _result(row, study) if within in (None, row["study"]) else None
            if result is not None:
                settings = to_json(from_json(row["hyperparameters"]))
                reusable.setdefault((row["key"], settings), _Reusable(row["architecture"], result))

        return reusable

    def count(self, study: str) -> int:
        """Return how many evaluations of a study reuse a known result."""
        return int(
            self._connection.read(
                lambda tx: tx.run(COUNT, study=study).single(strict=True)["answered"]
            )
        )


def takes_twins(study: Study, proposal: Proposal) -> bool:
    """Return whether a proposal may have the result of a twin in place of a training.

    A rung is a part of a training, a repeat needs another one, and so does `RETRAIN`.
    """
    is_whole = proposal.fidelity is None and Rungs.of(study.config) is None
    return is_whole and not proposal.repeat and not proposal.based_on.get(RETRAIN)


class _Reusable(NamedTuple):
    """A result to reuse, and the key of the network that it is of."""

    architecture: str
    result: Result


def _look_up(
    reusable: Mapping[tuple[str, str], _Reusable],
    suggestion: SuggestionLike,
    twins: Sequence[Twin],
) -> Result | None:
    if getattr(suggestion, "fidelity", None) is not None:
        return None

    network, hyperparameters = pair_of(suggestion)
    outcome = reusable.get((network, hyperparameters))
    if outcome is None:
        outcome = _of_twin(reusable, hyperparameters, twins)

    if outcome is None:
        return None

    # Weights are stored by layer, so the weights of a network with other dead layers do not fit.
    if outcome.architecture != suggestion.architecture.key:
        return replace(outcome.result, weights=None)

    return outcome.result


def _of_twin(
    reusable: Mapping[tuple[str, str], _Reusable], hyperparameters: str, twins: Sequence[Twin]
) -> _Reusable | None:
    """Return the first twin's result whose training read none of the differences."""
    for twin in twins:
        outcome = reusable.get((twin.functional_key, hyperparameters))
        if outcome is None:
            continue

        read = (outcome.result.environment or {}).get(PARAMETERS_READ)
        if isinstance(read, list) and twin.differences.isdisjoint(map(str, read)):
            return outcome

    return None


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

"""Admission: suggestions become proposals of a study, decided and stored in one transaction.

Every addition to a study first locks its node, so that additions happen one after the other:
numbers have no gaps, the budget is never exceeded, and no network is proposed twice, however many
searches share the study.

The cost of an addition does not grow with the study. The study's node has the number of proposals
(`admitted`) and the next free number (`next_number`). Any other write that adds or deletes
proposals, by a load or a user's query, removes both, and the next addition counts the proposals.
Networks are looked up by their functional key. Failed proposals are counted only if the budget is
nearly used up.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from archive.architecture.graph import Architecture
from archive.database.statements import by_column, follows_from_state, revised, write_all
from archive.database.write_lock import LONG
from archive.errors import UnknownNameError, UsageError
from archive.queue.completion import ProposalResult, complete
from archive.store import architectures
from archive.store.properties import from_json, proposal_from, proposal_id, to_json
from archive.store.records import Proposal, Result, State
from archive.store.studies import derivations, run_texts
from archive.store.studies.configurations import configuration_properties, named_within
from archive.values import as_float, shown

if TYPE_CHECKING:
    from neo4j import ManagedTransaction, Record

    from archive.database.connection import Connection


class SuggestionLike(Protocol):
    """Protocol of a suggestion: at least an architecture.

    Any of `acquisition`, `mean`, `std`, `priority`, `fidelity`, `hyperparameters`, `motivation`,
    `inspired_by` (keys), `repeat`, `parent` (an Architecture) and `operations` (from the parent to
    this network) is stored if the suggestion has it; so are `created`, `started` and `finished`, in
    milliseconds since 1970, and the further properties of a recorded run (`properties`).
    """

    @property
    def architecture(self) -> Architecture:
        """The network to evaluate."""


Suggested = TypeVar("Suggested", bound=SuggestionLike)


@dataclass(frozen=True)
class Request:
    """Request to add suggestions to a study; `token` identifies a repetition of the request.

    Attributes:
        study: Name of the study.
        agent: Id of the agent.
        suggestions: Networks to evaluate.
        budget: The caller's limit, in addition to the study's.
        unique: Whether to leave out networks that the study has already, except for repeats.
        token: Token of the request.
        basis: Knowledge of the agent when it made the suggestions.
        seconds: Time that the agent took to suggest.
        outcomes: For each suggestion, its result where that is known already, or the reason why it
            failed; None for a suggestion that has to be evaluated. Without `outcomes`, all have to
            be.
        after: Number of proposals that the study must have; None allows any number.
        tokens: One token for each suggestion, instead of `token`. The caller then checks itself
            which of them the study has, and passes `after`.
        most: Maximum number of suggestions to store, the first ones that are new; None for all.
        pairs: Whether a suggestion is new where its network is known with other hyperparameters
            alone: parameters are searched beside the networks (`archive.spaces.joint`).
    """

    study: str
    agent: str
    suggestions: Sequence[SuggestionLike]
    budget: int | None
    unique: bool
    token: str
    basis: Mapping[str, Any] | None = None
    seconds: float | None = None
    outcomes: Sequence[Result | str | None] | None = None
    after: int | None = None
    tokens: Sequence[str] | None = None
    most: int | None = None
    pairs: bool = False


# One statement: its write locks the study before the counts are read, so that additions wait for
# one another.
LOCK = f"""
MATCH (s:Study {{name: $study}})
USING INDEX SEEK s:Study(name)
SET {revised("s")}
WITH s
OPTIONAL MATCH (g:Agent {{id: $agent}})
USING INDEX SEEK g:Agent(id)
RETURN s.budget AS budget, s.admitted AS total, s.next_number AS next, g.id AS agent
"""

COUNT = """
MATCH (s:Study {name: $study})
USING INDEX SEEK s:Study(name)
OPTIONAL MATCH (s)-[:PROPOSED]->(p:Proposal)
RETURN count(p) AS total, coalesce(max(p.number) + 1, 0) AS next
"""

# In a list, because ArcadeDB, which ignores the hint, would read all proposals of the study.
FAILED = """
MATCH (p:Proposal {state: 'FAILED'})
USING INDEX SEEK p:Proposal(state)
WHERE p.study IN [$study]
RETURN count(p) AS failed
"""

# Two MATCH clauses: with a single pattern, ArcadeDB scans the proposals of all studies. No label on
# `p`: with one, Neo4j starts from the index of the study's proposals and scans all of them for each
# network.
KNOWN = """
UNWIND $keys AS key
MATCH (a:Architecture {functional_key: key})
USING INDEX SEEK a:Architecture(functional_key)
MATCH (a)<-[:OF]-(p)
WHERE p.study = $study
RETURN DISTINCT key, p.hyperparameters AS hyperparameters
"""

DONE = """
MATCH (s:Study {name: $study})-[:PROPOSED]->(p:Proposal)
USING INDEX SEEK s:Study(name)
WHERE p.request = $token
RETURN properties(p) AS proposal ORDER BY p.number
"""

CREATE = f"""
MATCH (s:Study {{name: $study}})
USING INDEX SEEK s:Study(name)
MATCH (g:Agent {{id: $agent}})
USING INDEX SEEK g:Agent(id)
SET s.admitted = $total, s.next_number = $next
WITH s, g
UNWIND $rows AS row
MATCH (a:Architecture {{key: row.architecture}})
USING INDEX SEEK a:Architecture(key)
CREATE (p:Proposal {{id: row.id}})
SET p += row, p.created = coalesce(row.created, timestamp())
{follows_from_state("coalesce(row.finished, p.created)")}
CREATE (s)-[:PROPOSED]->(p)
CREATE (g)-[:MADE]->(p)
CREATE (p)-[:OF]->(a)
RETURN count(*) AS written, collect([p.id, p.created, p.finished]) AS times
"""

STUDIES = "MATCH (s:Study) RETURN s.name AS name ORDER BY name LIMIT 100"
AGENTS = "MATCH (g:Agent) RETURN g.id AS id ORDER BY id LIMIT 100"


def admit(connection: Connection, request: Request, *, again: bool = False) -> list[Proposal]:
    """Store what there is room for, and return the new proposals.

    Args:
        connection: Connection to the archive.
        request: The request.
        again: Whether the request may have been granted before; the call then returns the proposals
            of that time.

    Raises:
        UnknownNameError: There is no such study or agent.
    """
    runs = count()

    def work(tx: ManagedTransaction) -> list[Proposal]:
        # A second run may mean that the first one was committed and only its acknowledgement was
        # lost.
        return _admit(tx, request, again=next(runs) > 0 or again)

    if not request.suggestions:
        return []

    architectures.prepare(_networks(request.suggestions))
    return connection.write(work, alone=len(request.suggestions) > LONG, lane="admission")


def known(tx: ManagedTransaction, study: str, networks: Iterable[Architecture]) -> set[str]:
    """Return the functional keys of those networks that a study already has."""
    keys = sorted({network.functional_key for network in networks})
    return {row["key"] for row in tx.run(KNOWN, study=study, keys=keys)}


def separate(suggestion: Suggested) -> Suggested:
    """Return a suggestion with its network, and the parameters beside it as hyperparameters.

    A suggestion without parameters beside its network is returned as it is.
    """
    member = suggestion.architecture
    if member.network is member:
        return suggestion

    parts: dict[str, Any] = {
        "architecture": member.network,
        "hyperparameters": dict(member.configuration),
    }
    parent = getattr(suggestion, "parent", None)
    if parent is not None:
        parts["parent"] = parent.network

    return replace(suggestion, **parts)  # type: ignore[type-var]


def pair_of(suggestion: SuggestionLike) -> tuple[str, str]:
    """Return what identifies the evaluation of a separated suggestion in a study.

    The functional key of the network, and the hyperparameters as text.
    """
    hyperparameters = getattr(suggestion, "hyperparameters", None) or {}
    return suggestion.architecture.functional_key, to_json(hyperparameters)


def _admit(tx: ManagedTransaction, request: Request, *, again: bool) -> list[Proposal]:
    study = _lock_study(tx, request)
    if (
        again
        and request.tokens is None
        and (done := tx.run(DONE, study=request.study, token=request.token).data())
    ):
        return [proposal_from(row["proposal"]) for row in done]

    counted = (
        study
        if study["total"] is not None
        else tx.run(COUNT, study=request.study).single(strict=True)
    )
    total = int(counted["total"])
    first = int(counted["next"])
    if request.after not in (None, total):
        return []

    positions = _new(tx, request)[: request.most]
    positions = positions[: _room(tx, request, study["budget"], total, len(positions))]
    if not positions:
        return []

    based_on = None if request.basis is None else to_json(request.basis)
    admitted = []
    rows = []
    texts = {}
    for number, position in enumerate(positions, first):
        admitted.append(request.suggestions[position])
        row, texts_of_run = run_texts.split_off(_row(request, number, position, based_on))
        rows.append(row)
        if texts_of_run:
            texts[row["id"]] = texts_of_run

    networks = [suggestion.architecture for suggestion in admitted]
    for row, named in zip(rows, named_within(tx, request.study, networks), strict=True):
        row |= configuration_properties(named, from_json(row["hyperparameters"]))

    architectures.store(tx, _networks(admitted))
    counts: dict[str, Any] = {"total": total + len(rows), "next": first + len(rows)}
    times = write_all(tx, CREATE, rows, study=request.study, agent=request.agent, **counts)["times"]
    derivations.link(tx, rows)
    run_texts.put(tx, texts)
    stored = by_column(rows, "id")
    for id_, created, finished in times:
        stored[id_] = {**stored[id_], "created": created, "finished": finished}

    results = _results(request, positions, stored)
    complete(tx, results)
    architectures.morph(tx, _morphs(admitted))
    for result in results:
        stored[result.id] = {**stored[result.id], "state": result.state}

    return list(map(proposal_from, stored.values()))


def _room(
    tx: ManagedTransaction, request: Request, budget: int | None, total: int, requested: int
) -> int:
    """Return how many proposals there is room for.

    The number is exact only if fewer than the requested number fit.
    """
    limits = [limit for limit in (budget, request.budget) if limit is not None]
    if not limits or total + requested <= min(limits):
        return requested

    failed = tx.run(FAILED, study=request.study).single(strict=True)["failed"]
    return max(0, min(limits) - total + int(failed))


def _lock_study(tx: ManagedTransaction, request: Request) -> Record:
    study = tx.run(LOCK, study=request.study, agent=request.agent).single()
    if study is None:
        raise UnknownNameError("study", request.study, [row["name"] for row in tx.run(STUDIES)])

    if study["agent"] is None:
        raise UnknownNameError(
            "agent", request.agent, [row["id"] for row in tx.run(AGENTS)], "register it first"
        )

    return study


def _new(tx: ManagedTransaction, request: Request) -> list[int]:
    """Return the positions of the suggestions with a network that is new to study and request."""
    if not request.unique:
        return list(range(len(request.suggestions)))

    networks = list(map(attrgetter("architecture"), request.suggestions))
    existing: set[Any] = (
        _known_pairs(tx, request.study, networks)
        if request.pairs
        else known(tx, request.study, networks)
    )
    new = []
    for position, suggestion in enumerate(request.suggestions):
        key = pair_of(suggestion) if request.pairs else suggestion.architecture.functional_key
        if key not in existing or getattr(suggestion, "repeat", False):
            existing.add(key)
            new.append(position)

    return new


def _known_pairs(
    tx: ManagedTransaction, study: str, networks: Iterable[Architecture]
) -> set[tuple[str, str]]:
    """Return the pairs of those networks and their hyperparameters that a study already has."""
    keys = sorted({network.functional_key for network in networks})
    pairs = set()
    for row in tx.run(KNOWN, study=study, keys=keys):
        pairs.add((row["key"], to_json(from_json(row["hyperparameters"]))))

    return pairs


def _row(request: Request, number: int, position: int, based_on: str | None) -> dict[str, Any]:
    suggestion = request.suggestions[position]
    outcome = None if request.outcomes is None else request.outcomes[position]

    def optional(name: str) -> Any:
        return getattr(suggestion, name, None)

    row = {
        "id": proposal_id(request.study, number),
        "study": request.study,
        "number": number,
        "state": _state(outcome),
        "reason": outcome if isinstance(outcome, str) else None,
        "architecture": suggestion.architecture.key,
        "functional_key": suggestion.architecture.functional_key,
        "agent": request.agent,
        "priority": float(optional("priority") or 0.0),
        "acquisition": _number(optional("acquisition")),
        "mean": _number(optional("mean")),
        "std": _number(optional("std")),
        "fidelity": _number(optional("fidelity")),
        "hyperparameters": to_json(optional("hyperparameters") or {}),
        "motivation": optional("motivation") or None,
        "repeat": True if optional("repeat") else None,
        # Without an element, a list has no type that both servers agree on.
        "inspired_by": list(optional("inspired_by") or ()) or None,
        "attempts": 0,
        "request": request.token if request.tokens is None else request.tokens[position],
        "based_on": based_on,
        "seconds": _number(request.seconds),
    }
    for name in ("created", "started", "finished"):
        moment = optional(name)
        if moment is not None:
            row[name] = moment

    return {**(optional("properties") or {}), **row}


def _state(outcome: Result | str | None) -> str | None:
    """Return the state that a proposal is created in.

    None if its result follows in the same transaction.
    """
    if outcome is None:
        return State.WAITING.value

    return State.FAILED.value if isinstance(outcome, str) else None


def _results(
    request: Request, positions: Iterable[int], stored: Mapping[str, Mapping[str, Any]]
) -> list[ProposalResult]:
    """Return the known results of new proposals, which are stored in the order of `positions`."""
    results = []
    for position, (id_, row) in zip(positions, stored.items(), strict=True):
        outcome = request.outcomes[position] if request.outcomes else None
        if isinstance(outcome, Result):
            state = State.PRUNED if outcome.partial else State.COMPLETE
            results.append(ProposalResult(id_, state, outcome, finished=row["finished"]))

    return results


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _networks(suggestions: Iterable[SuggestionLike]) -> list[Architecture]:
    networks = []
    for suggestion in suggestions:
        networks.append(suggestion.architecture)
        parent = getattr(suggestion, "parent", None)
        if parent is not None:
            networks.append(parent)

    return networks


def _morphs(suggestions: Iterable[SuggestionLike]) -> list[tuple[str, str, Sequence[str]]]:
    morphs: list[tuple[str, str, Sequence[str]]] = []
    for suggestion in suggestions:
        parent = getattr(suggestion, "parent", None)
        if parent is not None:
            operations = list(getattr(suggestion, "operations", ()))
            morphs.append((parent.key, suggestion.architecture.key, operations))

    return morphs


def checked_priority(priority: Any) -> float:
    """Return a priority as a float.

    Raises:
        UsageError: It is not a finite number, and cannot be ordered.
    """
    number = as_float(priority)
    if number is None or not math.isfinite(number):
        raise UsageError(f"priority must be a finite number, got {shown(priority)}")

    return number

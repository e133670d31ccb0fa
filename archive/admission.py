"""Which suggestions become proposals of a study, decided and stored in one transaction.

Everyone who adds to a study first writes to its node, so that additions happen one after the other: numbers have no
gaps, the budget is never exceeded, and no network is proposed twice, however many searches share the study.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from archive import architectures, evaluations
from archive.errors import UnknownNameError
from archive.graph import Architecture
from archive.records import Result, State
from archive.rows import to_json

if TYPE_CHECKING:
    from neo4j import ManagedTransaction, Record


class Suggestion(Protocol):
    """What an agent suggests: at least an architecture.

    Any of `acquisition`, `mean`, `std`, `priority`, `fidelity`, `hyperparameters`, `parent` (an Architecture) and
    `operations` (what turned the parent into this one) is stored if the suggestion has it.
    """

    @property
    def architecture(self) -> Architecture:
        """The network to evaluate."""


@dataclass(frozen=True)
class Request:
    """One wish to add to a study; `token` makes a repetition of it known as such.

    Attributes:
        study: Name of the study.
        agent: Id of the agent.
        suggestions: What to evaluate.
        budget: The caller's own limit beside the study's.
        unique: Whether to leave out what the study has.
        token: Of the wish.
        basis: What the agent knew when it suggested.
        seconds: What the agent took to suggest.
        outcomes: What each suggestion gave, where that is known already: a result, or the reason why there is none;
            None for a suggestion that is to be evaluated.
        after: How many proposals the study must have; None allows any number.
    """

    study: str
    agent: str
    suggestions: Sequence[Suggestion]
    budget: int | None
    unique: bool
    token: str
    basis: Mapping[str, Any] | None = None
    seconds: float | None = None
    outcomes: Sequence[Result | str | None] | None = None
    after: int | None = None


LOCK = """
MATCH (s:Study {name: $study})
SET s.revision = coalesce(s.revision, 0) + 1
WITH s
OPTIONAL MATCH (g:Agent {id: $agent})
RETURN s.budget AS budget, g.id AS agent
"""

STANDING = """
MATCH (:Study {name: $study})-[:PROPOSED]->(p:Proposal)
RETURN count(p) AS total, max(p.number) AS last,
       sum(CASE WHEN p.state = 'FAILED' THEN 1 ELSE 0 END) AS failed,
       collect(CASE WHEN p.functional_key IN $keys THEN p.functional_key END) AS known,
       collect(CASE WHEN p.request = $token THEN p.id END) AS done
"""

CREATE = """
MATCH (s:Study {name: $study})
MATCH (g:Agent {id: $agent})
UNWIND $rows AS row
MATCH (a:Architecture {key: row.architecture})
CREATE (p:Proposal {id: row.id})
SET p += row, p.created = timestamp(), p.finished = CASE WHEN row.state = 'WAITING' THEN null ELSE timestamp() END
CREATE (s)-[:PROPOSED]->(p)
CREATE (g)-[:MADE]->(p)
CREATE (p)-[:OF]->(a)
"""

STUDIES = "MATCH (s:Study) RETURN s.name AS name ORDER BY name LIMIT 100"
AGENTS = "MATCH (g:Agent) RETURN g.id AS id ORDER BY id LIMIT 100"


def admit(tx: ManagedTransaction, request: Request) -> list[str]:
    """Store what the budget has room for and the study has not seen, and return the ids of the new proposals.

    Raises:
        UnknownNameError: There is no such study or agent.
    """
    study = _locked(tx, request)
    keys = [suggestion.architecture.functional_key for suggestion in request.suggestions]
    standing = tx.run(STANDING, study=request.study, keys=keys, token=request.token).single(strict=True)
    if standing["done"]:
        return sorted(standing["done"])
    if request.after not in (None, standing["total"]):
        return []
    taken = standing["total"] - standing["failed"]
    limits = [limit for limit in (study["budget"], request.budget) if limit is not None]
    chosen = _new(request, set(standing["known"]))[: max(0, min(limits) - taken)]
    if not chosen:
        return []
    admitted = [request.suggestions[at] for at in chosen]
    first = 0 if standing["last"] is None else standing["last"] + 1
    rows = [_row(request, number, at) for number, at in enumerate(chosen, first)]
    architectures.store(tx, _networks(admitted))
    tx.run(CREATE, study=request.study, agent=request.agent, rows=rows).consume()
    if request.outcomes is not None:
        evaluations.record(tx, _results(rows, [request.outcomes[at] for at in chosen]))
    architectures.morph(tx, _morphs(admitted))
    return [row["id"] for row in rows]


def _locked(tx: ManagedTransaction, request: Request) -> Record:
    study = tx.run(LOCK, study=request.study, agent=request.agent).single()
    if study is None:
        raise UnknownNameError("study", request.study, [row["name"] for row in tx.run(STUDIES)])
    if study["agent"] is None:
        raise UnknownNameError("agent", request.agent, [row["id"] for row in tx.run(AGENTS)], "register it first")
    return study


def _new(request: Request, known: set[str]) -> list[int]:
    """Return the positions of the suggestions whose network is new to the study and to the request."""
    if not request.unique:
        return list(range(len(request.suggestions)))
    new = []
    for at, suggestion in enumerate(request.suggestions):
        key = suggestion.architecture.functional_key
        if key not in known:
            known.add(key)
            new.append(at)
    return new


def _row(request: Request, number: int, at: int) -> dict[str, Any]:
    suggestion = request.suggestions[at]
    outcome = None if request.outcomes is None else request.outcomes[at]

    def told(name: str) -> Any:
        return getattr(suggestion, name, None)

    return {
        "id": proposal_id(request.study, number),
        "study": request.study,
        "number": number,
        "state": _state(outcome).value,
        "reason": outcome if isinstance(outcome, str) else None,
        "architecture": suggestion.architecture.key,
        "functional_key": suggestion.architecture.functional_key,
        "agent": request.agent,
        "priority": float(told("priority") or 0.0),
        **{name: _number(told(name)) for name in ("acquisition", "mean", "std", "fidelity")},
        "hyperparameters": to_json(told("hyperparameters") or {}),
        "attempts": 0,
        "request": request.token,
        "based_on": None if request.basis is None else to_json(request.basis),
        "seconds": _number(request.seconds),
    }


def _state(outcome: Result | str | None) -> State:
    if outcome is None:
        return State.WAITING
    return State.FAILED if isinstance(outcome, str) else State.COMPLETE


def _results(rows: Iterable[Mapping[str, Any]], outcomes: Iterable[Result | str | None]) -> list[tuple[str, Result]]:
    both = zip(rows, outcomes, strict=True)
    return [(row["id"], outcome) for row, outcome in both if isinstance(outcome, Result)]


def proposal_id(study: str, number: int) -> str:
    """Return the id of a study's proposal; ids of one study sort by number up to 99,999."""
    return f"{study}#{number:05d}"


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _networks(suggestions: Iterable[Suggestion]) -> list[Architecture]:
    both = [(suggestion.architecture, getattr(suggestion, "parent", None)) for suggestion in suggestions]
    return [network for pair in both for network in pair if network is not None]


def _morphs(suggestions: Iterable[Suggestion]) -> list[tuple[str, str, Sequence[str]]]:
    return [
        (parent.key, suggestion.architecture.key, list(getattr(suggestion, "operations", ())))
        for suggestion in suggestions
        if (parent := getattr(suggestion, "parent", None)) is not None
    ]

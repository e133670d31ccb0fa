"""Imported models as architectures, with or without results.

| result | study | stored                                           |
|--------|-------|--------------------------------------------------|
| no     | no    | the architecture with its costs                  |
| yes    | no    | an evaluation of the task as well                |
| yes    | yes   | a proposal of the study with its evaluation      |
| no     | yes   | a proposal of the study that waits for a trainer |

Importing the same model with the same result again changes nothing. A study has one proposal of a
network at most.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from archive import __version__
from archive.architecture.graph import Architecture
from archive.errors import UsageError
from archive.exchange.importers.external import ExternalResult, add
from archive.queue.admission import Request, admit, known
from archive.store.dump_statements import RAISE_BUDGET
from archive.store.metric_names import add_costs
from archive.store.properties import result_properties, to_json
from archive.store.protocol_names import check_owner
from archive.store.records import Direction, Result, Study
from archive.store.studies.creation import check_new_name

if TYPE_CHECKING:
    from archive.api import Archive

KIND = "import"
"""Kind of the agent that makes the proposals of imported models."""


@dataclass(frozen=True)
class Place:
    """Where a model is added.

    Attributes:
        task: Name of the task.
        protocol: Name of the training protocol.
        objective: Name of the metric that is the value.
        direction: Whether larger or smaller values are better; None leaves it to the task's other
            results.
        study: Name of the study; None for none.
    """

    task: str
    protocol: str
    objective: str
    direction: Direction | None = None
    study: str | None = None

    def __post_init__(self) -> None:
        """Refuse the protocol of another task."""
        check_owner(self.task, self.protocol)


@dataclass(frozen=True)
class _Suggestion:
    """Suggestion of one network (`archive.queue.admission.SuggestionLike`)."""

    architecture: Architecture


def add_model(
    archive: Archive,
    architecture: Architecture,
    *,
    params: int | None = None,
    flops: int | None = None,
    place: Place | None = None,
    result: Result | None = None,
) -> str | None:
    """Store a model; see the module.

    Args:
        archive: The archive.
        architecture: The model.
        params: Number of its trained numbers, if known.
        flops: Multiply-adds of one input, if known.
        place: Where to add it; None stores the architecture alone.
        result: Its result; needs a place.

    Returns:
        Id of the proposal or of the evaluation; None for an architecture alone.

    Raises:
        UsageError: The study has the network already, or the task is on record with the other
            direction.
        StudyConflictError: The study exists with another task, protocol, space, objective or
            direction.
    """
    archive.architectures.add([architecture])
    row = {"key": architecture.key, "params": params, "flops": flops}
    archive.connection.write(lambda tx: add_costs(tx, [row]))
    if place is None:
        return None

    token = _token(architecture, place, result)
    if place.study is not None:
        return _propose(archive, architecture, place, place.study, token, result)

    if result is None:
        raise UsageError("a task needs a result, or a study in which the model is to be trained")

    external = ExternalResult(token, architecture, result, params, flops)
    add(archive, place.task, place.protocol, [external], direction=place.direction)
    return token


def _token(architecture: Architecture, place: Place, result: Result | None) -> str:
    """Return an id that is equal for the same result of the same model."""
    # The same result with its source named later is no other result.
    unnamed = None if result is None else replace(result, provenance={})
    text = to_json({} if unnamed is None else result_properties(unnamed))
    digest = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
    return f"{place.task}/{place.protocol}/{architecture.key}/{digest}"


def _propose(
    archive: Archive,
    architecture: Architecture,
    place: Place,
    name: str,
    token: str,
    result: Result | None,
) -> str:
    direction: Direction = place.direction or "maximise"
    if name not in archive.studies.names():
        check_new_name(name)

    archive.studies.create(
        Study(name, place.task, place.protocol, architecture.space, place.objective, direction)
    )
    agent = archive.proposals.register_agent(KIND, {}, __version__)
    request = Request(
        name, agent, [_Suggestion(architecture)], None, True, token, outcomes=[result]
    )
    # Another process may take the room that was made.
    while not (made := admit(archive.connection, request, again=True)):
        if archive.connection.read(lambda tx: known(tx, name, [architecture])):
            raise UsageError(f"the study {name!r} has this network already: {architecture.key}")

        _make_room(archive, name)

    return made[0].id


def _make_room(archive: Archive, study: str) -> None:
    """Raise the budget of a study if there is no room for another proposal; never lower it."""
    total = sum(
        count for state, count in archive.studies.counts(study).items() if state.name != "FAILED"
    )
    archive.connection.write(
        lambda tx: tx.run(RAISE_BUDGET, study=study, budget=total + 1).consume()
    )

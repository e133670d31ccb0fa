"""Changes from the page, with `--write` only: of studies, proposals and notes.

Each function takes the JSON of a request, and returns the JSON of its answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from archive.constraints import NO_COSTS
from archive.dashboard.endpoints.inputs import archive_of, body, news_of, text_of
from archive.dashboard.wire import json_response
from archive.errors import ProposalStateError, UnknownNameError, UsageError
from archive.queue import lookups
from archive.queue.proposals import Proposals
from archive.store import notes
from archive.store.properties import study_of
from archive.store.records import State
from archive.store.studies.studies import Studies

if TYPE_CHECKING:
    from archive.api import Archive


AGENT = "dashboard"
"""Kind of the agent that makes a user's proposals."""

LARGEST = 1e15
"""Largest priority, either way: below it, floats tell all integers apart."""

Change = Callable[["Archive", dict[str, Any]], dict[str, Any]]


def stop(archive: Archive, document: dict[str, Any]) -> dict[str, Any]:
    """End a study (`stop_study`)."""
    study = text_of(document, "study")
    stopped = stop_study(archive.studies, archive.proposals, study)
    return {"study": study, "cancelled": stopped.cancelled, "budget": stopped.budget}


def cancel(archive: Archive, document: dict[str, Any]) -> dict[str, Any]:
    """Cancel a proposal that waits or runs."""
    id_ = text_of(document, "proposal")
    reason = document.get("reason")
    if reason is not None and not isinstance(reason, str):
        raise UsageError("the reason must be a text")

    return {"study": study_of(id_), "changed": archive.proposals.cancel(id_, reason or None)}


def retry(archive: Archive, document: dict[str, Any]) -> dict[str, Any]:
    """Put a failed or cancelled proposal back into the queue."""
    id_ = text_of(document, "proposal")
    return {"study": study_of(id_), "changed": archive.proposals.retry(id_)}


def prioritise(archive: Archive, document: dict[str, Any]) -> dict[str, Any]:
    """Set the priority of a proposal, or, with `first`, put it before all other proposals."""
    id_ = text_of(document, "proposal")
    if document.get("first") is True:
        lookups.put_first(archive.connection, id_)
    else:
        archive.proposals.prioritise(id_, _priority(document))

    return {"study": study_of(id_), "changed": True}


def enqueue(archive: Archive, document: dict[str, Any]) -> dict[str, Any]:
    """Propose a network of the archive in a study, of whose space it must be a member."""
    # Imported here because the page starts without spaces and agents.
    from archive.agents.ask_tell import enqueueing
    from archive.agents.ask_tell.types import EnqueuedArchitecture

    study = archive.studies.get(text_of(document, "study"))
    key = text_of(document, "network")
    network = archive.architectures.get(archive.architectures.find(key))
    costs = NO_COSTS
    if study.constraints:
        # Imported here because it loads the builders of networks.
        from archive.trainer.tasks import known_costs

        costs = known_costs.of_study(study, archive.connection.settings.home)

    space = enqueueing.space_of(archive, study, costs)
    requested = EnqueuedArchitecture(network, _priority(document))
    made, new = enqueueing.add(archive, study.name, space, requested, AGENT)
    if made is None:
        raise enqueueing.budget_spent(study)

    if not new:
        raise UsageError(
            f"the study {study.name} has this network already, as number {made.number}"
        )

    return {"study": study.name, "proposal": made.id, "number": made.number}


def train_longer(archive: Archive, document: dict[str, Any]) -> dict[str, Any]:
    """Propose a network of a study in a study of the task's longer protocol, made if needed."""
    # Imported here because the page starts without spaces and agents.
    from archive.searches.answer import longer_protocol, longer_study

    study = archive.studies.get(text_of(document, "study"))
    key = archive.architectures.find(text_of(document, "network"))
    name, protocol_name = longer_study(study, longer_protocol(archive, study))
    longer = archive.studies.create(
        replace(study, name=name, protocol=protocol_name, budget=1, config={}, created=None)
    )
    present = lookups.of_network(
        archive.connection, name, archive.architectures.get(key).functional_key
    )
    if present is not None:
        return {"study": name, "proposal": present.id, "number": present.number}

    archive.studies.set_budget(
        name, max(longer.budget, sum(archive.studies.counts(name).values()) + 1)
    )
    return enqueue(archive, {"study": name, "network": key})


def annotate(archive: Archive, document: dict[str, Any]) -> dict[str, Any]:
    """Set note and tags of a study or network; with `seen`, only in place of that note."""
    note = _note(document)
    seen = None if document.get("seen") is None else _note(document["seen"])
    if "network" in document:
        key = archive.architectures.find(text_of(document, "network"))
        stored = notes.write(
            archive.connection, "Architecture", key, note.text, note.tags, seen=seen
        )
        return {"network": key, "note": stored.text, "tags": stored.tags}

    study = text_of(document, "study")
    stored = notes.write(archive.connection, "Study", study, note.text, note.tags, seen=seen)
    return {"study": study, "note": stored.text, "tags": stored.tags}


def _note(document: Any) -> notes.UserNote:
    fields = document if isinstance(document, dict) else {"note": document}
    text = fields.get("note", "")
    tags = fields.get("tags", [])
    if (
        not isinstance(text, str)
        or not isinstance(tags, list)
        or not all(isinstance(tag, str) for tag in tags)
    ):
        raise UsageError("the note must be a text, and the tags a list of texts")

    return notes.UserNote(text, tuple(tags))


def _priority(document: dict[str, Any]) -> float:
    value = document.get("priority", 0)
    # An integer may be too large for a float, whose error would have no name of the value.
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not -LARGEST <= value <= LARGEST
    ):
        raise UsageError(
            f"priority must be a number between {-LARGEST:g} and {LARGEST:g}, got {str(value)[:40]}"
        )

    return float(value)


def _endpoint(change: Change) -> Callable[..., Any]:
    async def answer(request: Request) -> Response:
        document = await body(request)
        done = await run_in_threadpool(change, archive_of(request), document)
        if "study" in done:
            news_of(request).hurry(f"study:{done['study']}")

        return json_response(done)

    return answer


STOPPED = "the study was stopped"
"""Reason of the cancelled proposals."""


@dataclass(frozen=True, slots=True)
class StoppedStudy:
    """What the end of a study changed.

    Attributes:
        cancelled: Number of cancelled proposals.
        budget: The budget: the number of proposals that are evaluated or running.
    """

    cancelled: int
    budget: int


def stop_study(studies: Studies, proposals: Proposals, name: str) -> StoppedStudy:
    """End a study: cancel waiting proposals, and lower the budget to the other ones.

    Its searches end when the running trials have ended; a larger budget continues it.

    Args:
        studies: The studies of the archive.
        proposals: Its queue.
        name: Name of the study.

    Raises:
        UnknownNameError: There is no study of this name.
    """
    cancelled = 0
    while True:
        # In each round, as another process may have raised it.
        studies.set_budget(name, _count_evaluated(studies.counts(name)))
        waiting = proposals.list(name, [State.WAITING])
        if not waiting:
            break

        cancelled += sum(_cancel_if_open(proposals, proposal.id) for proposal in waiting)

    counts = studies.counts(name)
    budget = _count_evaluated(counts) + counts[State.RUNNING]
    studies.set_budget(name, budget)
    return StoppedStudy(cancelled, budget)


def _count_evaluated(counts: Mapping[State, int]) -> int:
    return sum(count for state, count in counts.items() if state.evaluated)


def _cancel_if_open(proposals: Proposals, id_: str) -> bool:
    try:
        return proposals.cancel(id_, STOPPED)
    except (ProposalStateError, UnknownNameError):
        # It has ended meanwhile, or a user has deleted it.
        return False


ROUTES = [
    Route(f"/api/changes/{change.__name__}", _endpoint(change), methods=["POST"])
    for change in (stop, cancel, retry, prioritise, enqueue, train_longer, annotate)
]

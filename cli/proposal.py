"""`archive proposal`: show, cancel and retry proposals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from archive.cli.groups import CommandGroup
from archive.cli.render import json_option, open_archive, print_fields, print_json, print_message
from archive.cli.study.items import ProposalItem, proposal_item
from archive.cli.study.log import LogItem, log_items, print_entry
from archive.values import settings_text, timestamp

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.queue.event_log import Entry
    from archive.store.records import Proposal
    from archive.store.snapshots import ProposalView


@dataclass(frozen=True)
class ProposalDocument(ProposalItem):
    """One proposal with all that is on record about it.

    Attributes:
        study: Name of the study.
        priority: Larger is claimed first.
        fidelity: Fraction of the full training that is asked for.
        hyperparameters: Training settings that belong to it.
        motivation: Reason for it in words, where there is one.
        inspired_by: Keys of the architectures that the motivation goes back to.
        based_on: Evaluations and proposals that the agent knew.
        created: When it was proposed.
        weights: Where its trained weights are, if they were kept.
        cause: Kind of the reason why it failed, or waits again.
        refused_by: Ids of the trainers that could not begin to train it, and do not get it again.
        memory_bytes: Memory that its training needs at least, after an attempt that ran out of
            memory.
        alone: Whether it gets a device without other trials.
        unreachable: Why no living trainer can run it; null where one can, or it does not wait.
        entries: Its events, the oldest first.
    """

    study: str
    priority: float
    fidelity: float | None
    hyperparameters: dict[str, Any]
    motivation: str | None
    inspired_by: list[str]
    based_on: dict[str, Any]
    created: str | None
    weights: str | None
    cause: str | None
    refused_by: list[str]
    memory_bytes: int | None
    alone: bool
    unreachable: str | None
    entries: list[LogItem]


@dataclass(frozen=True)
class ChangedItem:
    """A proposal that a command was asked to change.

    Attributes:
        proposal: Its id.
        changed: Whether this command changed it; false where it was as asked already.
    """

    proposal: str
    changed: bool


@dataclass(frozen=True)
class ChangedList:
    """Proposals that were cancelled or put back into the queue.

    Attributes:
        proposals: In the order of the arguments.
    """

    proposals: list[ChangedItem]


@click.group(cls=CommandGroup)
def proposal() -> None:
    """Show, cancel and retry proposals.

    A proposal is named STUDY#NUMBER, as archive study show and archive trainer status list it.
    """


@proposal.command(short_help="Show all that is on record about a proposal.")
@click.argument("name", metavar="PROPOSAL")
@json_option
@click.pass_context
def show(ctx: click.Context, name: str, as_json: bool) -> None:
    """Show all that is on record about one proposal: its basis, its attempts, its result."""
    from archive.queue import event_log
    from archive.store.properties import study_of, whole_id
    from archive.store.snapshots import read_view

    with open_archive(ctx) as archive:
        id_ = whole_id(name)
        view = read_view(archive.connection, id_, archive.studies.find(study_of(id_)))
        record = archive.proposals.get(id_)
        entries = event_log.read(archive.connection, record.study, id_)
        document = _document(archive, view, record, entries)

    if as_json:
        print_json(document)
    else:
        _print(document, entries)


@proposal.command(short_help="Cancel waiting or running proposals.")
@click.argument("names", metavar="PROPOSAL...", nargs=-1, required=True)
@click.option(
    "--reason", metavar="TEXT", help="Reason, shown with the proposal and in the study's log."
)
@json_option
@click.pass_context
def cancel(ctx: click.Context, names: tuple[str, ...], reason: str | None, as_json: bool) -> None:
    """Cancel waiting or running proposals: all that are named, or none if one of them has ended.

    A running trial is stopped at its next report; a result that arrives nevertheless is kept. A
    cancelled proposal is FAILED with the reason "cancelled": it frees its place in the budget,
    agents do not learn from it and do not propose its network again in the study. archive proposal
    retry puts it back into the queue.
    """
    from archive.queue.cancellation import cancel as cancel_all

    ids = _ids(names)
    with open_archive(ctx) as archive:
        changed = cancel_all(archive.connection, ids, reason)

    _print_changed(ids, changed, "cancelled", "was cancelled already", as_json)


@proposal.command(short_help="Put failed or cancelled proposals back into the queue.")
@click.argument("names", metavar="PROPOSAL...", nargs=-1, required=True)
@json_option
@click.pass_context
def retry(ctx: click.Context, names: tuple[str, ...], as_json: bool) -> None:
    """Put failed or cancelled proposals back into the queue, with all their attempts.

    All that are named, or none if one of them is running or has a result. They count towards the
    budget again, even beyond it.
    """
    from archive.queue.cancellation import retry as retry_all

    ids = _ids(names)
    with open_archive(ctx) as archive:
        changed = retry_all(archive.connection, ids)

    _print_changed(ids, changed, "waits for a trainer again", "waits already", as_json)


def _ids(names: Sequence[str]) -> list[str]:
    from archive.store.properties import whole_id

    return list(dict.fromkeys(whole_id(name) for name in names))


def _document(
    archive: Archive, view: ProposalView, record: Proposal, entries: Sequence[Entry]
) -> ProposalDocument:
    from archive.queue import backlog, workers

    weights = archive.weights.of_evaluation(record.id)
    statuses = workers.statuses(archive.connection)
    unreachable = backlog.unreachable(archive.connection, statuses, record.id)
    return ProposalDocument(
        **vars(proposal_item(archive.studies.get(record.study), view)),
        study=record.study,
        priority=record.priority,
        fidelity=record.fidelity,
        hyperparameters=dict(record.hyperparameters),
        motivation=record.motivation,
        inspired_by=list(record.inspired_by),
        based_on=dict(record.based_on),
        created=timestamp(record.created),
        weights=None if weights is None else weights.uri,
        cause=record.cause,
        refused_by=list(record.refused_by),
        memory_bytes=record.memory_bytes,
        alone=record.alone,
        unreachable=str(unreachable[0]) if unreachable else None,
        entries=log_items(entries),
    )


def _print(document: ProposalDocument, entries: Sequence[Entry]) -> None:
    fields = {"study": document.study, **vars(document)}
    fields["state"] = "cancelled" if document.cancelled else document.state
    fields["alone"] = document.alone or None
    fields["configuration"] = settings_text(document.configuration) or None
    if document.configuration.keys() == document.hyperparameters.keys():
        del fields["configuration"]

    del fields["cancelled"], fields["entries"]
    print_fields({name: value for name, value in fields.items() if value not in (None, {}, [])}, 16)
    for entry in entries:
        print_entry(entry)


def _print_changed(
    ids: Sequence[str], changed: Sequence[bool], done: str, before: str, as_json: bool
) -> None:
    """Write which proposals a command changed.

    Args:
        ids: Ids of the proposals.
        changed: Whether each was changed.
        done: Text for a changed proposal.
        before: Text for the others.
        as_json: Whether to write JSON.
    """
    items = [ChangedItem(id_, is_new) for id_, is_new in zip(ids, changed, strict=True)]
    if as_json:
        print_json(ChangedList(items))
        return

    for item in items:
        print_message(f"{item.proposal} {done if item.changed else before}")

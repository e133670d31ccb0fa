"""`archive proposal`: show, cancel and retry proposals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from archive.cli.groups import CommandGroup
from archive.cli.render import json_option, open_archive, print_fields, print_json, print_message
from archive.cli.study.items import proposal_item, timestamp

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.queue.event_log import Entry


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
    from archive.cli.study.log import entry_item
    from archive.queue import event_log

    with open_archive(ctx) as archive:
        described = _described(archive, _whole(name))
        entries = event_log.read(archive.connection, described["study"], described["proposal"])

    if as_json:
        print_json({**described, "entries": [entry_item(entry) for entry in entries]})
    else:
        _print(described, entries)


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

    _say(ids, changed, "cancelled", "was cancelled already", as_json)


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

    _say(ids, changed, "waits for a trainer again", "waits already", as_json)


def _ids(names: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(map(_whole, names)))


def _whole(name: str) -> str:
    from archive.store.properties import whole_id

    return whole_id(name)


def _described(archive: Archive, id_: str) -> dict[str, Any]:
    """Return a proposal without its history, as `archive.cli.documents.log.ProposalDocument` lists
    it.
    """
    from archive.queue import reachability, workers
    from archive.store.snapshots import read_view

    view = read_view(archive.connection, id_)
    record = archive.proposals.get(id_)
    weights = archive.weights.of_evaluation(id_)
    blocked = reachability.unreachable(
        archive.connection, workers.statuses(archive.connection), id_
    )
    return {
        "study": record.study,
        **proposal_item(archive.studies.get(record.study), view),
        "priority": record.priority,
        "fidelity": record.fidelity,
        "hyperparameters": record.hyperparameters,
        "motivation": record.motivation,
        "inspired_by": list(record.inspired_by),
        "based_on": record.based_on,
        "created": timestamp(record.created),
        "weights": weights and weights.uri,
        "cause": record.cause,
        "refused_by": list(record.refused_by),
        "memory_bytes": record.memory_bytes,
        "alone": record.alone,
        "unreachable": str(blocked[0]) if blocked else None,
    }


def _print(described: dict[str, Any], entries: Sequence[Entry]) -> None:
    from archive.cli.study.log import print_entry

    state = "cancelled" if described["cancelled"] else described["state"]
    fields = {**described, "state": state, "cancelled": None, "alone": described["alone"] or None}
    print_fields({name: value for name, value in fields.items() if value not in (None, {}, [])}, 16)
    for entry in entries:
        print_entry(entry)


def _say(
    ids: Sequence[str], changed: Sequence[bool], done: str, before: str, as_json: bool
) -> None:
    if as_json:
        items = [{"proposal": id_, "changed": each} for id_, each in zip(ids, changed, strict=True)]
        print_json({"proposals": items})
        return

    for id_, each in zip(ids, changed, strict=True):
        print_message(f"{id_} {done if each else before}")

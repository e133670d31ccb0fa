"""`archive db gc` and `archive db repair`: unneeded files, and records that cannot be read."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from archive.cli.parameters import AliasedOption, Count, Duration, settings_of
from archive.cli.render import json_option, open_archive, print_json, print_line, print_message
from archive.errors import UsageError
from archive.settings import load

if TYPE_CHECKING:
    from archive.exchange.repair import RepairOutcome
    from archive.trainer.storage.garbage_collection import ClearedHistory

MOST_SHOWN = 5
"""Number of ids in a line."""


@dataclass(frozen=True)
class CollectionDocument:
    """Weights and history that were removed, or would be.

    Attributes:
        dry_run: Whether nothing was removed.
        freed_bytes: Bytes of all files.
        removed: Bytes of each weights file.
        orphans: Bytes of each file that the archive does not know.
        kept: Number of weights files that were kept, by reason.
        history: Expired workers, logs and states.
    """

    dry_run: bool
    freed_bytes: int
    removed: dict[str, int]
    orphans: dict[str, int]
    kept: dict[str, int]
    history: ClearedHistory


@click.command()
@click.option("--dry-run", is_flag=True, help="Show what would be deleted; delete nothing.")
@click.option(
    "--keep-best",
    type=Count(0),
    default=5,
    help="Keep the weights of the N best evaluations of each study; of several objectives also "
    "the whole Pareto set, "
    "unless N is 0.",
)
@click.option(
    "--keep-within",
    "recent_seconds",
    cls=AliasedOption,
    aliases=["--grace"],
    type=Duration(),
    default="1d",
    help="Keep weights that were saved or used within this time. A plain number counts seconds.",
)
@click.option(
    "--orphans", is_flag=True, help="Also delete old files that this archive does not know."
)
@click.option(
    "--history",
    "history_seconds",
    type=Duration(unit="d"),
    default="90d",
    help="Keep records of ended trainers, and logs and checkpoints of ended trials, for this "
    "long. A plain number "
    "counts days.",
)
@click.option(
    "--weights",
    metavar="DIR|URL",
    show_default="the trainers' folder",
    help="Folder or fsspec URL of the weights.",
)
@json_option
@click.pass_context
def gc(
    ctx: click.Context,
    dry_run: bool,
    keep_best: int,
    recent_seconds: float,
    orphans: bool,
    history_seconds: float,
    weights: str | None,
    as_json: bool,
) -> None:
    """Delete unneeded weights and expired history.

    Weights are kept if they are among the best of a study, if a waiting or running proposal may
    inherit them, or if they are recent. Evaluations are never deleted, only their weights. Use
    --orphans only where no other archive keeps its weights in the same place.

    The best are ranked as by archive study best, by measured values: results that meet the
    constraints come first, then those that violate them least; whole trainings come before those that paused at
    a rung.

    Records of trainers with a last heartbeat older than --history are deleted, and with them the
    attempts that the log of a study shows; so are the logs on this machine, and the checkpoints, of
    trials that ended before.
    """
    from archive.store.weights import Policy
    from archive.trainer.storage.garbage_collection import clear, collect

    with open_archive(ctx) as archive:
        settings = archive.connection.settings
        folder = weights or settings.place_of_weights
        policy = Policy(keep_best, recent_seconds)
        collected = collect(archive, folder, policy, dry_run=dry_run, orphans=orphans)
        history = clear(
            archive,
            settings.home,
            history_seconds,
            checkpoints_at=settings.place_of_checkpoints,
            dry_run=dry_run,
        )

    document = CollectionDocument(
        dry_run=dry_run,
        freed_bytes=collected.freed + history.freed,
        removed=collected.removed,
        orphans=collected.orphans,
        kept=collected.kept,
        history=history,
    )
    if as_json:
        print_json(document)
    else:
        _print_collected(document)


def _print_collected(document: CollectionDocument) -> None:
    would = "would remove" if document.dry_run else "removed"
    history = document.history
    for worker in history.workers:
        print_line(f"{would} worker {worker}")

    for kind, files in (
        ("weights", document.removed),
        ("orphan", document.orphans),
        ("past", history.files),
    ):
        for uri, size in files.items():
            print_line(f"{would} {kind} {uri} ({size / 2**20:.1f} MiB)")

    kept = [f"{count} {reason}" for reason, count in sorted(document.kept.items())]
    count = len(document.removed) + len(document.orphans) + len(history.files)
    workers = f", {len(history.workers)} workers" if history.workers else ""
    freed = document.freed_bytes / 2**20
    print_message(
        f"{would} {count} files, {freed:.1f} MiB{workers}; kept: {', '.join(kept) or 'none'}"
    )


@click.command()
@click.option(
    "--from",
    "source",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="DUMP",
    help="Replace the database by this dump instead, as where the damage cannot be repaired.",
)
@json_option
@click.pass_context
def repair(ctx: click.Context, source: Path | None, as_json: bool) -> None:
    """Repair the embedded archive after its files were damaged.

    The server is stopped, and the damaged database is copied first. Records that cannot be read are
    removed with the edges that lead to them, and every index is built again. Then the archive is
    compared with the last automatic dump: archive load brings back what the dump still has. Exit
    with 1 if damage remains.
    """
    from archive.exchange.repair import repair as mend
    from archive.exchange.repair import replace_by_dump

    settings = load(**settings_of(ctx))
    if not settings.embedded:
        raise UsageError(
            f"only an embedded archive can be repaired, and the archive is on {settings.uri}"
        )

    outcome = mend(settings) if source is None else replace_by_dump(settings, source)
    if as_json:
        print_json(outcome)
    else:
        _print_repaired(outcome)

    if outcome.remaining:
        sys.exit(1)


def _print_repaired(outcome: RepairOutcome) -> None:
    for fault in outcome.damage:
        print_line(f"damage: {fault}")

    if not outcome.damage:
        print_line("no damage found; every index was built again")

    for name, number in sorted(outcome.removed.items()):
        print_line(f"lost: {number} {name}")

    if outcome.without_result:
        print_line(f"lost: the results of the proposals {_some(outcome.without_result)}")

    for fault in outcome.remaining:
        print_line(f"remains: {fault}")

    print_message(f"the database as it was before: {outcome.copy}, which may be deleted")
    if outcome.replaced:
        print_message(f"the archive now has the content of {outcome.dump}")
    elif outcome.recoverable:
        kinds = []
        for kind, ids in outcome.recoverable.items():
            kinds.append(f"{len(ids)} {kind} records ({_some(ids)})")

        print_message(f"archive load {outcome.dump} brings back {', '.join(kinds)}")
    elif outcome.dump is not None:
        print_message(f"the last automatic dump has nothing that the archive lacks: {outcome.dump}")
    else:
        print_message("there is no automatic dump to compare with")

    if outcome.remaining:
        print_message(
            f"archive db repair --from {outcome.dump or 'DUMP'} replaces the database by a dump"
        )


def _some(ids: list[str]) -> str:
    more = f", … {len(ids) - MOST_SHOWN} more" if len(ids) > MOST_SHOWN else ""
    return ", ".join(ids[:MOST_SHOWN]) + more

"""`archive db gc`: removes trained weights that nobody needs, and what is long past."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from archive.cli.render import json_option, open_archive, print_json, print_line, print_message

if TYPE_CHECKING:
    from archive.trainer.storage.history_gc import Cleared
    from archive.trainer.storage.weights_gc import Collected


@click.command()
@click.option("--dry-run", is_flag=True, help="Say what would be removed, and remove nothing.")
@click.option(
    "--keep-best",
    type=click.IntRange(0),
    default=5,
    show_default=True,
    help="Keep the weights of so many of the best evaluations of each study.",
)
@click.option(
    "--grace",
    "grace_seconds",
    type=click.FloatRange(0),
    default=86400.0,
    show_default=True,
    help="Keep weights that were saved, or used, less than so many seconds ago.",
)
@click.option("--orphans", is_flag=True, help="Also remove old files that this archive does not know.")
@click.option(
    "--history",
    "days",
    type=click.FloatRange(0),
    default=90.0,
    show_default=True,
    help="Keep gone workers, logs and states of ended trials for so many days.",
)
@click.option("--weights", metavar="PLACE", help="A folder or an fsspec URL [where trainers keep them].")
@json_option
@click.pass_context
def gc(
    ctx: click.Context,
    dry_run: bool,
    keep_best: int,
    grace_seconds: float,
    orphans: bool,
    days: float,
    weights: str | None,
    as_json: bool,
) -> None:
    """Remove trained weights that nobody needs, and what is long past.

    Weights stay if they are among the best of a study, if a waiting or running proposal may begin with them, or if
    they are young. Everything else about an evaluation stays in any case. --orphans is for a place that no
    other archive keeps weights in.

    Trainers that were not heard of for --history days are forgotten, and with them what the log of a study tells of
    attempts; logs and states of trials that ended as long ago are removed from this machine.
    """
    from archive.store.retention import Policy
    from archive.trainer.storage.history_gc import clear
    from archive.trainer.storage.weights_gc import collect

    with open_archive(ctx) as archive:
        place = weights or archive.connection.settings.place_of_weights
        found = collect(archive, place, Policy(keep_best, grace_seconds), dry_run=dry_run, orphans=orphans)
        past = clear(archive, archive.connection.settings.home, 86_400.0 * days, dry_run=dry_run)
    if as_json:
        freed = found.freed + past.freed
        print_json({"dry_run": dry_run, "freed_bytes": freed, **vars(found), "history": vars(past)})
    else:
        _show(found, past, dry_run)


def _show(found: Collected, past: Cleared, dry_run: bool) -> None:
    would = "would remove" if dry_run else "removed"
    for worker in past.workers:
        print_line(f"{would} worker {worker}")
    for what, gone in (("weights", found.removed), ("orphan", found.orphans), ("past", past.files)):
        for uri, size in gone.items():
            print_line(f"{would} {what} {uri} ({size / 2**20:.1f} MiB)")
    kept = ", ".join(f"{count} {reason}" for reason, count in sorted(found.kept.items())) or "none"
    count = len(found.removed) + len(found.orphans) + len(past.files)
    workers = f", {len(past.workers)} workers" if past.workers else ""
    freed = (found.freed + past.freed) / 2**20
    print_message(f"{would} {count} files, {freed:.1f} MiB{workers}; kept: {kept}")

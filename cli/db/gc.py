"""`archive db gc`: deletes unneeded weights and expired history."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from archive.cli.parameters import AliasedOption, Count, Duration
from archive.cli.render import json_option, open_archive, print_json, print_line, print_message

if TYPE_CHECKING:
    from archive.trainer.storage.history_gc import ClearedHistory
    from archive.trainer.storage.weights_gc import CollectedWeights


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
    show_default="that of the trainers",
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

    The best are those of archive study best, by measured values: results that meet the constraints
    come first, then those that violate them least; whole trainings come before those that paused at
    a rung.

    Records of trainers whose last heartbeat is older than --history are deleted, and with them the
    attempts that the log of a study shows; so are the logs on this machine, and the checkpoints, of
    trials that ended before.
    """
    from archive.store.weights.retention import Policy
    from archive.trainer.storage.history_gc import clear
    from archive.trainer.storage.weights_gc import collect

    with open_archive(ctx) as archive:
        place = weights or archive.connection.settings.place_of_weights
        weights_gone = collect(
            archive, place, Policy(keep_best, recent_seconds), dry_run=dry_run, orphans=orphans
        )
        settings = archive.connection.settings
        place_of_checkpoints = settings.place_of_checkpoints
        past = clear(
            archive,
            settings.home,
            history_seconds,
            checkpoints_at=place_of_checkpoints,
            dry_run=dry_run,
        )

    if as_json:
        freed = weights_gone.freed + past.freed
        print_json(
            {"dry_run": dry_run, "freed_bytes": freed, **vars(weights_gone), "history": vars(past)}
        )
    else:
        _show(weights_gone, past, dry_run)


def _show(collected: CollectedWeights, past: ClearedHistory, dry_run: bool) -> None:
    would = "would remove" if dry_run else "removed"
    for worker in past.workers:
        print_line(f"{would} worker {worker}")

    for what, gone in (
        ("weights", collected.removed),
        ("orphan", collected.orphans),
        ("past", past.files),
    ):
        for uri, size in gone.items():
            print_line(f"{would} {what} {uri} ({size / 2**20:.1f} MiB)")

    kept = (
        ", ".join(f"{count} {reason}" for reason, count in sorted(collected.kept.items())) or "none"
    )
    count = len(collected.removed) + len(collected.orphans) + len(past.files)
    workers = f", {len(past.workers)} workers" if past.workers else ""
    freed = (collected.freed + past.freed) / 2**20
    print_message(f"{would} {count} files, {freed:.1f} MiB{workers}; kept: {kept}")

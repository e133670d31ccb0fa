"""`archive db repair`: removes what cannot be read, and names what was lost."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from archive.cli.parameters import settings_of
from archive.cli.render import json_option, print_json, print_line, print_message
from archive.errors import UsageError
from archive.settings import load

if TYPE_CHECKING:
    from archive.exchange.repair import RepairOutcome

MOST_SHOWN = 5
"""Number of ids in a line."""


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
        print_json(
            {
                **vars(outcome),
                "copy": str(outcome.copy),
                "dump": outcome.dump and str(outcome.dump),
                "replaced": source is not None,
            }
        )
    else:
        _show(outcome, replaced=source is not None)

    if outcome.remaining:
        sys.exit(1)


def _show(outcome: RepairOutcome, *, replaced: bool) -> None:
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
    if replaced:
        print_message(f"the archive is now that of {outcome.dump}")
    elif outcome.recoverable:
        kinds = ", ".join(
            f"{len(ids)} {kind} records ({_some(ids)})" for kind, ids in outcome.recoverable.items()
        )
        print_message(f"archive load {outcome.dump} brings back {kinds}")
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

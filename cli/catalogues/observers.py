"""`archive observers`: where trainers can report their trials to, and the option `--observe`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from archive.cli.catalogues.registered import cell, loaded, report_unused
from archive.cli.names import OBSERVER
from archive.cli.parameters import settings_of
from archive.cli.render import json_option, print_json, print_table
from archive.values import read_summary

if TYPE_CHECKING:
    from archive.trainer.observers.base import TrialObserver

COLUMNS = ("observer", "summary", "options", "missing")

observe_option = click.option(
    "--observe",
    type=OBSERVER,
    metavar="NAME[:KEY=VALUE,…]",
    multiple=True,
    help="Report trials to an observer as well: tensorboard, mlflow, wandb (archive observers). "
    "May be repeated.",
)


@click.command(short_help="List the observers, which receive metrics of trials.")
@json_option
def observers(as_json: bool) -> None:
    """List the observers, which receive the metrics of trials: options, and packages that are not
    installed.

    `archive trainer` and `archive search` take them as --observe NAME[:KEY=VALUE,…].
    """
    from archive.trainer.observers import registry

    names = registry.names()
    report_unused(registry.registry)
    kinds = {kind: name for name in names for kind in loaded([name], registry.get)}
    rows = [_described(name, kind) for kind, name in kinds.items()]
    if as_json:
        print_json({"observers": rows})
    else:
        print_table(COLUMNS, [[cell(row[column]) for column in COLUMNS] for row in rows])


def created(ctx: click.Context, texts: Sequence[str]) -> list[tuple[str, TrialObserver]]:
    """Return the names and the observers of the option, in its order.

    Raises:
        UsageError: There is no such observer, a package is missing, or an option cannot be used.
    """
    if not texts:
        return []

    from archive import settings
    from archive.trainer.observers import registry

    home = settings.load(**settings_of(ctx)).home
    return [registry.create(text, home) for text in texts]


def _described(name: str, kind: type[TrialObserver]) -> dict[str, Any]:
    from archive.trainer.observers import registry

    return {
        "observer": name,
        "summary": read_summary(kind),
        "options": {
            key: value if value is None else str(value)
            for key, value in registry.options(kind).items()
        },
        "missing": list(registry.missing(kind)),
        "extra": kind.extra,
    }

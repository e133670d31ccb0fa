"""`archive recipes`: by which recipes networks can be trained on this machine."""

from __future__ import annotations

from dataclasses import asdict

import click

from archive.cli.catalogues.registered import report_unused
from archive.cli.parameters import settings_of
from archive.cli.render import json_option, print_json, print_table

COLUMNS = ("recipe", "origin", "target")


@click.command(short_help="List the recipes.")
@json_option
@click.pass_context
def recipes(ctx: click.Context, as_json: bool) -> None:
    """List the recipes of this machine, by which networks are trained: `archive search --recipe
    NAME`.

    They are the built-in one, those of installed packages, and those of recipes.toml in the folder
    of the archive. Nothing is imported.
    """
    from archive import settings
    from archive.trainer.recipes.registry import RecipeAccess, registry

    sources = RecipeAccess(settings.load(**settings_of(ctx)).home).sources.values()
    rows = [{"recipe": row.pop("name"), **row} for row in map(asdict, sources)]
    if as_json:
        print_json({"recipes": rows})
    else:
        print_table(COLUMNS, [[row[column] for column in COLUMNS] for row in rows])

    report_unused(registry)

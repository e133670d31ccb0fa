"""`archive spaces`: the sets of architectures that can be searched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from archive.cli.catalogues.registered import cell, loaded, report_unused
from archive.cli.render import json_option, print_json, print_table
from archive.values import read_summary

if TYPE_CHECKING:
    from archive.spaces.base import Space

MOST_SHOWN = 40
"""Largest number of operations in a cell of the table."""

COLUMNS = ("space", "summary", "cells", "operations", "settings")


@click.command()
@json_option
def spaces(as_json: bool) -> None:
    """List the search spaces: their networks, whether these are cells, their operations and
    settings.
    """
    from archive import spaces as registry

    report_unused(registry.registry)
    rows = [_described(space) for space in loaded(registry.names(), registry.get)]
    if as_json:
        print_json({"spaces": rows})
    else:
        print_table(COLUMNS, [[_shown(row[column]) for column in COLUMNS] for row in rows])


def _shown(value: Any) -> Any:
    many = isinstance(value, list) and len(value) > MOST_SHOWN
    return f"{len(value)}, listed by --json" if many else cell(value)


def _described(space: Space) -> dict[str, Any]:
    from archive.architecture.operations import INPUT, OUTPUT, vocabulary

    return {
        "space": space.name,
        "summary": read_summary(type(space)),
        "cells": space.is_cell,
        "operations": [
            label for label in vocabulary(space.name).operations if label not in (INPUT, OUTPUT)
        ],
        "settings": space.config,
    }

"""`archive kernels`: the distances between architectures."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import click

from archive.cli.catalogues.registered import cell, loaded, report_unused
from archive.cli.render import json_option, print_json, print_table
from archive.values import read_summary

if TYPE_CHECKING:
    from archive.kernels.base import Distance

COLUMNS = ("kernel", "summary", "components", "settings")


@click.command()
@json_option
def kernels(as_json: bool) -> None:
    """List the kernels: what each measures, the components of its distance, its settings and their
    defaults.

    `archive arch distance` and `archive arch nearest` use them; --set NAME=VALUE changes a setting.
    """
    from archive import kernels as registry
    from archive.kernels import registry as plug_ins

    report_unused(plug_ins)
    rows = [_described(kernel) for kernel in loaded(registry.names(), registry.get)]
    if as_json:
        print_json({"kernels": rows})
    else:
        print_table(COLUMNS, [[cell(row[column]) for column in COLUMNS] for row in rows])


def _described(kernel: Distance[Any]) -> dict[str, Any]:
    settings = inspect.signature(type(kernel)).parameters.values()
    return {
        "kernel": kernel.name,
        "summary": read_summary(type(kernel)),
        "components": list(kernel.components),
        "settings": {
            each.name: each.default for each in settings if each.default is not each.empty
        },
    }

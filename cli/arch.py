"""`archive arch`: look at architectures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from archive.cli.architecture_argument import architecture_of
from archive.cli.assignments import assignments
from archive.cli.render import json_option, messages, open_archive, out, print_json, print_table
from archive.errors import InvalidArchitectureError, UsageError

if TYPE_CHECKING:
    from archive.graph import Architecture

EVALUATIONS = """
MATCH (:Architecture {key: $key})<-[:OF]-(e:Evaluation)-[:ON]->(t:Task)
RETURN e.id AS evaluation, t.name AS task, t.protocol AS protocol, e.value AS value, e.epochs AS epochs,
       e.seconds AS seconds
ORDER BY task, evaluation
"""


DISTANCE_COLUMNS = ("kernel", "component", "distance")


@click.group()
def arch() -> None:
    """Show and compare architectures."""


@arch.command()
@click.argument("key")
@json_option
@click.pass_context
def show(ctx: click.Context, key: str, as_json: bool) -> None:
    """Show one architecture by its key, or the beginning of it: layers, edges, evaluations, relatives."""
    from archive import codec

    with open_archive(ctx) as archive:
        full = archive.architectures.find(key)
        architecture = archive.architectures.get(full)
        details = archive.architectures.details(full)
        answer = archive.query(EVALUATIONS, {"key": full})
    evaluations = [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
    if as_json:
        print_json({**details, "architecture": codec.to_json(architecture), "evaluations": evaluations})
        return
    _describe(details)
    rows = [
        (u, layer.op, layer.units, layer.stride, " ".join(map(str, architecture.children[u])))
        for u, layer in enumerate(architecture.layers)
    ]
    print_table(("layer", "operation", "units", "stride", "feeds"), rows)
    if evaluations:
        print_table(answer.columns, answer.rows, title="evaluations")


@arch.command()
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@click.option("--kind", "kinds", multiple=True, help="A kernel's name; may be repeated [all of them].")
@click.option("--set", "given", multiple=True, metavar="NAME=VALUE", help="A setting of the kernel; may be repeated.")
@json_option
@click.pass_context
def distance(
    ctx: click.Context, first: str, second: str, kinds: tuple[str, ...], given: tuple[str, ...], as_json: bool
) -> None:
    """Show how far apart two architectures are, by any kernel.

    A and B are keys of the archive or their beginnings, files of JSON, or NAS-Bench-201 strings.
    """
    from archive import kernels

    settings = assignments(given, "a setting")
    if settings and len(kinds) != 1:
        raise UsageError(f"--set needs one --kind, got {len(kinds)}")
    chosen = [kernels.get(kind, **settings) for kind in kinds or kernels.names()]
    pair = (architecture_of(ctx, first), architecture_of(ctx, second))
    rows = [row for kernel in chosen for row in _distances(kernel, *pair, asked=bool(kinds))]
    if as_json:
        print_json([dict(zip(DISTANCE_COLUMNS, row, strict=True)) for row in rows])
    else:
        print_table(DISTANCE_COLUMNS, rows)


def _distances(kernel: Any, first: Architecture, second: Architecture, *, asked: bool) -> list[tuple[str, str, float]]:
    """Return rows; a kernel that was not asked for by name and cannot compare the two says so and is left out."""
    try:
        stack = kernel.distances([first], [second]).stack
    except InvalidArchitectureError as error:
        if asked or first.space != second.space:
            raise
        messages().print(f"[yellow]{kernel.name} is left out: {error}[/]")
        return []
    return [(kernel.name, name, float(value)) for name, value in zip(kernel.components, stack[:, 0, 0], strict=True)]


def _describe(details: dict[str, Any]) -> None:
    for name, value in details.items():
        if name != "revision" and value not in (None, []):
            text = ", ".join(map(str, value)) if isinstance(value, list) else value
            out().print(f"[bold]{name:<16}[/] {text}")

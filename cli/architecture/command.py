"""`archive arch`: look at architectures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from archive.assignments import assignments
from archive.cli.architecture.argument import architecture_of, is_key
from archive.cli.render import json_option, open_archive, print_fields, print_json, print_message, print_table
from archive.errors import InvalidArchitectureError, UsageError

if TYPE_CHECKING:
    from archive.architecture.graph import Architecture

EVALUATIONS = """
MATCH (:Architecture {key: $key})<-[:OF]-(e:Evaluation)-[:ON]->(t:Task)
RETURN e.id AS evaluation, t.name AS task, t.protocol AS protocol, e.value AS value, e.epochs AS epochs,
       e.seconds AS seconds
ORDER BY task, evaluation
"""


DISTANCE_COLUMNS = ("kernel", "component", "distance")
NEIGHBOUR_COLUMNS = ("architecture", "distance", "layers", "edges", "evaluations")


@click.group()
def arch() -> None:
    """Show and compare architectures."""


@arch.command()
@click.argument("key")
@json_option
@click.pass_context
def show(ctx: click.Context, key: str, as_json: bool) -> None:
    """Show one architecture by its key, or the beginning of it: layers, edges, evaluations, relatives."""
    from archive.architecture import codec

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


@arch.command()
@click.argument("key")
@click.option("-k", "--k", type=click.IntRange(1), default=10, show_default=True, help="How many.")
@click.option("--kind", default="otmann", show_default=True, help="A kernel's name.")
@click.option("--component", help="The component that counts [the mean of those not normalised].")
@click.option("--set", "given", multiple=True, metavar="NAME=VALUE", help="A setting of the kernel; may be repeated.")
@click.option("--study", help="Only what this study has evaluated.")
@json_option
@click.pass_context
def nearest(
    ctx: click.Context,
    key: str,
    k: int,
    kind: str,
    component: str | None,
    given: tuple[str, ...],
    study: str | None,
    as_json: bool,
) -> None:
    """Show the architectures of the archive that are nearest to one, by any kernel.

    KEY is a key of the archive or its beginning, a file of JSON, or a NAS-Bench-201 string. All studies are searched,
    for architectures of the same space: others have no distance.
    """
    from archive.agents.nearest.search import Nearest

    settings = assignments(given, "a setting")
    network = key if is_key(key) else architecture_of(ctx, key)
    with open_archive(ctx) as archive:
        search = Nearest(archive, notify=print_message)
        found = search.similar(network, k, kind, component=component, study=study, **settings)
    rows = [vars(neighbour) for neighbour in found.neighbours]
    if as_json:
        print_json({"neighbours": rows, **{name: getattr(found, name) for name in ("certain", "compared", "among")}})
        return
    print_table(NEIGHBOUR_COLUMNS, [list(row.values()) for row in rows])
    if not found.exact:
        certain = f"the first {found.certain} are certain, others may be nearer than the rest"
        print_message((f"{found.compared} of {found.among} architectures were compared: {certain}", "yellow"))


def _distances(kernel: Any, first: Architecture, second: Architecture, *, asked: bool) -> list[tuple[str, str, float]]:
    """Return rows; a kernel that was not asked for by name and cannot compare the two says so and is left out."""
    try:
        stack = kernel.distances([first], [second]).stack
    except InvalidArchitectureError as error:
        if asked or first.space != second.space:
            raise
        print_message((f"{kernel.name} is left out: {error}", "yellow"))
        return []
    return [(kernel.name, name, float(value)) for name, value in zip(kernel.components, stack[:, 0, 0], strict=True)]


def _describe(details: dict[str, Any]) -> None:
    told = {name: value for name, value in details.items() if name != "revision" and value not in (None, [])}
    # Numbers as they are stored.
    print_fields({name: value if isinstance(value, list) else str(value) for name, value in told.items()}, 16)

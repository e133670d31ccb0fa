"""`archive arch`: architectures, their distances and neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from archive.argument_checks import assignments
from archive.cli.architecture.argument import architecture_of, is_key
from archive.cli.architecture.diff import diff
from archive.cli.architecture.draw import draw
from archive.cli.architecture.proxies import proxies
from archive.cli.groups import CommandGroup
from archive.cli.names import KERNEL, STUDY
from archive.cli.parameters import AliasedOption, Count
from archive.cli.render import (
    json_option,
    open_archive,
    print_fields,
    print_json,
    print_message,
    print_table,
)
from archive.errors import InvalidArchitectureError, UsageError
from archive.values import counted

if TYPE_CHECKING:
    from archive.architecture.graph import Architecture

EVALUATIONS = """
MATCH (:Architecture {key: $key})<-[:OF]-(e:Evaluation)-[:ON]->(t:Task)
RETURN e.id AS evaluation, t.name AS task, t.protocol AS protocol, e.value AS value, e.epochs AS epochs,
       e.seconds AS seconds
ORDER BY task, evaluation
"""

_UNSET: dict[str, Any] = {"params": None, "flops": None, "note": None, "tags": []}
DISTANCE_COLUMNS = ("kernel", "component", "distance")
NEIGHBOUR_COLUMNS = ("architecture", "distance", "layers", "edges", "evaluations")


setting_option = click.option(
    "--set",
    "assigned",
    multiple=True,
    metavar="NAME=VALUE",
    help="Setting of the kernel. May be repeated.",
)


@click.group(cls=CommandGroup)
def arch() -> None:
    """Show, draw and compare architectures; find neighbours."""


arch.add_command(diff)
arch.add_command(draw)
arch.add_command(proxies)


@arch.command(short_help="Show an architecture and its evaluations.")
@click.argument("key")
@json_option
@click.pass_context
def show(ctx: click.Context, key: str, as_json: bool) -> None:
    """Show an architecture: layers, edges, evaluations, zero-cost proxies, parents and children.

    KEY is the key of the architecture, or a prefix of it.
    """
    from archive.architecture import codec, texts
    from archive.database.driver import hide_arrays

    # Only keys go to the database.
    hide_arrays()
    with open_archive(ctx) as archive:
        full = archive.architectures.find(key)
        architecture = archive.architectures.get(full)
        details = archive.architectures.details(full)
        answer = archive.query(EVALUATIONS, {"key": full})
        scores = archive.proxies.of_architecture(full)

    evaluations = [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
    text = texts.to_text(architecture)
    if as_json:
        described = {**_UNSET, **{name: details[name] for name in details if name != "revision"}}
        graph = codec.to_dict(architecture)
        print_json(
            {
                **described,
                "text": text,
                "architecture": graph,
                "evaluations": evaluations,
                "proxies": scores,
            }
        )
        return

    _describe({**details, "text": text})
    rows = [
        (u, layer.op, layer.units, layer.stride, " ".join(map(str, architecture.children[u])))
        for u, layer in enumerate(architecture.layers)
    ]
    print_table(("layer", "operation", "units", "stride", "feeds"), rows)
    if evaluations:
        print_table(answer.columns, answer.rows, title="evaluations")

    if scores:
        print_table(
            list(scores[0]), [list(each.values()) for each in scores], title="zero-cost proxies"
        )


@arch.command()
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@click.option(
    "--kernel",
    "names",
    cls=AliasedOption,
    aliases=["--kind"],
    type=KERNEL,
    multiple=True,
    show_default="all kernels",
    help="Kernel (archive kernels). May be repeated.",
)
@setting_option
@json_option
@click.pass_context
def distance(
    ctx: click.Context,
    first: str,
    second: str,
    names: tuple[str, ...],
    assigned: tuple[str, ...],
    as_json: bool,
) -> None:
    """Show the distance between two architectures.

    A and B are keys of the archive or their prefixes, files, NAS-Bench-201 strings, or genotypes of
    DARTS (Genotype(normal=[...], ...)). A file has the JSON of an architecture, a string or a
    genotype.
    """
    from archive import kernels

    settings = assignments(assigned, "a setting")
    if settings and len(names) != 1:
        raise UsageError(f"--set needs one --kernel, got {len(names)}")

    chosen = [kernels.get(name, **settings) for name in names or kernels.names()]
    pair = (architecture_of(ctx, first), architecture_of(ctx, second))
    rows = [row for kernel in chosen for row in _distances(kernel, *pair, named=bool(names))]
    if as_json:
        print_json({"distances": [dict(zip(DISTANCE_COLUMNS, row, strict=True)) for row in rows]})
    else:
        print_table(DISTANCE_COLUMNS, rows)


@arch.command(short_help="Show the nearest neighbours of an architecture.")
@click.argument("key")
@click.option("-k", "--k", type=Count(1), default=10, help="Number of neighbours.")
@click.option(
    "--kernel",
    cls=AliasedOption,
    aliases=["--kind"],
    type=KERNEL,
    default="otmann",
    help="Kernel (archive kernels).",
)
@click.option(
    "--component",
    metavar="NAME",
    show_default="mean of those not normalised",
    help="Component of the kernel to compare by.",
)
@setting_option
@click.option(
    "--study",
    type=STUDY,
    show_default="whole archive",
    help="Search only architectures that this study evaluated.",
)
@json_option
@click.pass_context
def nearest(
    ctx: click.Context,
    key: str,
    k: int,
    kernel: str,
    component: str | None,
    assigned: tuple[str, ...],
    study: str | None,
    as_json: bool,
) -> None:
    """Show the nearest neighbours of an architecture among those of its space.

    KEY is a key of the archive or its prefix, a file, a NAS-Bench-201 string, or a genotype of
    DARTS (Genotype(normal=[...], ...)). A file has the JSON of an architecture, a string or a
    genotype.
    """
    from archive.agents.nearest import Nearest

    settings = assignments(assigned, "a setting")
    network = key if is_key(key) else architecture_of(ctx, key)
    with open_archive(ctx) as archive:
        search = Nearest(archive, notify=print_message)
        result = search.similar(network, k, kernel, component=component, study=study, **settings)

    rows = [vars(neighbour) for neighbour in result.neighbours]
    if as_json:
        print_json(
            {
                "neighbours": rows,
                **{
                    name: getattr(result, name)
                    for name in ("certain", "compared", "among", "left_out")
                },
            }
        )
        return

    print_table(NEIGHBOUR_COLUMNS, [list(row.values()) for row in rows])
    if result.left_out:
        count = counted(result.left_out, "architecture")
        print_message(
            (f"{count} of the space left out: the kernel {kernel} is not defined on them", "yellow")
        )

    if not result.exact:
        certain = f"the first {result.certain} are certain; others may be nearer than the rest"
        print_message(
            (
                f"{result.compared} of {result.among} architectures were compared: {certain}",
                "yellow",
            )
        )


def _distances(
    kernel: Any, first: Architecture, second: Architecture, *, named: bool
) -> list[tuple[str, str, float]]:
    """Return rows; a kernel that was not named and cannot compare the two is reported and left
    out.
    """
    try:
        stack = kernel.distances([first], [second]).stack
    except InvalidArchitectureError as error:
        if named or first.space != second.space:
            raise

        print_message((f"{kernel.name} is left out: {error}", "yellow"))
        return []

    return [
        (kernel.name, name, float(value))
        for name, value in zip(kernel.components, stack[:, 0, 0], strict=True)
    ]


def _describe(details: dict[str, Any]) -> None:
    shown = {
        name: value
        for name, value in details.items()
        if name != "revision" and value not in (None, [])
    }
    # Numbers are shown as they are stored.
    print_fields(
        {name: value if isinstance(value, list) else str(value) for name, value in shown.items()},
        16,
    )

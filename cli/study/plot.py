"""`archive study plot`: plots of studies as image files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from archive.cli.names import DISTANCE, PLOT, STUDY, as_file
from archive.cli.parameters import force_option, output_option
from archive.cli.render import json_option, open_archive, print_json, print_message


@click.command("plot", short_help="Plot studies as PNG, SVG or PDF.")
@click.argument("names", metavar="STUDY...", type=STUDY, nargs=-1, required=True)
@click.option(
    "--kind", type=PLOT, default="best-so-far", metavar="KIND", help="What to plot, see below."
)
@output_option("STUDY-KIND.png", "File; its suffix is the format: .png, .svg or .pdf.")
@force_option
@click.option(
    "--against",
    type=click.Choice(["evaluations", "seconds", "epochs"]),
    show_default="evaluations",
    help="best-so-far: the horizontal axis; seconds and epochs are those of the trainings, summed.",
)
@click.option(
    "--by",
    type=click.Choice(["study", "agent"]),
    show_default="study",
    help="best-so-far: a line for each study, or median and quartiles for each agent.",
)
@click.option(
    "--cost",
    metavar="NAME",
    show_default="params",
    help="value-and-cost: params, flops, latency_ms, seconds …",
)
@click.option(
    "--metric",
    metavar="NAME",
    show_default="the objective",
    help="learning-curves: metric of the curves.",
)
@click.option(
    "--axis",
    "axes",
    metavar="NAME",
    multiple=True,
    help="parallel-coordinates: an axis. May be repeated.",
)
@click.option(
    "--distance",
    type=DISTANCE,
    show_default="profile",
    help="network-map: profile, or a kernel (archive kernels).",
)
@click.option(
    "--hours",
    type=click.FloatRange(0, min_open=True),
    show_default="all",
    help="worker-timeline: time up to now.",
)
@click.option(
    "--own", is_flag=True, help="network-map: only networks of these studies, not all of the space."
)
@json_option
@click.pass_context
def plot(
    ctx: click.Context,
    /,
    names: tuple[str, ...],
    kind: str,
    path: Path | None,
    force: bool,
    axes: tuple[str, ...],
    own: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Plot one study or several as an image file; needs the extra `plots`.

    \b
    best-so-far            best value against evaluations, seconds or epochs
    value-and-cost         value against a cost, with the Pareto front
    learning-curves        curves of the best, other and running trainings
    parallel-coordinates   hyperparameters, decisions or sizes beside the value
    predictions            predicted against observed values, and coverage
    operation-gains        what each operation of the agents gained
    worker-timeline        which worker ran which trial, when
    network-map            all networks on a plane, searches as paths

    Example: archive study plot tw-1 tw-2 random-1 random-2 --by agent --against seconds -o
    progress.svg
    """  # noqa: D301 - click reads \b as: keep the lines
    from archive.files import check_free, write_export
    from archive.plots import kinds
    from archive.plots.figures.files import check_format, rendered

    path = path or Path(f"{as_file(names[0])}-{kind}.png")
    form = check_format(path)
    options |= {"axes": axes or None, "whole": False if own else None}
    kinds.check(kind, names, options)
    check_free(path, force=force)
    with open_archive(ctx) as archive:
        figure = kinds.draw(archive, kind, names, **options)

    content = rendered(figure, form)
    write_export(path, content, force=force)
    if as_json:
        print_json(
            {
                "studies": list(names),
                "kind": kind,
                "file": str(path),
                "format": form,
                "bytes": len(content),
            }
        )
    else:
        print_message(
            f"{path}: {kind} of {len(names)} {'study' if len(names) == 1 else 'studies'}, "
            f"{len(content):,} bytes"
        )

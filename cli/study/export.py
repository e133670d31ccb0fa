"""`archive study export`, `archive study plot` and `archive report`: studies as files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from archive.cli.names import DISTANCE, PLOT, STUDY, as_file
from archive.cli.parameters import Count, force_option, output_option
from archive.cli.render import (
    json_document,
    json_option,
    open_archive,
    print_data,
    print_json,
    print_message,
)
from archive.errors import UsageError
from archive.values import counted

if TYPE_CHECKING:
    from archive.exchange.study_rows import ExportItem

Format = Literal["csv", "json", "jsonl", "parquet", "optuna"]


@dataclass(frozen=True)
class StudyExport:
    """A file that a study was exported to.

    Attributes:
        study: Its name.
        file: The file.
        format: `csv`, `json`, `jsonl`, `parquet` or `optuna`.
        rows: Number of proposals in it.
        bytes: Its size.
    """

    study: str
    file: str
    format: Format
    rows: int
    bytes: int


@dataclass(frozen=True)
class PlotFile:
    """An image file of a plot.

    Attributes:
        studies: Names of the plotted studies.
        kind: Kind of the plot.
        file: The file.
        format: `png`, `svg` or `pdf`.
        bytes: Its size.
    """

    studies: list[str]
    kind: str
    file: str
    format: Literal["png", "svg", "pdf"]
    bytes: int


@dataclass(frozen=True)
class ReportFile:
    """The report of a study.

    Attributes:
        study: Its name.
        file: The HTML file.
        bytes: Its size.
    """

    study: str
    file: str
    bytes: int


@click.command("export", short_help="Export a study as a table, or as a study of Optuna.")
@click.argument("name", metavar="STUDY", type=STUDY)
@click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "json", "jsonl", "parquet", "optuna"]),
    show_default="the file's suffix, else csv",
    help="Format of the rows.",
)
@output_option("stdout")
@force_option
@json_option
@click.pass_context
def export(
    ctx: click.Context,
    name: str,
    form: Format | None,
    path: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Export the proposals of a study with their results, one row a proposal.

    CSV and parquet have a column for each metric (metric_NAME), hyperparameter
    (hyperparameter_NAME) and named decision of the space (parameter_NAME). A parquet column whose values are not all numbers, all text or all
    booleans is JSON. Parquet needs pyarrow. With --json, a description of FILE goes to stdout.

    The format optuna is a study of Optuna in a SQLite file, of a study on a space of parameters:
    `optuna.load_study(study_name=STUDY, storage="sqlite:///FILE")`. It needs the extra bench.
    """
    from archive.exchange.study_rows import rows_of
    from archive.files import write_export

    form = form or _form_of_suffix(path)
    _check(form, path, as_json)
    with open_archive(ctx) as archive:
        if form == "optuna":
            from archive.exchange.optuna_file import to_optuna

            content, count, left_out = to_optuna(archive, name)
            if left_out:
                print_message(
                    f"{counted(left_out, 'proposal')} left out: not finished, or outside the space"
                )
        else:
            rows = rows_of(archive, name)
            count = len(rows)
            content = _content(rows, form)

    if path is None:
        print_data(content.decode())
        return

    write_export(path, content, force=force)
    if as_json:
        print_json(StudyExport(name, str(path), form, count, len(content)))
    else:
        print_message(f"{path}: {count} proposals, {len(content):,} bytes")


_SUFFIXES: dict[str, Format] = {
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "jsonl",
    ".parquet": "parquet",
    ".db": "optuna",
}


def _form_of_suffix(path: Path | None) -> Format:
    suffix = "" if path is None else path.suffix.lower()
    if suffix and suffix not in _SUFFIXES:
        raise UsageError(
            f"an export is a file ending in {', '.join(_SUFFIXES)}, or has a "
            f"--format, got {str(path)!r}"
        )

    return _SUFFIXES.get(suffix, "csv")


def _check(form: Format, path: Path | None, as_json: bool) -> None:
    """Refuse what does not go together, before the archive is opened."""
    if path is None and form in ("parquet", "optuna"):
        raise UsageError(f"{form} is no text: name a file with -o FILE")

    if path is None and as_json:
        raise UsageError(
            "--json describes a file that was written: name one with -o FILE, or "
            "ask for --format json"
        )

    if form == "parquet":
        from archive.exchange.study_rows import check_parquet

        check_parquet()

    if form == "optuna":
        from archive.exchange.optuna_file import check_optuna

        check_optuna()


def _content(rows: Sequence[ExportItem], form: Format) -> bytes:
    from archive.exchange.study_rows import ExportDocument, ExportLine, flat, to_csv, to_parquet

    if form == "csv":
        return to_csv(flat(rows)).encode()

    if form == "parquet":
        return to_parquet(flat(rows))

    if form == "json":
        return (json_document(ExportDocument(list(rows)), indent=2) + "\n").encode()

    lines = [json_document(ExportLine(**vars(row))) + "\n" for row in rows]
    return "".join(lines).encode()


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
    help="best-so-far: the horizontal axis; seconds and epochs are sums over the trainings.",
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
    help="parallel-coordinates, slice, contour, rank: an axis. May be repeated.",
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
    importance             importance of parameters and decisions
    slice                  value against single parameters or decisions
    contour                mean prediction over two of them
    rank                   rank of the results over two of them
    edf                    empirical distribution of the values

    Example: archive study plot tw-1 tw-2 random-1 random-2 --by agent --against seconds -o
    progress.svg
    """  # noqa: D301 - click reads \b as: keep the lines
    from archive.files import check_free, write_export
    from archive.plots import kinds
    from archive.plots.figures.files import check_format, render

    path = path or Path(f"{as_file(names[0])}-{kind}.png")
    form = check_format(path)
    options |= {"axes": axes or None, "whole": False if own else None}
    kinds.check(kind, names, options)
    check_free(path, force=force)
    with open_archive(ctx) as archive:
        figure = kinds.draw(archive, kind, names, **options)

    content = render(figure, form)
    write_export(path, content, force=force)
    if as_json:
        print_json(PlotFile(list(names), kind, str(path), form, len(content)))
    else:
        studies = "1 study" if len(names) == 1 else f"{len(names)} studies"
        print_message(f"{path}: {kind} of {studies}, {len(content):,} bytes")


@click.command(short_help="Write a study as one HTML file.")
@click.argument("name", metavar="STUDY", type=STUDY)
@output_option("STUDY.html")
@force_option
@click.option("--top", type=Count(0), default=5, help="Number of the best networks with pictures.")
@click.option("--rows", type=Count(1), default=2000, help="Most evaluations in the table.")
@json_option
@click.pass_context
def report(
    ctx: click.Context,
    /,
    name: str,
    path: Path | None,
    force: bool,
    top: int,
    rows: int,
    as_json: bool,
) -> None:
    """Write a study as one HTML file that opens from disk, without a network, and is small enough
    to mail.

    It has a summary, the best networks with pictures, plots, a table of the evaluations that can be
    sorted, the environment of the trainings without names of machines, and the commands that repeat
    the search.

    Example: archive report nasbot-cnn-digits -o study.html
    """
    from archive.files import check_free, write_export
    from archive.report import html

    path = path or Path(f"{as_file(name)}.html")
    if path.suffix.lower() not in (".html", ".htm", ""):
        raise UsageError(f"a report is a file ending in .html or .htm, got {str(path)!r}")

    check_free(path, force=force)
    with open_archive(ctx) as archive:
        content = html(archive, name, top=top, rows=rows).encode()

    write_export(path, content, force=force)
    if as_json:
        print_json(ReportFile(name, str(path), len(content)))
    else:
        print_message(f"{path}: report of {name}, {len(content):,} bytes")

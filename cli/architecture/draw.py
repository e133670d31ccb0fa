"""`archive arch draw`: a picture of a network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from archive.cli.architecture.argument import architecture_of
from archive.cli.architecture.picture import (
    PictureTheme,
    check_suffix,
    picture_options,
    print_text,
    write_picture,
)
from archive.cli.parameters import Count
from archive.cli.render import json_option, print_json

if TYPE_CHECKING:
    from archive.architecture.graph import Architecture


@click.command(short_help="Draw an architecture: as a file, or as text.")
@click.argument("key")
@picture_options
@click.option("--fold/--no-fold", default=True, help="Draw repeated parts once, with their number.")
@click.option("--sizes", is_flag=True, help="Show the size of each layer's output.")
@click.option("--params", is_flag=True, help="Show the number of each layer's parameters.")
@click.option(
    "--input",
    "input_text",
    metavar="SHAPE",
    default="3x32x32",
    help="Input of a network of cnn or mlp, for --sizes and --params. Imported models have their "
    "own.",
)
@click.option(
    "--outputs", type=Count(1), default=10, help="Outputs of a network of cnn or mlp, for the same."
)
@json_option
@click.pass_context
def draw(
    ctx: click.Context,
    key: str,
    path: Path | None,
    theme: PictureTheme,
    force: bool,
    fold: bool,
    sizes: bool,
    params: bool,
    input_text: str,
    outputs: int,
    as_json: bool,
) -> None:
    """Draw an architecture, input on top.

    KEY is a key of the archive or its prefix, a file, a NAS-Bench-201 string, or a genotype of
    DARTS (Genotype(normal=[...], ...)). A file has the JSON of an architecture, a string or a
    genotype. Colours tell the kinds of operations, widths the channels.
    """
    from archive.architecture.diagram import diagram
    from archive.drawing import text

    check_suffix(path)
    architecture = architecture_of(ctx, key)
    notes: dict[int, str] = {}
    if sizes or params:
        architecture, notes = _with_notes(
            architecture, input_text, outputs, sizes=sizes, params=params
        )

    drawn = diagram(architecture, fold=fold, notes=notes)
    about = {"file": None, "format": "text", "bytes": None}
    if path is not None:
        about = write_picture(drawn, path, theme, force=force)
    elif not as_json:
        print_text(drawn)

    if as_json:
        print_json({"key": architecture.key, **about, "lines": [str(line) for line in text(drawn)]})


def _with_notes(
    architecture: Architecture, input_text: str, outputs: int, *, sizes: bool, params: bool
) -> tuple[Architecture, dict[int, str]]:
    """Return a network with its blocks written out, and the notes of its layers."""
    from archive.architecture.aten.vocabulary import NAME as TORCH
    from archive.architecture.aten.wiring import read_input
    from archive.trainer.nn.layer_sizes import layer_sizes
    from archive.trainer.protocols.networks import NetworkForm

    if architecture.space == TORCH:
        from archive.architecture.aten.blocks import unfold

        # The copies of a block differ in nothing that is shown, and are folded again.
        architecture = unfold(architecture).canonical

    form = NetworkForm(read_input(input_text).shape, outputs, "classification")
    notes = {}
    for u, size in enumerate(layer_sizes(architecture, form)):
        # The box of an imported model's input has its size.
        shape = (
            "×".join(map(str, size.shape)) if sizes and (u or architecture.space != TORCH) else ""
        )
        count = f"{size.params:,} params" if params and size.params else ""
        notes[u] = " · ".join(part for part in (shape, count) if part)

    return architecture, notes

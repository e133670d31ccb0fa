"""`archive arch draw`: a picture of a network as a file, or as text in the terminal."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from archive.cli.architecture.argument import architecture_of, labels_of, networks_of
from archive.cli.parameters import Command, Count, force_option, output_option
from archive.cli.render import json_option, print_json, print_line, print_message
from archive.errors import UsageError
from archive.values import short_settings

if TYPE_CHECKING:
    from archive.architecture.graph import Architecture
    from archive.drawing import Diagram, TextLine

PictureForm = Literal["svg", "png", "text"]
PictureTheme = Literal["auto", "light", "dark"]

_STYLES = {
    "ends": "dim",
    "conv": "blue",
    "pool": "green",
    "dense": "magenta",
    "activation": "yellow",
    "norm": "cyan",
    "attention": "bright_magenta",
    "embedding": "bright_green",
    "join": "bright_yellow",
    "decision": "bright_magenta",
    "source": "dim",
    "zero": "dim",
    "dead": "dim",
    "matched": "dim",
    "changed": "yellow",
    "inserted": "green",
    "removed": "red",
}


@dataclass(frozen=True)
class PictureFile:
    """A picture, written to a file or as text.

    Attributes:
        file: The file; None where none was written.
        format: `svg`, `png` or `text`.
        bytes: Size of the file.
    """

    file: str | None
    format: PictureForm
    bytes: int | None


TEXT_ONLY = PictureFile(None, "text", None)
"""No file."""


@dataclass(frozen=True)
class ArchitecturePicture:
    """A picture of an architecture.

    Attributes:
        key: Key of the architecture.
        network: Key of the network that is drawn: of a configuration of parameters, the one that
            its model builds.
        file: The file; null where none was written.
        format: `svg`, `png` or `text`.
        bytes: Size of the file.
        lines: The picture as text.
    """

    key: str
    network: str
    file: str | None
    format: PictureForm
    bytes: int | None
    lines: list[str]


def picture_options(command: Command) -> Command:
    """Add the options of the file, its colours and its replacement."""
    for option in (
        force_option,
        click.option(
            "--theme",
            type=click.Choice(["auto", "light", "dark"]),
            default="auto",
            help="Colours of a file. auto: the reader's system for .svg, light for .png.",
        ),
        output_option("text on stdout", "File: NAME.svg or NAME.png. A .png needs the extra png."),
    ):
        command = option(command)

    return command


@click.command(short_help="Draw an architecture: as a file, or as text.")
@click.argument("key")
@picture_options
@click.option("--fold/--no-fold", default=True, help="Draw repeated parts once, with their number.")
@click.option("--layers", is_flag=True, help="Draw each layer of an imported model as a box.")
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
    layers: bool,
    sizes: bool,
    params: bool,
    input_text: str,
    outputs: int,
    as_json: bool,
) -> None:
    """Draw an architecture, input on top.

    KEY is a key of the archive or its prefix, a file, a NAS-Bench-201 string, or a genotype of
    DARTS (Genotype(normal=[...], ...)). A file has the JSON of an architecture, a string or a
    genotype. Colours tell the kinds of operations, widths the channels. Of an imported model, a
    convolution with its norm and activation is one box; --sizes and --params show each layer. Of a
    configuration of parameters, the network that its model builds is drawn.
    """
    from archive.architecture.diagram import diagram
    from archive.drawing import text

    check_suffix(path)
    member = architecture_of(ctx, key)
    (architecture,) = networks_of(ctx, [member])
    heading = []
    if architecture.key != member.key:
        from archive.architecture.parameter_operations import configuration_of

        heading = [short_settings([configuration_of(member)])[0]]

    notes: dict[int, str] = {}
    if sizes or params:
        architecture, notes = _write_notes(
            architecture, input_text, outputs, sizes=sizes, params=params
        )

    labels = labels_of(ctx, key, architecture)
    drawn = diagram(
        architecture, fold=fold, notes=notes, heading=heading, labels=labels, layers=layers
    )
    picture = TEXT_ONLY
    if path is not None:
        picture = write_picture(drawn, path, theme, force=force)
    elif not as_json:
        print_text(drawn)

    if as_json:
        document = ArchitecturePicture(
            key=member.key,
            network=architecture.key,
            file=picture.file,
            format=picture.format,
            bytes=picture.bytes,
            lines=[str(line) for line in text(drawn)],
        )
        print_json(document)


def _write_notes(
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
    for position, size in enumerate(layer_sizes(architecture, form)):
        parts = []
        # The box of an imported model's input has its size.
        if sizes and (position or architecture.space != TORCH):
            parts.append("×".join(map(str, size.shape)))

        if params and size.params:
            parts.append(f"{size.params:,} params")

        notes[position] = " · ".join(parts)

    return architecture, notes


def check_suffix(path: Path | None) -> None:
    """Check that a file has the suffix of a picture.

    Raises:
        UsageError: It is not.
    """
    if path is not None and path.suffix.lower() not in (".svg", ".png"):
        raise UsageError(f"a picture is a .svg or a .png, got {path.name}")


def write_picture(diagram: Diagram, path: Path, theme: PictureTheme, *, force: bool) -> PictureFile:
    """Write a diagram to a file; return its description.

    Raises:
        UsageError: The file exists, or cannot be written.
        SettingsError: The file is a PNG, and the extra is not installed.
    """
    from archive.drawing import png, svg
    from archive.files import write_export

    form: PictureForm = "png" if path.suffix.lower() == ".png" else "svg"
    if form == "png":
        content = png(diagram, theme="light" if theme == "auto" else theme)
    else:
        content = svg(diagram, theme=theme).encode()

    write_export(path, content, force=force)
    print_message((f"wrote {path}, {len(content):,} bytes", "green"))
    return PictureFile(str(path), form, len(content))


def print_text(diagram: Diagram) -> None:
    """Write a diagram as lines of text to stdout."""
    from archive.drawing import text

    for line in text(diagram):
        print_line(
            (line.rails + " " if line.rails else "", "dim"),
            (line.words, _style(line)),
            _detail(line),
        )


def _style(line: TextLine) -> str:
    return _STYLES.get(line.status or line.kind, "") if line.kind else "bold"


def _detail(line: TextLine) -> str:
    return f" {line.detail}" if line.detail else ""

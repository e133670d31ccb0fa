"""Pictures as files or as text in the terminal: what `archive arch draw` and `archive arch diff`
share.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from archive.cli.parameters import Command, force_option, output_option
from archive.cli.render import print_line, print_message
from archive.errors import UsageError

if TYPE_CHECKING:
    from archive.drawing import Diagram, TextLine


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
    "matched": "dim",
    "changed": "yellow",
    "inserted": "green",
    "removed": "red",
}


def picture_options(command: Command) -> Command:
    """Add the options of the file, its colours and its replacement."""
    for option in (
        force_option,
        click.option(
            "--theme",
            type=click.Choice(["auto", "light", "dark"]),
            default="auto",
            help="Colours of a file. auto: those of the reader's system, for .svg; light for .png.",
        ),
        output_option("text on stdout", "File: NAME.svg or NAME.png. A .png needs the extra png."),
    ):
        command = option(command)

    return command


def check_suffix(path: Path | None) -> None:
    """Check that the suffix of a file is that of a picture.

    Raises:
        UsageError: It is not.
    """
    if path is not None and path.suffix.lower() not in (".svg", ".png"):
        raise UsageError(f"a picture is a .svg or a .png, got {path.name}")


def write_picture(
    diagram: Diagram, path: Path, theme: PictureTheme, *, force: bool
) -> dict[str, Any]:
    """Write a diagram to a file; return its description.

    Raises:
        UsageError: The file exists, or cannot be written.
        SettingsError: The file is a PNG, and the extra is not installed.
    """
    from archive.drawing import png, svg
    from archive.files import write_export

    form = path.suffix.lower().removeprefix(".")
    if form == "png":
        content = png(diagram, theme="light" if theme == "auto" else theme)
    else:
        content = svg(diagram, theme=theme).encode()

    write_export(path, content, force=force)
    print_message((f"wrote {path}, {len(content):,} bytes", "green"))
    return {"file": str(path), "format": form, "bytes": len(content)}


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

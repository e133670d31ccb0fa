"""`archive report`: a study as one HTML file."""

from __future__ import annotations

from pathlib import Path

import click

from archive.cli.names import STUDY, as_file
from archive.cli.parameters import Count, force_option, output_option
from archive.cli.render import json_option, open_archive, print_json, print_message
from archive.errors import UsageError


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
        print_json({"study": name, "file": str(path), "bytes": len(content)})
    else:
        print_message(f"{path}: report of {name}, {len(content):,} bytes")

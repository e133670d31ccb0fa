"""`archive study export`: the proposals of a study as a table for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from archive.cli.names import STUDY
from archive.cli.parameters import force_option, output_option
from archive.cli.render import (
    json_document,
    json_option,
    open_archive,
    print_data,
    print_json,
    print_message,
)
from archive.errors import UsageError

if TYPE_CHECKING:
    from archive.exchange.study_rows import StudyRow

Format = Literal["csv", "json", "jsonl", "parquet"]


@click.command("export", short_help="Export the proposals of a study as a table.")
@click.argument("name", metavar="STUDY", type=STUDY)
@click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "json", "jsonl", "parquet"]),
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

    CSV and parquet have a column for each metric (metric_NAME) and hyperparameter
    (hyperparameter_NAME). A parquet column whose values are not all numbers, all text or all
    booleans is JSON. Parquet needs pyarrow. With --json, a description of FILE goes to stdout.
    """
    from archive.exchange.study_rows import rows_of
    from archive.files import write_export

    chosen = form or _by_suffix(path)
    _check(chosen, path, as_json)
    with open_archive(ctx) as archive:
        rows = rows_of(archive, name)

    content = _content(rows, chosen)
    if path is None:
        print_data(content.decode())
        return

    write_export(path, content, force=force)
    if as_json:
        about = {
            "study": name,
            "file": str(path),
            "format": chosen,
            "rows": len(rows),
            "bytes": len(content),
        }
        print_json(about)
    else:
        print_message(f"{path}: {len(rows)} proposals, {len(content):,} bytes")


_SUFFIXES: dict[str, Format] = {
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "jsonl",
    ".parquet": "parquet",
}


def _by_suffix(path: Path | None) -> Format:
    suffix = "" if path is None else path.suffix.lower()
    if suffix and suffix not in _SUFFIXES:
        raise UsageError(
            f"an export is a file ending in {', '.join(_SUFFIXES)}, or has a "
            f"--format, got {str(path)!r}"
        )

    return _SUFFIXES.get(suffix, "csv")


def _check(form: Format, path: Path | None, as_json: bool) -> None:
    """Refuse what does not go together, before the archive is opened."""
    if path is None and form == "parquet":
        raise UsageError("parquet is no text: name a file with -o FILE")

    if path is None and as_json:
        raise UsageError(
            "--json describes a file that was written: name one with -o FILE, or "
            "ask for --format json"
        )

    if form == "parquet":
        from archive.exchange.study_rows import check_parquet

        check_parquet()


def _content(rows: list[StudyRow], form: Format) -> bytes:
    from archive.exchange.study_rows import flat, to_csv, to_parquet

    if form == "csv":
        return to_csv(flat(rows)).encode()

    if form == "parquet":
        return to_parquet(flat(rows))

    if form == "json":
        return (json_document({"proposals": rows}, indent=2) + "\n").encode()

    return "".join(json_document(row) + "\n" for row in rows).encode()

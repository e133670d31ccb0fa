"""`archive dump`, `publish` and `load`: studies as one file, through a pipe or from the web."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from archive.cli.names import STUDY
from archive.cli.parameters import settings_of
from archive.cli.render import json_option, open_archive, print_json, print_message, print_table
from archive.errors import DamagedError, UsageError
from archive.exchange.download import digest, download, is_address
from archive.exchange.publication import PRIVATE, Publication
from archive.settings import load as load_settings

STREAM = Path("-")
_CHUNK = 2**20


@dataclass(frozen=True)
class DumpDocument:
    """A file that was written.

    Attributes:
        file: The file.
        bytes: Its size.
        records: Number of records of each kind.
        left_out: What `--skip-damaged` left out, a sentence each.
    """

    file: str
    bytes: int
    records: dict[str, int]
    left_out: list[str]


@dataclass(frozen=True)
class PublishDocument(DumpDocument):
    """A file to pass on that was written.

    Attributes:
        file: The file.
        bytes: Its size.
        records: Number of records of each kind.
        left_out: What `--skip-damaged` left out, a sentence each.
        sha256: SHA-256 of the file, for `archive load --sha256`.
    """

    sha256: str


@dataclass(frozen=True)
class LoadDocument:
    """A file that was read.

    Attributes:
        file: The file, or its address.
        release: The release that wrote it.
        sha256: Checksum of its contents.
        file_sha256: SHA-256 of the file itself.
        records: Number of records of each kind.
        stored: Number of records that were new or changed something; null with --check.
    """

    file: str
    release: str
    sha256: str
    file_sha256: str
    records: Mapping[str, int]
    stored: Mapping[str, int] | None


def _options(verb: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds the options which `dump` and `publish` share."""
    options = (
        click.option(
            "--study",
            "studies",
            type=STUDY,
            multiple=True,
            show_default="all studies",
            help=f"{verb} this study. May be repeated.",
        ),
        click.option(
            "--without-distances",
            is_flag=True,
            help="Leave out stored distances, which can be recomputed.",
        ),
        click.option("--force", is_flag=True, help="Overwrite an existing file."),
    )

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)

        return command

    return add


@click.command()
@click.argument("file", type=click.Path(path_type=Path), default=STREAM)
@_options("Dump")
@click.option(
    "--skip-damaged",
    is_flag=True,
    help="Leave out records that cannot be read, and name them; otherwise they are an error. Of "
    "a database with "
    "damaged files, a repaired copy is dumped.",
)
@json_option
@click.pass_context
def dump(
    ctx: click.Context,
    file: Path,
    studies: tuple[str, ...],
    without_distances: bool,
    skip_damaged: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Write the archive, or some of its studies, to one compressed file.

    The file holds everything that a study refers to, including the studies of its warm start, but
    no weights. Without FILE, the dump goes to stdout: `archive dump | ARCHIVE_DB=neo4j://HOST:7687
    archive load`.
    """
    options: dict[str, Any] = {"studies": list(studies) or None, "distances": not without_distances}
    if file != STREAM:
        counts, left_out = _dump(ctx, file, skip_damaged, force=force, **options)
        size = file.stat().st_size
        if as_json:
            print_json(DumpDocument(str(file), size, counts, left_out))
        else:
            print_table(("record", "written"), sorted(counts.items()))
            print_message(f"{file}: {size:,} bytes")

        return

    if sys.stdout.isatty() or as_json:
        raise UsageError(
            "without a FILE, stdout is the dump: "
            "name a FILE, or pipe it: archive dump | archive load"
        )

    # A dump that fails half-way leaves nothing in the pipe.
    with _temporary("stdout") as whole:
        counts, _ = _dump(ctx, whole, skip_damaged, force=False, **options)
        print_message(f"dump: {sum(counts.values()):,} records, {whole.stat().st_size:,} bytes")
        with whole.open("rb") as content:
            shutil.copyfileobj(content, sys.stdout.buffer)

        sys.stdout.buffer.flush()


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@_options("Publish")
@click.option(
    "--imported", is_flag=True, help="Publish imported results as well, with their sources."
)
@click.option(
    "--with",
    "contents",
    type=click.Choice(PRIVATE),
    multiple=True,
    help="Publish what is otherwise left out. May be repeated.",
)
@click.option("--source", metavar="TEXT", help="Where your results come from, such as a paper.")
@click.option("--license", metavar="NAME", help="Licence of your results, such as CC-BY-4.0.")
@json_option
@click.pass_context
def publish(
    ctx: click.Context,
    file: Path,
    studies: tuple[str, ...],
    imported: bool,
    contents: tuple[str, ...],
    source: str | None,
    license: str | None,
    without_distances: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Write your results to a file to pass on, without hosts, paths and notes.

    Left out are workers with their machines and attempts (`--with hosts`), addresses of weights
    (`--with paths`), and notes, tags, motivations, reasons of failures and logs (`--with notes`).
    Folders of paths, credentials in addresses, and names of machines and of the user, are cut out
    of all other texts. Names of studies, tasks and agents stay: a study or a task that is named
    after a machine is refused. Others read the file with `archive load`.
    """
    if imported and studies:
        raise UsageError("--imported publishes results without a study: leave --study out")

    publication = Publication(contents, imported=imported, source=source, license=license)
    counts, left_out = _dump(
        ctx,
        file,
        skip_damaged=False,
        force=force,
        studies=list(studies) or None,
        distances=not without_distances,
        publication=publication,
    )
    size = file.stat().st_size
    sha256 = digest(file)
    if as_json:
        print_json(PublishDocument(str(file), size, counts, left_out, sha256))
        return

    print_table(("record", "written"), sorted(counts.items()))
    print_message(f"{file}: {size:,} bytes, SHA-256 {sha256}")


def _dump(
    ctx: click.Context, file: Path, skip_damaged: bool, *, force: bool, **options: Any
) -> tuple[dict[str, int], list[str]]:
    """Write a dump; return the number of records of each kind, and the omissions."""
    from archive.exchange.dump import dump as write
    from archive.exchange.repair import salvage

    left_out: list[str] | None = [] if skip_damaged else None
    try:
        with open_archive(ctx) as archive:
            counts = write(archive.connection, file, force=force, left_out=left_out, **options)
    except DamagedError:
        settings = load_settings(**settings_of(ctx))
        if left_out is None or not settings.embedded:
            raise

        counts, left_out = salvage(settings, file, force=force, **options)

    for sentence in left_out or []:
        print_message(f"left out: {sentence}")

    return counts, left_out or []


@click.command()
@click.argument("file", metavar="[FILE|URL]", default=str(STREAM))
@click.option(
    "--rename",
    "renames",
    multiple=True,
    metavar="OLD=NEW",
    help="Load the study OLD as NEW. May be repeated.",
)
@click.option("--check", is_flag=True, help="Verify the file and show its contents; load nothing.")
@click.option("--sha256", metavar="HEX", help="SHA-256 that the file must have.")
@json_option
@click.pass_context
def load(
    ctx: click.Context,
    file: str,
    renames: tuple[str, ...],
    check: bool,
    sha256: str | None,
    as_json: bool,
) -> None:
    """Merge a file of `archive dump` or `archive publish` into the archive.

    The file is a path, an https address, or without either stdin.

    The whole file is verified before anything is stored. Loading a file twice, or several files in
    any order, gives the same archive. A study that has continued in two copies is refused; --rename
    loads it under another name.
    """
    names = dict(map(_renaming, renames))
    path = Path(file)
    if not is_address(file) and path != STREAM and not _is_pipe(path):
        checksum = digest(path) if sha256 is not None or as_json else ""
        _load(ctx, path, names, check, as_json, sha256, checksum, file)
        return

    if path == STREAM and sys.stdin.isatty():
        raise UsageError(
            "without a FILE, stdin is the dump: "
            "name a FILE, or pipe it: archive dump | archive load"
        )

    # The dump is read twice: it is verified as a whole first.
    name = "stdin" if path == STREAM else file
    with _temporary("dump" if is_address(file) else Path(name).name) as whole:
        checksum = download(file, whole) if is_address(file) else _copy_stream(path, whole)

        if not whole.stat().st_size:
            raise UsageError(
                f"there is no dump on {name}: the command before the pipe has written nothing"
            )

        _load(ctx, whole, names, check, as_json, sha256, checksum, file)


def _copy_stream(source: Path, whole: Path) -> str:
    """Copy a stream to a file, and return its SHA-256."""
    content = hashlib.sha256()
    with (
        whole.open("wb") as file,
        nullcontext(sys.stdin.buffer) if source == STREAM else source.open("rb") as pipe,
    ):
        while chunk := pipe.read(_CHUNK):
            content.update(chunk)
            file.write(chunk)

    return content.hexdigest()


def _load(
    ctx: click.Context,
    file: Path,
    names: Mapping[str, str],
    check: bool,
    as_json: bool,
    sha256: str | None,
    checksum: str,
    shown: str,
) -> None:
    from archive.exchange.load import load as read
    from archive.exchange.load import verify

    if sha256 is not None and checksum != sha256.lower():
        raise UsageError(f"{shown} has the SHA-256 {checksum}, not {sha256:.64}: nothing is loaded")

    changed: Mapping[str, int] = {}
    if check:
        contents = verify(file, rename=names)
    else:
        with open_archive(ctx) as archive:
            contents, changed = read(archive.connection, file, rename=names, notify=print_message)

    if as_json:
        document = LoadDocument(
            file=shown,
            release=contents.header.release,
            sha256=contents.sha256,
            file_sha256=checksum,
            records=contents.counts,
            stored=None if check else changed,
        )
        print_json(document)
    elif check:
        print_table(("record", "in the file"), sorted(contents.counts.items()))
    else:
        rows = []
        for kind, count in sorted(contents.counts.items()):
            rows.append((kind, count, changed.get(kind, 0)))

        print_table(("record", "in the file", "new or changed"), rows)

    if not as_json and is_address(shown):
        print_message(f"{shown}: {file.stat().st_size:,} bytes, SHA-256 {checksum}")


def _is_pipe(file: Path) -> bool:
    """Return whether a file can be read only once: `archive load <(ssh HOST archive dump)`."""
    return os.path.exists(file) and file.is_fifo()


@contextmanager
def _temporary(name: str) -> Iterator[Path]:
    """Give the path of a file for the content of a stream, which is deleted with its folder."""
    with tempfile.TemporaryDirectory(prefix="archive-dump-") as folder:
        yield Path(folder) / name


def _renaming(text: str) -> tuple[str, str]:
    old, separator, new = text.partition("=")
    if not separator or not old or not new:
        raise UsageError(f"--rename takes OLD=NEW, got {text!r}")

    return old, new

"""`archive table`: the built-in tables, and how they are made of the official releases."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from archive.cli.groups import CommandGroup
from archive.cli.parameters import force_option
from archive.cli.render import json_option, print_fields, print_json, print_message, print_table
from archive.errors import SettingsError, UnknownNameError, UsageError


@dataclass(frozen=True)
class BuiltInTable:
    """A built-in table.

    Attributes:
        table: Its name.
        tasks: Names of the tasks that it answers.
        file: Its file on this machine; null without a file.
        source: Benchmark and address of the official release.
        releases: Names of the official files that it can be made of.
    """

    table: str
    tasks: list[str]
    file: str | None
    source: str
    releases: list[str]


@dataclass(frozen=True)
class BuiltInTables:
    """The built-in tables.

    Attributes:
        tables: By name.
    """

    tables: list[BuiltInTable]


@dataclass(frozen=True)
class MadeTable:
    """A table that was made of an official release.

    Attributes:
        table: Its name.
        rows: Number of networks.
        file: The file that was written.
        tasks: Names of the tasks that it answers.
    """

    table: str
    rows: int
    file: str
    tasks: list[str]


@click.group("table", cls=CommandGroup)
def tables() -> None:
    """List the built-in tables, and make them of official benchmark files."""


@tables.command("list")
@json_option
def list_tables(as_json: bool) -> None:
    """List the built-in tables, their tasks and files."""
    from archive.exchange.releases.tables import RELEASES
    from archive.spaces.tables import reader

    tables = []
    for name, release in RELEASES.items():
        tables.append(
            BuiltInTable(
                table=name,
                tasks=_tasks(name),
                file=_file(name),
                source=reader.NAMED[name].source,
                releases=list(release.files),
            )
        )

    if as_json:
        print_json(BuiltInTables(tables))
        return

    rows = []
    for table in tables:
        rows.append((table.table, ", ".join(table.tasks), table.file, " or ".join(table.releases)))

    print_table(("table", "tasks", "file", "made of"), rows)
    if any(table.file is None for table in tables):
        print_message("make a missing table of an official file by archive table make TABLE FILE")


@tables.command(short_help="Make a built-in table of an official benchmark file.")
@click.argument("name", metavar="TABLE")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--to",
    "path",
    metavar="PATH",
    type=click.Path(path_type=Path, dir_okay=False),
    show_default="TABLE.csv.gz in ARCHIVE_DATA_DIR, else in HOME/data",
    help="File to write. A name that ends in .gz is compressed.",
)
@force_option
@json_option
def make(name: str, file: Path, path: Path | None, force: bool, as_json: bool) -> None:
    """Make a built-in TABLE of FILE, an official release of its benchmark.

    Searches on its tasks then need no other file. TABLE is nb101, nb201, nbmacro or transnas-micro;
    FILE is nasbench_only108.tfrecord or nasbench_full.tfrecord; NAS-Bench-201-v1_1-096897.pth,
    NATS-tss-v1_0-3ffb9.pickle.pbz2 or the folder NATS-tss-v1_0-3ffb9-simple;
    nas-bench-macro_cifar10.json; transnas-bench_v10141024.pth. Pickles are read without executing
    their code. Each row is the mean over the trainings of a network.
    """
    from archive import files
    from archive.exchange.releases.tables import RELEASES, encode
    from archive.files import data_folders
    from archive.spaces.tables import reader

    if name not in RELEASES:
        raise UnknownNameError("table", name, RELEASES)

    # Where searches look first: beside the present file, if there is one.
    present = _file(name)
    folder = data_folders()[-1] if present is None else Path(present).parent
    target = path or folder / reader.NAMED[name].files[0]
    files.check_free(target, force=force)
    content, rows = encode(RELEASES[name].rows(file), compress=target.suffix == ".gz")
    if not rows:
        raise UsageError(f"{file} has no networks of {name}")

    if path is None:
        target.parent.mkdir(parents=True, exist_ok=True)

    files.write_export(target, content, force=force)
    made = MadeTable(name, rows, str(target), _tasks(name))
    if as_json:
        print_json(made)
    else:
        print_fields(vars(made), 12)


def _tasks(table: str) -> list[str]:
    """Return the names of the tasks that a table answers."""
    from archive.trainer.tasks import registry
    from archive.trainer.tasks.tabular import TabularTask

    tasks = map(registry.get, registry.names())
    names = []
    for task in tasks:
        if isinstance(task, TabularTask) and task.reference == table:
            names.append(task.name)

    return names


def _file(table: str) -> str | None:
    from archive.spaces.tables import reader

    try:
        return str(reader.find(table))
    except SettingsError:
        return None

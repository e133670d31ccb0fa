"""`archive query`: queries in Cypher and saved queries, read-only unless --write is given."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from archive import words
from archive.cli.groups import DefaultGroup
from archive.cli.names import QUERY
from archive.cli.parameters import Count, Duration, settings_of
from archive.cli.render import (
    json_option,
    open_archive,
    print_block,
    print_data,
    print_json,
    print_line,
    print_message,
    print_table,
)
from archive.errors import ArchiveError, StoreError, UsageError
from archive.settings import load
from archive.values import assignments

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.database.user_query import QueryResult
    from archive.queries.catalogue import SavedQueryParameter


ABOUT_EDITS = ("lineage", "operators")
"""Saved queries with operations that make a child of its parent."""


@dataclass(frozen=True)
class QueryDocument:
    """The answer to a query.

    Attributes:
        columns: Their names.
        rows: A value for each column.
        truncated: Whether rows were left out.
    """

    columns: list[str]
    rows: list[dict[str, Any]]
    truncated: bool


@dataclass(frozen=True)
class SavedQueryItem:
    """A saved query.

    Attributes:
        name: Its name.
        summary: Its question.
        parameters: Its parameters.
    """

    name: str
    summary: str
    parameters: list[SavedQueryParameter]


@dataclass(frozen=True)
class SavedQueryList:
    """The saved queries.

    Attributes:
        queries: By name.
    """

    queries: list[SavedQueryItem]


@dataclass(frozen=True)
class SavedQueryText:
    """The text of a saved query.

    Attributes:
        name: Its name.
        cypher: Its text.
    """

    name: str
    cypher: str


_NAME = re.compile(r"[\w-]+")
_SHORT_SECONDS = 1.0
"""Time for opening the archive that is not taken from the query's."""
_LEAST_SECONDS = 0.1
"""Least time for a query after a slow opening."""


@click.group(cls=DefaultGroup, default="run")
def query() -> None:
    """Query the archive in Cypher, or by a saved query.

    `archive query "CYPHER"` is `archive query run "CYPHER"`.

    Example: archive query "MATCH (a:Architecture)-[:HAS_LAYER]->(l) RETURN a.key, count(l) LIMIT 5"

    Example: archive query run lineage --param study=nasbot-cnn-digits
    """


@query.command("list")
@json_option
def list_queries(as_json: bool) -> None:
    """List the saved queries with their parameters."""
    _list(as_json)


@query.command("show")
@click.argument("name", type=QUERY)
@json_option
def show_query(name: str, as_json: bool) -> None:
    """Show the Cypher text of a saved query."""
    _show(name, as_json)


@query.command()
@click.argument("question", metavar="NAME|CYPHER", type=QUERY, required=False)
@click.option("--named", type=QUERY, hidden=True, help="Name of a saved query: the argument NAME.")
@click.option("--list", "listed", is_flag=True, hidden=True, help="Run `archive query list`.")
@click.option("--show", "shown", is_flag=True, hidden=True, help="Run `archive query show`.")
@click.option(
    "--param",
    "-p",
    "parameters",
    multiple=True,
    metavar="NAME=VALUE",
    help="Value of $NAME in the query, as JSON or text. May be repeated.",
)
@click.option("--write", is_flag=True, help="Allow a Cypher query to change the archive.")
@click.option("--limit", type=Count(1), default=1000, help="Maximum number of rows.")
@click.option("--skip", type=Count(0), default=0, help="Skip the first N rows, for the next page.")
@click.option(
    "--timeout", type=Duration(0.1), default="60s", help="Give up on a query after this long."
)
@click.option("--csv", "as_csv", is_flag=True, help="Write CSV to stdout instead of a table.")
@json_option
@click.pass_context
def run(
    ctx: click.Context,
    question: str | None,
    named: str | None,
    listed: bool,
    shown: bool,
    parameters: tuple[str, ...],
    write: bool,
    limit: int,
    skip: int,
    timeout: float,
    as_csv: bool,
    as_json: bool,
) -> None:
    """Run a saved query by its NAME, or a query in CYPHER.

    A single word is the name of a saved query; anything else is Cypher. Queries are read-only
    unless --write is given.

    Example: archive query run frontier --param task=nb201-cifar10 --param cost=flops --csv

    Example: archive query run "MATCH (e:Evaluation) RETURN count(e)"
    """
    if as_csv and as_json:
        raise UsageError("--csv and --json exclude each other")

    if listed:
        _list(as_json)
        return

    cypher, named = _question(question, named)
    if shown:
        if named is None:
            raise UsageError("only a saved query can be shown: archive query show NAME")

        _show(named, as_json)
        return

    if named is not None and write:
        raise UsageError("--write goes with CYPHER: saved queries only read")

    options: dict[str, Any] = {"limit": limit, "skip": skip, "timeout": timeout}
    answer, why = _answer(
        ctx, cypher, named, assignments(parameters, "a parameter"), write, options
    )
    if as_json:
        rows = [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
        print_json(QueryDocument(answer.columns, rows, answer.truncated))
    elif as_csv:
        _print_csv(answer)
    elif answer.rows:
        print_table(answer.columns, _in_words(answer) if named in ABOUT_EDITS else answer.rows)

    if not answer.rows and (why or not as_json):
        print_message(f"no rows: {why}" if why else "no rows")

    if answer.truncated:
        page = (
            "raise --limit, add LIMIT to the query, "
            f"or see the next page with --skip {skip + limit}"
        )
        print_message((f"cut off after {limit} rows: {page}", "yellow"))


def _in_words(answer: QueryResult) -> list[list[Any]]:
    """Return rows about edits with words for their operations; JSON and CSV keep the names."""
    rows = []
    for row in answer.rows:
        shown = []
        for column, value in zip(answer.columns, row, strict=True):
            if column == "operation" and isinstance(value, str):
                value = words.operation(value)
            elif column == "operations" and isinstance(value, list):
                value = ", ".join(map(words.operation, value)) or None

            shown.append(value)

        rows.append(shown)

    return rows


def _question(question: str | None, named: str | None) -> tuple[str | None, str | None]:
    """Return the Cypher text, or the name of a saved query; the other one is None."""
    if (question is None) == (named is None):
        raise UsageError(
            "give the NAME of a saved query, or a query in CYPHER; archive query "
            "list shows the names"
        )

    if question is None or not _NAME.fullmatch(question):
        return question, named

    return None, question


def _answer(
    ctx: click.Context,
    cypher: str | None,
    named: str | None,
    values: Mapping[str, Any],
    write: bool,
    options: Mapping[str, Any],
) -> tuple[QueryResult, str | None]:
    """Return the answer and, if it has no rows, the reason where it is known."""
    from archive.database.late_call import within
    from archive.database.time_limit import ANSWER_SECONDS
    from archive.server import embedded

    if named is not None:
        from archive.queries import catalogue

        # Before an archive is opened, which may start a server.
        catalogue.check(named, values)

    begin = time.monotonic()
    seconds = options["timeout"]
    late = _late(options["timeout"])
    settings = load(**settings_of(ctx))
    # The start of a server is no part of the query, but a restart below other clients is.
    started = not settings.embedded or embedded.has_server(settings)
    patience = seconds + ANSWER_SECONDS if started else math.inf
    archive = within(patience, lambda: open_archive(ctx), late)
    opening = time.monotonic() - begin
    left = (
        max(_LEAST_SECONDS, seconds - opening) if started and opening > _SHORT_SECONDS else seconds
    )
    options = {**options, "timeout": left}
    with archive:
        if named is None:
            return archive.query(cypher or "", values, write=write, **options), None

        return within(left + ANSWER_SECONDS, partial(_saved, archive, named, values, options), late)


def _saved(
    archive: Archive, named: str, values: Mapping[str, Any], options: Mapping[str, Any]
) -> tuple[QueryResult, str | None]:
    from archive.queries import saved

    answer = saved.run(archive.connection, named, values, **options)
    empty = not answer.rows and not options["skip"]
    return answer, saved.why_empty(archive.connection, named, values) if empty else None


def _late(seconds: float) -> ArchiveError:
    return StoreError(
        f"the database has not answered within {seconds:g} seconds: "
        "it is busy, or was just restarted; try again, or allow the query more time (--timeout)"
    )


def _list(as_json: bool) -> None:
    from archive.queries import catalogue

    queries = [catalogue.get(name) for name in catalogue.names()]
    if as_json:
        items = []
        for query in queries:
            parameters = list(query.parameters.values())
            items.append(SavedQueryItem(query.name, query.summary, parameters))

        print_json(SavedQueryList(items))
        return

    for query in queries:
        print_line((query.name, "bold"))
        print_line(f"    {query.summary}")
        for parameter in query.parameters.values():
            default = "required" if parameter.needed else json.dumps(parameter.default)
            print_line(f"    {parameter.name} [{default}]  {parameter.help}")


def _show(named: str, as_json: bool) -> None:
    from archive.queries import catalogue

    cypher = catalogue.get(named).cypher
    if as_json:
        print_json(SavedQueryText(named, cypher))
    else:
        print_block(cypher)


def _print_csv(answer: QueryResult) -> None:
    if not answer.columns:
        return  # readers of CSV take an empty line for a column without a name

    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(answer.columns)
    for row in answer.rows:
        # CSV has no form for lists, maps and truth values: they are written as JSON. None is an
        # empty field.
        writer.writerow(
            [json.dumps(value) if isinstance(value, list | dict | bool) else value for value in row]
        )

    print_data(written.getvalue())

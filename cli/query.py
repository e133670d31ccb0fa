"""`archive query`: Cypher over the archive, or a saved query; read-only unless --write."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from archive.assignments import assignments
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
from archive.errors import UsageError

if TYPE_CHECKING:
    from archive.database.user_query import QueryResult


@click.command()
@click.argument("cypher", required=False)
@click.option("--named", metavar="NAME", help="Ask a saved query instead.")
@click.option("--list", "listed", is_flag=True, help="List the saved queries with their parameters.")
@click.option("--show", is_flag=True, help="Show the text of the saved query; ask nothing.")
@click.option("--param", "-p", "parameters", multiple=True, metavar="NAME=VALUE", help="A $NAME in the query; JSON.")
@click.option("--write", is_flag=True, help="Let the query change the archive.")
@click.option("--limit", type=click.IntRange(1), default=1000, show_default=True, help="Rows to show at most.")
@click.option("--skip", type=click.IntRange(0), default=0, help="Rows to leave out first: the next page.")
@click.option("--timeout", type=click.FloatRange(0.1), default=60.0, show_default=True, help="Seconds to wait.")
@click.option("--csv", "as_csv", is_flag=True, help="CSV on stdout instead of a table.")
@json_option
@click.pass_context
def query(
    ctx: click.Context,
    cypher: str | None,
    named: str | None,
    listed: bool,
    show: bool,
    parameters: tuple[str, ...],
    write: bool,
    limit: int,
    skip: int,
    timeout: float,
    as_csv: bool,
    as_json: bool,
) -> None:
    """Ask the archive in Cypher, or ask a saved query.

    Example: archive query "MATCH (a:Architecture)-[:HAS_LAYER]->(l) RETURN a.key, count(l) LIMIT 5"

    Example: archive query --named lineage --param study=nasbot-cnn-digits
    """
    if as_csv and as_json:
        raise UsageError("--csv and --json exclude each other")
    if listed:
        _list(as_json)
        return
    if (cypher is None) == (named is None):
        raise UsageError("give a query in CYPHER or --named NAME; --list shows the saved queries")
    if show:
        _show(named, as_json)
        return
    if named is not None and write:
        raise UsageError("--write goes with CYPHER: saved queries only read")
    options: dict[str, Any] = {"limit": limit, "skip": skip, "timeout": timeout}
    answer, why = _answer(ctx, cypher, named, assignments(parameters, "a parameter"), write, options)
    if as_json:
        rows = [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
        print_json({"columns": answer.columns, "rows": rows, "truncated": answer.truncated})
    elif as_csv:
        _print_csv(answer)
    elif answer.rows:
        print_table(answer.columns, answer.rows)
    if not answer.rows and (why or not as_json):
        print_message(f"no rows: {why}" if why else "no rows")
    if answer.truncated:
        page = f"raise --limit, add LIMIT to the query, or see the next page with --skip {skip + limit}"
        print_message((f"cut off after {limit} rows: {page}", "yellow"))


def _answer(
    ctx: click.Context,
    cypher: str | None,
    named: str | None,
    values: Mapping[str, Any],
    write: bool,
    options: Mapping[str, Any],
) -> tuple[QueryResult, str | None]:
    """Return the answer and, if it has no rows, why, as far as anybody knows."""
    from archive.queries import catalogue, saved

    if named is not None:
        # Before an archive is opened, which may start a server.
        catalogue.check(named, values)
    with open_archive(ctx) as archive:
        if named is None:
            return archive.query(cypher or "", values, write=write, **options), None
        answer = saved.run(archive.connection, named, values, **options)
        empty = not answer.rows and not options["skip"]
        return answer, saved.why_empty(archive.connection, named, values) if empty else None


def _list(as_json: bool) -> None:
    from archive.queries import catalogue

    found = [catalogue.get(name) for name in catalogue.names()]
    if as_json:
        print_json(
            [
                {
                    "name": each.name,
                    "summary": each.summary,
                    "parameters": [vars(parameter) for parameter in each.parameters.values()],
                }
                for each in found
            ]
        )
        return
    for each in found:
        print_line((each.name, "bold"))
        print_line(f"    {each.summary}")
        for parameter in each.parameters.values():
            default = "needed" if parameter.needed else json.dumps(parameter.default)
            print_line(f"    {parameter.name} [{default}]  {parameter.help}")


def _show(named: str | None, as_json: bool) -> None:
    from archive.queries import catalogue

    if named is None:
        raise UsageError("--show goes with --named NAME")
    cypher = catalogue.get(named).cypher
    if as_json:
        print_json({"name": named, "cypher": cypher})
    else:
        print_block(cypher)


def _print_csv(answer: QueryResult) -> None:
    if not answer.columns:
        return  # an empty line would be read as a column without a name
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(answer.columns)
    for row in answer.rows:
        # What has no form of its own in CSV is JSON; nothing is left empty.
        writer.writerow([json.dumps(value) if isinstance(value, list | dict | bool) else value for value in row])
    print_data(written.getvalue())

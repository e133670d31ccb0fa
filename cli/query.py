"""`archive query`: Cypher over the archive, read-only unless --write."""

from __future__ import annotations

import click

from archive.cli.assignments import assignments
from archive.cli.render import json_option, messages, open_archive, print_json, print_table


@click.command()
@click.argument("cypher")
@click.option("--param", "-p", "parameters", multiple=True, metavar="NAME=VALUE", help="A $NAME in the query; JSON.")
@click.option("--write", is_flag=True, help="Let the query change the archive.")
@click.option("--limit", type=click.IntRange(1), default=1000, show_default=True, help="Rows to show at most.")
@click.option("--timeout", type=click.FloatRange(0.1), default=60.0, show_default=True, help="Seconds to wait.")
@json_option
@click.pass_context
def query(
    ctx: click.Context,
    cypher: str,
    parameters: tuple[str, ...],
    write: bool,
    limit: int,
    timeout: float,
    as_json: bool,
) -> None:
    """Ask the archive in Cypher.

    Example: archive query "MATCH (a:Architecture)-[:HAS_LAYER]->(l) RETURN a.key, count(l) LIMIT 5"
    """
    values = assignments(parameters, "a parameter")
    with open_archive(ctx) as archive:
        answer = archive.query(cypher, values, write=write, limit=limit, timeout=timeout)
    if as_json:
        rows = [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
        print_json({"columns": answer.columns, "rows": rows, "truncated": answer.truncated})
    else:
        print_table(answer.columns, answer.rows)
    if answer.truncated:
        messages().print(f"[yellow]cut off after {limit} rows: raise --limit, or add LIMIT to the query[/]")

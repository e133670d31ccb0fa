"""`archive arch`: look at architectures."""

from __future__ import annotations

from typing import Any

import click

from archive.cli.render import json_option, open_archive, out, print_json, print_table

EVALUATIONS = """
MATCH (:Architecture {key: $key})<-[:OF]-(e:Evaluation)-[:ON]->(t:Task)
RETURN e.id AS evaluation, t.name AS task, t.protocol AS protocol, e.value AS value, e.epochs AS epochs,
       e.seconds AS seconds
ORDER BY task, evaluation
"""


@click.group()
def arch() -> None:
    """Show architectures."""


@arch.command()
@click.argument("key")
@json_option
@click.pass_context
def show(ctx: click.Context, key: str, as_json: bool) -> None:
    """Show one architecture by its key, or the beginning of it: layers, edges, evaluations, relatives."""
    from archive import codec

    with open_archive(ctx) as archive:
        full = archive.architectures.find(key)
        architecture = archive.architectures.get(full)
        details = archive.architectures.details(full)
        answer = archive.query(EVALUATIONS, {"key": full})
    evaluations = [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
    if as_json:
        print_json({**details, "architecture": codec.to_json(architecture), "evaluations": evaluations})
        return
    _describe(details)
    rows = [
        (u, layer.op, layer.units, layer.stride, " ".join(map(str, architecture.children[u])))
        for u, layer in enumerate(architecture.layers)
    ]
    print_table(("layer", "operation", "units", "stride", "feeds"), rows)
    if evaluations:
        print_table(answer.columns, answer.rows, title="evaluations")


def _describe(details: dict[str, Any]) -> None:
    for name, value in details.items():
        if name != "revision" and value not in (None, []):
            text = ", ".join(map(str, value)) if isinstance(value, list) else value
            out().print(f"[bold]{name:<16}[/] {text}")

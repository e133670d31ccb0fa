"""`archive study blocks`: what each part of each block of a trained decoder brings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from archive.cli.names import STUDY
from archive.cli.parameters import Count
from archive.cli.render import (
    json_option,
    open_archive,
    print_json,
    print_line,
    print_message,
    print_table,
)
from archive.values import counted

if TYPE_CHECKING:
    from archive.searches.blocks import BlockReport

PARTS = ("mixer", "feed-forward")


@click.command("blocks", short_help="Show what one block of a trained decoder brings.")
@click.argument("parent", metavar="STUDY|EVALUATION", type=STUDY)
@click.option("--name", help="Study of the scores [STUDY-blocks-NUMBER].")
@click.option(
    "--steps", type=Count(0), default=60, show_default=True, help="Steps of a distillation."
)
@click.option(
    "--seeds", type=Count(1), default=1, show_default=True, help="Distillations of a replacement."
)
@click.option(
    "--part", "parts", multiple=True, type=click.Choice(PARTS), help="Part to replace [both]."
)
@click.option("--block", "blocks", multiple=True, type=Count(1), help="Block to change [all].")
@click.option(
    "--to", "kinds", multiple=True, metavar="KIND", help="Kind of new parts, or none [all]."
)
@click.option("--limit", type=Count(1), help="Most replacements, of all blocks in turn [all].")
@click.option("--device", default="auto", show_default=True, help="Device: cpu, cuda:1, auto.")
@click.option(
    "--weights-from", multiple=True, metavar="PLACE", help="Further place of stored weights."
)
@json_option
@click.pass_context
def blocks(
    ctx: click.Context,
    parent: str,
    name: str | None,
    steps: int,
    seeds: int,
    parts: tuple[str, ...],
    blocks: tuple[int, ...],
    kinds: tuple[str, ...],
    limit: int | None,
    device: str,
    weights_from: tuple[str, ...],
    as_json: bool,
) -> None:
    """Replace one part of one block at a time in a trained decoder, and show what it changes.

    The parent is an evaluation with stored weights, STUDY#NUMBER, or the best one of a study. Each
    new part is another option of the space: another mixer, fewer key/value heads, another
    feed-forward part, or none. It is trained for a few steps to give the output of the parent's
    block, with all else frozen; then the whole network is measured on the validation text.

    Scores are results of a study of their own, stored one by one: the same command goes on after an
    interruption, and shows the scores alone once all are there. The agent block-additive starts
    warm from them.
    """
    from archive.searches.blocks import study_blocks

    with open_archive(ctx) as archive:
        report = study_blocks(
            archive,
            parent,
            name=name,
            steps=steps,
            seeds=seeds,
            parts=parts or PARTS,  # type: ignore[arg-type]
            blocks=blocks,
            kinds=kinds,
            limit=limit,
            device=device,
            weights_from=weights_from,
            notify=print_message,
        )

    if as_json:
        print_json(report)
    else:
        _print(report)


def _print(report: BlockReport) -> None:
    rows = []
    for row in report.replacements:
        spread = "" if row.deviation is None else f" ± {row.deviation:.4f}"
        rows.append(
            [
                row.block,
                row.part,
                row.before,
                row.after,
                f"{row.change:+.4f}{spread}",
                f"{row.divergence:.4f}",
                f"{row.params:+,.0f}",
                f"{row.kv_cache_bytes:+,.0f}",
            ]
        )

    columns = ("block", "part", "parent", "replacement", "change", "divergence", "params", "cache")
    title = f"{report.objective} {report.value:.4f} of {report.parent}, and what changes it"
    print_table(columns, rows, title=title)
    if report.left:
        waiting = counted(report.left, "replacement")
        print_message(
            f"{waiting} without a score yet: the same command, without --limit, adds them"
        )

    print_line(f"study {report.study}")

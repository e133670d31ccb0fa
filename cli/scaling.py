"""`archive scaling`: losses of larger trainings, from the smaller ones of studies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from archive.cli.names import STUDY
from archive.cli.render import (
    json_option,
    open_archive,
    print_json,
    print_line,
    print_table,
)
from archive.values import counted

if TYPE_CHECKING:
    from archive.agents.scaling.report import ScalingDocument

LAWS = ("chinchilla", "kaplan", "power")


@click.command(short_help="Forecast the losses of larger trainings from smaller ones.")
@click.argument("studies", nargs=-1, required=True, type=STUDY)
@click.option(
    "--at",
    type=float,
    required=True,
    metavar="FLOPS",
    help="Operations of a training, 6 for each parameter and token.",
)
@click.option(
    "--law", type=click.Choice(LAWS), default="chinchilla", show_default=True, help="Scaling law."
)
@click.option(
    "--params", default="params", show_default=True, metavar="NAME", help="Metric: parameters."
)
@click.option(
    "--tokens", default="tokens", show_default=True, metavar="NAME", help="Metric: tokens trained."
)
@json_option
@click.pass_context
def scaling(
    ctx: click.Context,
    studies: tuple[str, ...],
    at: float,
    law: str,
    params: str,
    tokens: str,
    as_json: bool,
) -> None:
    """Forecast the loss of each design of STUDIES at a number of operations, with an interval.

    Every result counts that has parameters and tokens, also of a training that paused at a rung.
    The studies are of one task and one space: protocols with other numbers of tokens, for example.
    The interval holds with a probability of 90 %: it is corrected by a forecast of the larger runs
    from the smaller ones.

    The next training is the one that says most for its operations about which design is best. Pairs
    are named whose order is likely to be another at these operations than at those of the largest
    run.

    Example: archive scaling decoders-2M decoders-8M --at 1e20
    """
    from archive.agents.scaling.report import scaling as forecast_studies

    with open_archive(ctx) as archive:
        document = forecast_studies(archive, studies, at, law=law, params=params, tokens=tokens)

    if as_json:
        print_json(document)
    else:
        _print(document)


def _print(document: ScalingDocument) -> None:
    runs = counted(document.runs, "run")
    print_line(f"{document.law} law of {runs} up to {document.largest:.3g} FLOPs")
    percent = f"{100 * document.probability:.0f} %"
    rows = []
    for design in document.designs:
        rows.append(
            (
                design.architecture[:12],
                f"{design.params:.3g}",
                f"{design.tokens:.3g}",
                f"{design.loss:.4g}",
                f"{design.low:.4g} to {design.high:.4g}",
                round(design.best, 2),
            )
        )

    columns = ("network", "params", "tokens", "loss", percent, "best")
    print_table(columns, rows, title=f"At {document.at:.3g} FLOPs")
    training = document.next
    if training is None:
        print_line("train next: no single training is expected to change the choice")
    else:
        print_line(
            f"train next: {training.architecture[:12]} on {training.tokens:.3g} tokens "
            f"({training.flops:.3g} FLOPs)"
        )

    for flip in document.flips:
        where = "" if flip.flops is None else f", from about {flip.flops:.3g} FLOPs on"
        print_line(
            f"{flip.behind[:12]} passes {flip.ahead[:12]} with a probability of "
            f"{flip.probability:.2f}{where}"
        )

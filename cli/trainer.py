"""`archive trainer`: trains what agents propose."""

from __future__ import annotations

import logging
from dataclasses import asdict

import click

from archive.cli.render import json_option, messages, open_archive, print_json


@click.command()
@click.option("--study", help="Serve this study alone [any].")
@click.option("--slots", type=click.IntRange(1), default=1, show_default=True, help="Trials at a time.")
@click.option(
    "--device", default="auto", show_default=True, help="cpu, cuda, cuda:1 …; auto takes a GPU if there is one."
)
@click.option("--threads", type=click.IntRange(1), help="CPU threads of each trial [cores / slots].")
@click.option("--once", is_flag=True, help="Leave after one trial, or when nothing waits.")
@click.option("--idle", "idle_seconds", type=click.FloatRange(0), help="Leave after so many seconds without work.")
@click.option("--drain", is_flag=True, help="Finish running trials on SIGTERM or Ctrl-C; a second one hands them back.")
@click.option("--parent", type=int, hidden=True, help="Leave when the process of this id is gone.")
@json_option
@click.pass_context
def trainer(
    ctx: click.Context,
    study: str | None,
    slots: int,
    device: str,
    threads: int | None,
    once: bool,
    idle_seconds: float | None,
    drain: bool,
    parent: int | None,
    as_json: bool,
) -> None:
    """Train what agents propose, until stopped.

    Claims proposals, trains each in a process of its own, and writes results back. Any number of trainers may serve
    one archive, on any number of machines.
    """
    from archive.trainer.daemon import Trainer
    from archive.trainer.options import Options

    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
    # The driver warns of every server outage that the trainer rides out and reports itself.
    logging.getLogger("neo4j").setLevel(logging.ERROR)
    options = Options(
        study=study,
        slots=slots,
        device=device,
        threads=threads,
        once=once,
        idle_seconds=idle_seconds,
        drain=drain,
        parent=parent,
    )
    # The trainer rides outages out itself, and must not be deaf to signals for as long as a connection would wait.
    with open_archive(ctx, patience=5.0) as archive:
        if study is not None:
            archive.studies.get(study)
        tally = Trainer(archive, options).run()
    if as_json:
        print_json(asdict(tally))
    else:
        messages().print(f"{tally.complete} evaluated, {tally.failed} failed, {tally.returned} handed back")

"""`archive study gain`: what a study would gain by searching on, and by training longer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from archive.cli.names import STUDY
from archive.cli.render import (
    json_option,
    open_archive,
    print_json,
    print_line,
    print_message,
    print_table,
)
from archive.searches.prospects import prospects
from archive.values import counted, settings_text

if TYPE_CHECKING:
    from archive.searches.prospects import ProspectReport


@click.command("gain", short_help="Show what a study would gain by searching on.")
@click.argument("name", metavar="STUDY", type=STUDY)
@json_option
@click.pass_context
def gain(ctx: click.Context, name: str, as_json: bool) -> None:
    """Show what a study would gain by searching on, and by training longer.

    Searching on: the best noise-free value that there is, by the joint posterior of a Gaussian
    process at evaluated, random and promising networks, minus the recommended network's. The mean
    is what any number of further evaluations gains at most, as far as the model is right. The model
    does not depend on the agent. archive search --stop-when ends a search by it.

    Training longer: with rungs, the mean gain of the trainings that continued from each rung to the
    next, and the paused trainings that are expected to be the best; else the mean gain over the
    second half of the trainings.
    """
    with open_archive(ctx) as archive:
        report = prospects(archive, name)

    if as_json:
        print_json(report)
    else:
        _print(report)


def _print(report: ProspectReport) -> None:
    searching = report.searching
    if searching is None or report.recommended is None:
        print_message(f"searching on: {report.reason}")
    else:
        print_line(
            ("searching on", "bold"),
            f"      gains {searching.mean:.3g} {report.objective} at most "
            f"(95 %: {searching.low:.3g} to {searching.high:.3g}), by "
            f"{counted(searching.networks, 'network')}",
        )
        recommended = report.recommended
        print_line(
            f"recommended       {recommended.architecture}, expected {recommended.expected:.4g}"
        )
        if recommended.configuration:
            print_line(f"configuration     {settings_text(recommended.configuration)}")

        if searching.noise:
            print_line(f"noise             {searching.noise:.2g} of an evaluation")

    rows = []
    for step in report.longer:
        interval = None if step.low is None else f"{step.low:.3g} to {step.high:.3g}"
        rows.append([f"{step.begin} to {step.end}", step.mean, interval, step.trainings])

    if rows:
        print_table(("epochs", "gain", "95 %", "trainings"), rows, title="training longer")

    paused = []
    for training in report.paused:
        interval = f"{training.low:.4g} to {training.high:.4g}"
        paused.append(
            [training.proposal, training.epochs, training.value, training.expected, interval]
        )

    if paused:
        columns = ("proposal", "epochs", report.objective, "expected at the end", "95 %")
        print_table(columns, paused, title="paused trainings")

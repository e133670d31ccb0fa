"""The report of `archive search`: its outcome in words, and the commands to continue."""

from __future__ import annotations

import shlex
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from archive.cli.render import print_line
from archive.cli.study.best import interval, print_pareto
from archive.searches.request import agent_of
from archive.searches.results import unmet_line
from archive.values import counted

if TYPE_CHECKING:
    from archive.searches.outcome import GainItem, IncumbentItem, RecommendedItem, SearchResult
    from archive.store.records import Study

PASSING = (
    "batch",
    "trainers",
    "engine",
    "device",
    "observe",
    "retrain",
    "proxies",
    "stall_seconds",
    "trial_seconds",
    "scratch_bytes",
    "memory_bytes",
)
"""Options that no study stores: the command that continues a search repeats them."""


def print_outcome(ctx: click.Context, result: SearchResult, study: Study) -> None:
    """Write the result of a search, and the commands that continue from it.

    Args:
        ctx: Context of the search command.
        result: The result.
        study: The stored study.
    """
    best = result.best
    if best is None:
        _print_failure(ctx, result, study)
        return

    _print_best(result, best, study)
    if result.pareto is not None:
        print_line()
        print_pareto(result.pareto)

    print_line()
    print_line("next:")
    print_line(f"  {archive_command(ctx)} arch show {best.architecture[:8]}")
    if not result.exhausted:
        print_line(f"  {longer_search(ctx, result, study)}")


def _print_failure(ctx: click.Context, result: SearchResult, study: Study) -> None:
    """Write why there is no best network."""
    if result.evaluations and study.constraints:
        constraints = [str(constraint) for constraint in study.constraints]
        print_line(unmet_line(constraints, result.evaluations, result.nearest))
    elif result.evaluations + result.failed:
        reasons = f"{archive_command(ctx)} study show {shlex.quote(study.name)}"
        print_line(f"no evaluation succeeded; see the reasons with: {reasons}")
    else:
        print_line("no network was evaluated")


def _print_best(result: SearchResult, best: IncumbentItem, study: Study) -> None:
    """Write the best network, the gain over the initial ones, and where the results are."""
    metric = result.objective.removeprefix("valid_")
    held_out = "" if best.held_out is None else f", {best.held_out:.4g} on held-out test data"
    # A column of a user's table may be a latency, which has no held-out data.
    where = f" on validation data{held_out}" if result.objective.startswith("valid_") else ""
    print_line()
    print_line(("best architecture", "bold"), f"  {best.architecture}  (proposal {best.proposal})")
    print_line(f"{metric:<17}  {best.value:.4g}{where}")
    if result.recommended is not None:
        print_line(f"recommended        {_estimate(result.recommended)}")

    if result.gain is not None:
        print_line(f"gain               {_gain(result.gain, result.evaluations, study.direction)}")

    if result.pruned:
        print_line(
            f"rungs              {result.pruned} of {result.evaluations} evaluations were "
            "pruned early"
        )

    if result.answered:
        answered = f"{result.answered} of {result.evaluations} evaluations came from the archive"
        print_line(f"answered           {answered} and were not trained (--retrain does)")

    print_line(f"stored in          {result.server}, study {study.name}")
    if best.weights is not None:
        print_line(f"weights            {best.weights}")
    elif best.unsaved is not None:
        print_line(("weights", "yellow"), f"            not saved: {best.unsaved}")


def _estimate(recommended: RecommendedItem) -> str:
    """Return the recommended network with its estimate, in words."""
    estimate = recommended.expected
    evaluations = counted(estimate.evaluations, "evaluation")
    ends = "" if estimate.low is None else f", 95 %: {interval(estimate)}"
    return f"{recommended.architecture}  (expected {estimate.mean:.4g}{ends}; {evaluations})"


def _gain(gain: GainItem, evaluations: int, direction: str) -> str:
    """Return the gain over the initial networks, in words."""
    if evaluations <= gain.initial:
        return "none yet: only initial networks have been evaluated"

    networks = (
        "initial network" if gain.initial == 1 else (f"best of the {gain.initial} initial networks")
    )
    initial = f"the {networks} ({gain.initial_best:.4g})"
    position = f"found at evaluation {gain.found_at} of {evaluations}"
    if not gain.gain:
        return f"none: no later network is better than {initial}, {position}"

    difference = gain.best - gain.initial_best
    return (
        f"{difference:+.3g} {'over' if direction == 'maximise' else 'from'} {initial}, {position}"
    )


def longer_search(ctx: click.Context, result: SearchResult, study: Study) -> str:
    """Return the command that continues this study; the study supplies task, protocol and space."""
    total = 2 * max(result.budget, result.evaluations)
    parts = [archive_command(ctx), "search --study", shlex.quote(study.name), f"--budget {total}"]
    if result.agent != agent_of(study):
        parts += ["--agent", shlex.quote(result.agent)]

    return _command(" ".join(parts), ctx, PASSING)


def archive_command(ctx: click.Context) -> str:
    """Return the command `archive` with the options that stand before the name of a command."""
    return _command("archive", ctx.find_root())


def _command(name: str, ctx: click.Context, selected: Collection[str] | None = None) -> str:
    """Return a command with its options from the command line, all of them or the selected ones."""
    parts = [name]
    for option in ctx.command.params:
        key = str(option.name)
        if ctx.get_parameter_source(key) is not ParameterSource.COMMANDLINE or (
            selected is not None and key not in selected
        ):
            continue

        values = ctx.params[key]
        for value in values if isinstance(values, tuple) else (values,):
            parts.append(option.opts[0])
            if value is not True:
                parts.append(_quote(value))

    return " ".join(parts)


def _quote(value: Any) -> str:
    return f"{value:.15g}" if isinstance(value, float) else shlex.quote(str(value))

"""The report of `archive search`: its result, the reason of its end, and the commands to continue."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from archive.cli.render import print_line
from archive.cli.search.request import agent_of
from archive.cli.study.constraints import constraint_items, nearest_item, unmet_line
from archive.cli.study.estimates import best_view, best_views, estimate_item, interval
from archive.cli.study.pareto import objective_items, pareto_item, print_pareto

if TYPE_CHECKING:
    from archive.agents.base import Agent
    from archive.agents.recommendation import Recommendation
    from archive.api import Archive
    from archive.store.records import State, Study
    from archive.store.snapshots import Snapshot
    from archive.trainer.tasks.registry import Task
    from archive.trainer.tasks.tabular import TabularTask

PASSING = (
    *("batch", "trainers", "engine", "device", "observe", "retrain", "proxies"),
    *("stall_seconds", "trial_seconds", "scratch_bytes", "memory_bytes"),
)
"""Options that no study stores: the command that continues a search repeats them."""


def evaluated(counts: Mapping[State, int]) -> int:
    """Return the number of proposals with a result, final or of the rung at which they pause."""
    return sum(count for state, count in counts.items() if state.evaluated)


def place(archive: Archive) -> str:
    """Return the place of the archive in words; without the embedded server's port, which changes."""
    settings = archive.connection.settings
    return f"the embedded archive in {settings.home}" if settings.embedded else archive.connection.address


def nothing_left(archive: Archive, last: Snapshot, agent: Agent, *, searched: bool = True) -> str | None:
    """Return why a larger budget would find nothing more; None where it may.

    Args:
        archive: The archive of the study.
        last: The last snapshot of the study.
        agent: The search agent.
        searched: Whether `last` is the end of the agent's search.
    """
    from archive.agents import loop
    from archive.store.records import State

    study, own = last.study, evaluated(last.counts)
    # A search that leaves a part of its budget has ended because the agent had no proposal.
    short = searched and own < study.budget
    if not short and "table" not in study.space_config:
        # Listing a large space would be wasteful; the networks of a table are already listed.
        return None
    so_far = f"{own} of {study.budget} evaluations"
    known, members = loop.history_of(archive, study).known, agent.space.members()
    if members is not None and all(member.functional_key in known for member in members):
        n, failed = len(members), last.counts[State.FAILED]
        # Networks of a warm start are known, but not evaluations of this study.
        rest = "" if own + failed >= n else ", the others are of the studies that it started warm from"
        every = "the only network of the space is" if n == 1 else f"all {n} networks of the space are"
        return f"{every} evaluated{' or failed' if failed else ''}: {so_far}{rest}"
    return f"the agent {agent.kind} has no further proposals: {so_far}" if short else None


def outcome(
    archive: Archive, last: Snapshot, agent: str, task: Task | TabularTask, exhausted: str | None
) -> dict[str, Any]:
    """Return the result of a search as plain values: the JSON document of `archive search`.

    `gain` compares the best network with the best one of the agent's initial design, or is null where the record does
    not tell (`archive.agents.initial_design`): `initial`, the number of initial networks that were evaluated;
    `initial_best` and `best`, values in the task's own unit; `gain`, their difference, positive where `best` is better
    and 0 where nothing better was found; `found_at`, the position of the best among the evaluations, from 1.

    Args:
        archive: The archive of the study.
        last: The last snapshot of the study.
        agent: Name of the search agent.
        task: Task of the study.
        exhausted: Why nothing is left to evaluate; None where something may be.
    """
    from archive.agents.initial_design import gain
    from archive.agents.recommendation import of_study
    from archive.store.records import State

    study, best = last.study, last.incumbent
    gained = gain(archive, last)
    weights = None if best is None else archive.weights.of_evaluation(best.id)
    result: dict[str, Any] = {
        "study": study.name,
        "agent": agent,
        "task": study.task,
        "protocol": study.protocol,
        "space": study.space,
        "objective": study.objective,
        "evaluations": evaluated(last.counts),
        "pruned": last.counts[State.PRUNED],
        "answered": archive.answers.count(study.name),
        "failed": last.counts[State.FAILED],
        "budget": study.budget,
        "exhausted": exhausted is not None,
        "warm_started_from": list(archive.studies.sources(study.name)),
        "server": place(archive),
        "best": None,
        "recommended": None,
        "gain": gained and asdict(gained),
        "objectives": objective_items(study),
        "pareto": pareto_item(last),
        "constraints": constraint_items(study),
        "nearest": nearest_item(last),
    }
    if best is not None:
        result["best"] = {
            "architecture": best.architecture_key,
            "proposal": best.id,
            "value": best.value,
            "held_out": best.metrics.get(_held_out(study.objective, task)),
            "weights": weights and weights.uri,
        }
        ranked = None if result["pareto"] else of_study(archive, study)
        result["recommended"] = ranked and _recommended(last, ranked.ranked[0])
    return result


def _recommended(last: Snapshot, one: Recommendation) -> dict[str, Any] | None:
    """Return the recommended network of a study whose results have noise, with the proposal of its best value."""
    view = best_view(best_views(last), one)
    if view is None:
        return None
    about = {"architecture": view.architecture_key, "proposal": view.id, "value": view.value}
    return {**about, "expected": estimate_item(last.study, one)}


def _held_out(objective: str, task: Task | TabularTask) -> str:
    """Return the name of the metric on test data that belongs to an objective on validation data."""
    validated = objective == task.objective or not objective.startswith("valid_")
    return f"test_{task.metric}" if validated else f"test_{objective.removeprefix('valid_')}"


def print_outcome(ctx: click.Context, result: Mapping[str, Any], study: Study) -> None:
    """Write the result of a search, and the commands that continue from it.

    Args:
        ctx: Context of the search command.
        result: The result, from `outcome`.
        study: The stored study.
    """
    best, archive = result["best"], _command("archive", ctx.find_root())
    if best is None and result["evaluations"] and study.constraints:
        print_line(unmet_line(list(map(str, study.constraints)), result["evaluations"], result["nearest"]))
        return
    if best is None and not result["evaluations"] + result["failed"]:
        print_line("no network was evaluated")
        return
    if best is None:
        reasons = f"{archive} study show {shlex.quote(study.name)}"
        print_line(f"no evaluation succeeded; see the reasons with: {reasons}")
        return
    metric = result["objective"].removeprefix("valid_")
    held_out = "" if best["held_out"] is None else f", {best['held_out']:.4g} on held-out test data"
    # A column of a user's table may be a latency, which has no held-out data.
    where = f" on validation data{held_out}" if result["objective"].startswith("valid_") else ""
    print_line()
    print_line(("best architecture", "bold"), f"  {best['architecture']}  (proposal {best['proposal']})")
    print_line(f"{metric:<17}  {best['value']:.4g}{where}")
    if result["recommended"]:
        print_line(f"recommended        {_estimate(result['recommended'])}")
    if result["gain"]:
        print_line(f"gain               {_gain(result['gain'], result['evaluations'], study.direction)}")
    if result["pruned"]:
        print_line(f"rungs              {result['pruned']} of {result['evaluations']} evaluations were pruned early")
    if result["answered"]:
        counted = f"{result['answered']} of {result['evaluations']} evaluations came from the archive"
        print_line(f"answered           {counted} and were not trained (--retrain does)")
    print_line(f"stored in          {result['server']}, study {study.name}")
    if best["weights"]:
        print_line(f"weights            {best['weights']}")
    if result["pareto"]:
        print_line()
        print_pareto(result["pareto"])
    print_line()
    print_line("next:")
    print_line(f"  {archive} arch show {best['architecture'][:8]}")
    if not result["exhausted"]:
        print_line(f"  {_longer(ctx, archive, result, study)}")


def _estimate(recommended: Mapping[str, Any]) -> str:
    """Return the recommended network with its estimate, in words."""
    estimate = recommended["expected"]
    counted = f"{estimate['evaluations']} evaluation{'s' if estimate['evaluations'] > 1 else ''}"
    known = "" if estimate["low"] is None else f", 95 %: {interval(estimate)}"
    return f"{recommended['architecture']}  (expected {estimate['mean']:.4g}{known}; {counted})"


def _gain(gain: Mapping[str, Any], evaluations: int, direction: str) -> str:
    """Return the gain over the initial networks, in words."""
    if evaluations <= gain["initial"]:
        return "none yet: only initial networks have been evaluated"
    networks = "initial network" if gain["initial"] == 1 else f"best of the {gain['initial']} initial networks"
    initial = f"the {networks} ({gain['initial_best']:.4g})"
    at = f"found at evaluation {gain['found_at']} of {evaluations}"
    if not gain["gain"]:
        return f"none: no later network is better than {initial}, {at}"
    difference = gain["best"] - gain["initial_best"]
    return f"{difference:+.3g} {'over' if direction == 'maximise' else 'from'} {initial}, {at}"


def _longer(ctx: click.Context, archive: str, result: Mapping[str, Any], study: Study) -> str:
    """Return the command that continues this study; the study supplies task, protocol and space."""
    total = 2 * max(result["budget"], result["evaluations"])
    parts = [archive, "search --study", shlex.quote(study.name), f"--budget {total}"]
    if result["agent"] != agent_of(study):
        parts += ["--agent", shlex.quote(result["agent"])]
    return _command(" ".join(parts), ctx, PASSING)


def trainer_command(ctx: click.Context, study: str) -> str:
    """Return the command that starts a trainer for a study of the archive of this command."""
    return f"{_command('archive', ctx.find_root())} trainer --study {shlex.quote(study)}"


def _command(name: str, ctx: click.Context, selected: Collection[str] | None = None) -> str:
    """Return a command with its options from the command line, all of them or the selected ones."""
    parts = [name]
    for option in ctx.command.params:
        key = str(option.name)
        if ctx.get_parameter_source(key) is not ParameterSource.COMMANDLINE or (
            selected is not None and key not in selected
        ):
            continue
        value = ctx.params[key]
        for one in value if isinstance(value, tuple) else (value,):
            parts += [option.opts[0], *([] if one is True else [_quoted(one)])]
    return " ".join(parts)


def _quoted(value: Any) -> str:
    return f"{value:.15g}" if isinstance(value, float) else shlex.quote(str(value))

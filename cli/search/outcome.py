"""The outcome of `archive search` as plain values, and the reason of its end."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from archive.cli.study.constraints import constraint_items, nearest_item
from archive.cli.study.estimates import best_view, best_views, estimate_item
from archive.cli.study.pareto import objective_items, pareto_item
from archive.quantities import counted
from archive.store.properties import UNSAVED_WEIGHTS

if TYPE_CHECKING:
    from archive.agents.base import Agent
    from archive.api import Archive
    from archive.store.records import State
    from archive.store.snapshots import ProposalView, Snapshot
    from archive.trainer.tasks.registry import Task
    from archive.trainer.tasks.tabular import TabularTask


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
    so_far = f"{own} of {counted(study.budget, 'evaluation')}"
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
    from archive.store.records import State

    study, best = last.study, last.incumbent
    gained = gain(archive, last)
    pareto = pareto_item(last)
    return {
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
        "best": None if best is None else _best(archive, last, best, task),
        "recommended": None if best is None or pareto else _recommended(archive, last),
        "gain": gained and asdict(gained),
        "objectives": objective_items(study),
        "pareto": pareto,
        "constraints": constraint_items(study),
        "nearest": nearest_item(last),
    }


def _best(archive: Archive, last: Snapshot, best: ProposalView, task: Task | TabularTask) -> dict[str, Any]:
    """Return the best network of a study, with its value on test data and the address of its weights."""
    weights = archive.weights.of_evaluation(best.id)
    return {
        "architecture": best.architecture_key,
        "proposal": best.id,
        "value": best.value,
        "held_out": best.metrics.get(_held_out(last.study.objective, task)),
        "weights": weights and weights.uri,
        "unsaved": None if weights else _unsaved(archive, best.id),
    }


def _unsaved(archive: Archive, evaluation: str) -> str | None:
    """Return why the weights of an evaluation could not be saved; None for none, or where there are none."""
    rows = archive.query("MATCH (e:Evaluation {id: $id}) RETURN e.environment", {"id": evaluation}).rows
    reason = json.loads(rows[0][0] or "{}").get(UNSAVED_WEIGHTS) if rows else None
    return None if reason is None else str(reason)


def _held_out(objective: str, task: Task | TabularTask) -> str:
    """Return the name of the metric on test data that belongs to an objective on validation data."""
    validated = objective == task.objective or not objective.startswith("valid_")
    return f"test_{task.metric}" if validated else f"test_{objective.removeprefix('valid_')}"


def _recommended(archive: Archive, last: Snapshot) -> dict[str, Any] | None:
    """Return the recommended network of a study whose results have noise, with the proposal of its best value."""
    from archive.agents.recommendation import of_study

    ranking = of_study(archive, last.study)
    if ranking is None:
        return None
    first = ranking.ranked[0]
    view = best_view(best_views(last), first)
    if view is None:
        return None
    about = {"architecture": view.architecture_key, "proposal": view.id, "value": view.value}
    return {**about, "expected": estimate_item(last.study, first)}

"""Studies and proposals as items of the JSON output (`archive.cli.documents.studies`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from archive.searches.results import constraint_items, objective_items

if TYPE_CHECKING:
    from archive.queue.successive_halving import Rungs
    from archive.store.records import State, Study
    from archive.store.snapshots import ProposalView

LATEST = 253_402_214_400_000
"""Milliseconds from 1970 to the last day but one of the year 9999, which every time zone can
say."""


def study_item(
    study: Study, counts: Mapping[State, int], best: float | None, agents: Sequence[str] = ()
) -> dict[str, Any]:
    """Return a study with how far it is.

    Args:
        study: The study.
        counts: Proposals by state; a state without any may be left out.
        best: Best value so far.
        agents: Names of its agents, in the order of their first proposals.
    """
    from archive.store.records import State

    rungs = rungs_of(study)
    agent = study.config.get("agent")
    began = agents[0] if agents else None
    return {
        "study": study.name,
        "task": study.task,
        "protocol": study.protocol,
        "space": study.space,
        "space_config": study.space_config,
        "objective": study.objective,
        "direction": study.direction,
        "objectives": objective_items(study),
        "constraints": constraint_items(study),
        "budget": study.budget,
        "seed": study.seed,
        "agent": agent if isinstance(agent, str) else began,
        "agents": list(agents),
        "rungs": None if rungs is None else rungs.as_config(),
        "created": timestamp(study.created),
        "counts": {state.value.lower(): counts.get(state, 0) for state in State},
        "best": best,
    }


def proposal_item(study: Study, view: ProposalView) -> dict[str, Any]:
    """Return a proposal of a study with what became of it."""
    names = ("agent", "acquisition", "mean", "std")
    more = ("epochs", "value", "seconds", "attempts", "worker", "metrics", "reason")
    return {
        "proposal": view.id,
        "number": view.number,
        "state": view.state.value.lower(),
        "cancelled": view.cancelled,
        "architecture": view.architecture_key,
        **{name: getattr(view, name) for name in names},
        "rung": None if rungs_of(study) is None else view.rung + 1,
        **{name: getattr(view, name) for name in more},
        "started": timestamp(view.started),
        "finished": timestamp(view.finished),
    }


def rungs_of(study: Study) -> Rungs | None:
    """Return the rungs of a study; a study without any loads no code of theirs."""
    if study.config.get("rungs") is None:
        return None

    from archive.queue.successive_halving import Rungs

    return Rungs.of(study.config)


def timestamp(milliseconds: int | None) -> str | None:
    """Return a time of the database as ISO 8601 in UTC."""
    at = moment(milliseconds)
    return None if at is None else at.isoformat(timespec="milliseconds")[:-6] + "Z"


def moment(milliseconds: int | None) -> datetime | None:
    """Return a time of the database;

    None where it is unknown, or a loaded file says what no calendar has.
    """
    if milliseconds is None or not 0 <= milliseconds < LATEST:
        return None

    return datetime.fromtimestamp(milliseconds / 1000, UTC)

"""Objectives of a study that has several: the best of each, the Pareto set, and its hypervolume
over time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from archive.dashboard.endpoints.inputs import archive_of, named_study
from archive.dashboard.wire import json_response
from archive.plots.data.curves import evenly
from archive.queries.hypervolume import ParetoSet, pareto_set
from archive.store.ranking.pareto_front import values_of
from archive.store.records import State, sign
from archive.store.snapshots import ProposalView, Snapshot, violation_of

RESULTS = 4000
"""Most results beside the Pareto set."""
STEPS = 1000
"""Most steps of the hypervolume."""


def _objectives(request: Request) -> Response:
    """Return the objectives with their best results, the Pareto set, the other results and the
    hypervolume.
    """
    snapshot = archive_of(request).studies.snapshot(named_study(request))
    objectives: list[dict[str, Any]] = [
        {"name": each.name, "direction": each.direction} for each in snapshot.study.objectives
    ]
    pareto = pareto_set(snapshot) if len(objectives) > 1 else None
    if pareto is None:
        return json_response({"objectives": objectives})

    for at, each in enumerate(objectives):
        each["best"] = _best(pareto, at)

    front = [
        _result(view, values) for view, values in zip(pareto.proposals, pareto.values, strict=True)
    ]
    others = _others(snapshot, {view.number for view in pareto.proposals})
    return json_response(
        {
            "objectives": objectives,
            "front": front,
            "others": [others[at] for at in evenly(len(others), RESULTS)],
            "results": len(pareto.history),
            "left_out": pareto.left_out,
            "reference": pareto.reference,
            "hypervolume": pareto.hypervolume,
            "history": _steps(pareto.history),
        }
    )


def _best(pareto: ParetoSet, objective: int) -> dict[str, Any]:
    """Return the best result in one objective; the Pareto set has it."""
    better = sign(pareto.objectives[objective].direction)
    at = max(range(len(pareto.values)), key=lambda one: better * pareto.values[one][objective])
    return _result(pareto.proposals[at], pareto.values[at])


def _result(view: ProposalView, values: tuple[float, ...]) -> dict[str, Any]:
    return {"number": view.number, "architecture": view.architecture_key, "values": values}


def _others(snapshot: Snapshot, front: set[int]) -> list[dict[str, Any]]:
    """Return the other results that the hypervolume is of."""
    study = snapshot.study
    others = [
        view
        for view in snapshot.proposals
        if view.state is State.COMPLETE and view.number not in front
    ]
    known = (
        (view, values_of(view, study.objectives))
        for view in others
        if not violation_of(study, view)
    )
    return [
        {"number": view.number, "values": values} for view, values in known if values is not None
    ]


def _steps(history: tuple[tuple[int, float], ...]) -> list[tuple[int, float]]:
    """Return the results at which the hypervolume changes, of many some in even steps, and the last
    result.
    """
    volumes = np.array([volume for _, volume in history])
    changes = np.flatnonzero(np.diff(volumes, prepend=-1.0) != 0)
    kept = changes[evenly(len(changes), STEPS)].tolist()
    return [history[at] for at in dict.fromkeys([*kept, len(history) - 1])]


ROUTES = [Route("/api/study/objectives", _objectives)]

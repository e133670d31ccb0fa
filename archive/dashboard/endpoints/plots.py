"""Plots that need more than a study's points: hyperparameters, importance, gains, time line, objectives.

The numbers come from `archive.plots.data`, which `archive study plot` draws.
"""

from __future__ import annotations

from dataclasses import asdict
from hashlib import blake2b
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from archive.dashboard.endpoints.inputs import archive_of, integer, named_study
from archive.dashboard.wire import describe_objectives, json_response, select_attributes
from archive.errors import UnknownNameError, UsageError
from archive.objectives import sign
from archive.plots.data import gains, hyperparameters, timeline
from archive.plots.data.columns import ColumnTable, read_table
from archive.plots.data.curves import evenly
from archive.plots.data.importance import Analysis, ImportanceReport
from archive.plots.data.results import pick
from archive.plots.data.slices import Slices, slices_of
from archive.queries.pareto import ParetoSet, pareto_set
from archive.store.ranking import values_of
from archive.store.records import State
from archive.store.snapshots import ProposalView, Snapshot, violation_of

LINES = 300
MOST_LINES = 1000
"""Lines of the parallel view."""
LONGEST = 10 * 365 * 86_400
"""Seconds of the longest time line."""
DOTS = 400
"""Results of a slice."""
KEPT = 16
"""Most analyses that are kept: a forest takes a second."""

_analyses: dict[tuple[str, str], tuple[ImportanceReport, Slices]] = {}


def _parallel(request: Request) -> Response:
    """Return the axes of parallel coordinates; places on an axis are in [0, 1]."""
    most = integer(request, "most", LINES, least=1, most=MOST_LINES)
    study = named_study(request)
    names = request.query_params.getlist("axis")
    try:
        data = hyperparameters.parallel_coordinates(archive_of(request), study, names, most=most)
    except UsageError as error:
        return _nothing(error)

    axes = []
    for axis in data.axes:
        axes.append(
            {
                "name": axis.name,
                "kind": axis.kind,
                "scaling": axis.scaling,
                "ticks": axis.ticks,
                "places": np.round(axis.places, 4).tolist(),
            }
        )

    about = select_attributes(data, "objective", "direction", "results", "known")
    return json_response(
        {**about, "number": data.number.tolist(), "value": data.value.tolist(), "axes": axes}
    )


def _matters(request: Request) -> Response:
    """Return the importance of parameters and decisions, and slices of the most important ones."""
    study = named_study(request)
    try:
        table = read_table(archive_of(request), study)
        importance, sliced = _analyse(table)
    except UsageError as error:
        return _nothing(error)

    slices = []
    for part in sliced.slices:
        rows = evenly(len(part.value), DOTS)
        slices.append(
            {
                "name": part.axis.name,
                "scaling": part.axis.scaling,
                "ticks": part.axis.ticks,
                "number": part.number[rows].tolist(),
                "places": np.round(part.places[rows], 4).tolist(),
                "value": part.value[rows].tolist(),
                "grid": np.round(part.grid, 4).tolist(),
                "mean": part.mean.tolist(),
                "low": part.low.tolist(),
                "high": part.high.tolist(),
            }
        )

    return json_response({**asdict(importance), "slices": slices})


def _analyse(table: ColumnTable) -> tuple[ImportanceReport, Slices]:
    """Return the analysis of a table; of an unchanged study the last one."""
    digest = blake2b(table.value.tobytes(), digest_size=16)
    for column in table.columns:
        digest.update(column.name.encode())
        digest.update(column.codes.tobytes())

    key = (table.study, digest.hexdigest())
    if key not in _analyses:
        analysis = Analysis(table)
        if len(_analyses) >= KEPT:
            _analyses.clear()

        _analyses[key] = (analysis.report(), slices_of(analysis))

    return _analyses[key]


def _gains(request: Request) -> Response:
    """Return the gains of each operation: quantiles, and its share of the new best values."""
    study = named_study(request)
    try:
        data = gains.operation_gains(archive_of(request), study)
    except UsageError as error:
        return _nothing(error)

    operations: list[dict[str, Any]] = []
    for operation in data.operations:
        operations.append(
            {
                "operation": operation.operation,
                "uses": len(operation.gains),
                "improved": operation.improved,
                "quantiles": operation.quantiles.tolist(),
                "raised": operation.raised,
            }
        )

    return json_response(
        {"objective": data.objective, "steps": data.steps, "operations": operations}
    )


def _timeline(request: Request) -> Response:
    """Return which worker held which proposal, of one study or all, in the last seconds or ever."""
    seconds = integer(request, "seconds", 0, most=LONGEST)
    most = integer(request, "most", timeline.MOST, least=1, most=timeline.MOST)
    study = [named_study(request)] if "study" in request.query_params else []
    data = timeline.worker_timeline(archive_of(request), study, seconds=seconds or None, most=most)
    trials = list(map(vars, data.trials))
    workers = [{"id": worker, "lanes": lanes} for worker, lanes in data.workers.items()]
    return json_response({"now": data.now, "workers": workers, "trials": trials, "cut": data.cut})


def _nothing(reason: UsageError) -> Response:
    """Return why a study has nothing to plot, which is no error of the request."""
    if isinstance(reason, UnknownNameError):
        raise reason

    return json_response({"nothing": str(reason)})


RESULTS = 4000
"""Most results beside the Pareto set."""
STEPS = 1000
"""Most steps of the hypervolume."""


def _objectives(request: Request) -> Response:
    """Return the objectives with best results, Pareto set, other results and hypervolume."""
    snapshot = archive_of(request).studies.snapshot(named_study(request))
    objectives = describe_objectives(snapshot.study)
    pareto = pareto_set(snapshot) if len(objectives) > 1 else None
    if pareto is None:
        return json_response({"objectives": objectives})

    for index, objective in enumerate(objectives):
        objective["best"] = _best(pareto, index)

    front = list(map(_result, pareto.proposals, pareto.values))
    others = _others(snapshot, {view.number for view in pareto.proposals})
    return json_response(
        {
            "objectives": objectives,
            "front": front,
            "others": pick(others, evenly(len(others), RESULTS)),
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
    best_row = max(
        range(len(pareto.values)), key=lambda row: better * pareto.values[row][objective]
    )
    return _result(pareto.proposals[best_row], pareto.values[best_row])


def _result(view: ProposalView, values: tuple[float, ...]) -> dict[str, Any]:
    return {
        "number": view.number,
        "architecture": view.architecture_key,
        "configuration": view.configuration,
        "values": values,
    }


def _others(snapshot: Snapshot, front: set[int]) -> list[dict[str, Any]]:
    """Return the other results that the hypervolume is of."""
    study = snapshot.study
    others = []
    for view in snapshot.proposals:
        if view.state is not State.COMPLETE or view.number in front or violation_of(study, view):
            continue

        values = values_of(view, study.objectives)
        if values is not None:
            others.append({"number": view.number, "values": values})

    return others


def _steps(history: tuple[tuple[int, float], ...]) -> list[tuple[int, float, int]]:
    """Return the results at which the hypervolume changes, some in even steps, and the last.

    A step has the number of the proposal, the hypervolume, and the count of results so far.
    """
    counted = [(number, volume, index) for index, (number, volume) in enumerate(history, 1)]
    volumes = np.array([volume for _, volume in history])
    changes = np.flatnonzero(np.diff(volumes, prepend=-1.0) != 0)
    kept = changes[evenly(len(changes), STEPS)].tolist()
    return pick(counted, dict.fromkeys([*kept, len(history) - 1]))


ROUTES = [
    Route("/api/study/parallel", _parallel),
    Route("/api/study/gains", _gains),
    Route("/api/study/matters", _matters),
    Route("/api/study/objectives", _objectives),
    Route("/api/timeline", _timeline),
]

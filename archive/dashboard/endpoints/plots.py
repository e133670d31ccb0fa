"""Plots that read more than the points of a study: hyperparameters, gains of operations, the time
line of workers.

The numbers are those of `archive.plots.data`, which `archive study plot` draws.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from archive.dashboard.endpoints.inputs import archive_of, integer, named_study
from archive.dashboard.wire import json_response
from archive.errors import UnknownNameError, UsageError
from archive.plots.data import gains, hyperparameters, timeline

LINES = 300
MOST_LINES = 1000
"""Lines of the parallel view."""
LONGEST = 10 * 365 * 86_400
"""Seconds of the longest time line."""


def _parallel(request: Request) -> Response:
    """Return hyperparameters, decisions or sizes of the networks beside the value; places on an
    axis are in [0, 1].
    """
    most = integer(request, "most", LINES, least=1, most=MOST_LINES)
    study = named_study(request)
    names = request.query_params.getlist("axis")
    try:
        data = hyperparameters.parallel_coordinates(archive_of(request), study, names, most=most)
    except UsageError as error:
        return _nothing(error)

    axes = [
        {
            "name": axis.name,
            "kind": axis.kind,
            "scaling": axis.scaling,
            "ticks": axis.ticks,
            "places": np.round(axis.places, 4).tolist(),
        }
        for axis in data.axes
    ]
    about = {name: getattr(data, name) for name in ("objective", "direction", "results", "known")}
    return json_response(
        {**about, "number": data.number.tolist(), "value": data.value.tolist(), "axes": axes}
    )


def _gains(request: Request) -> Response:
    """Return the gains of each operation of the agents: quantiles, and the share of the raises of
    the best.
    """
    study = named_study(request)
    try:
        data = gains.operation_gains(archive_of(request), study)
    except UsageError as error:
        return _nothing(error)

    operations: list[dict[str, Any]] = [
        {
            "operation": one.operation,
            "uses": len(one.gains),
            "improved": one.improved,
            "quantiles": one.quantiles.tolist(),
            "raised": one.raised,
        }
        for one in data.operations
    ]
    return json_response(
        {"objective": data.objective, "steps": data.steps, "operations": operations}
    )


def _timeline(request: Request) -> Response:
    """Return which worker held which proposal: of one study or of all, of so many seconds up to now
    or of all time.
    """
    seconds = integer(request, "seconds", 0, most=LONGEST)
    most = integer(request, "most", timeline.MOST, least=1, most=timeline.MOST)
    study = [named_study(request)] if "study" in request.query_params else []
    data = timeline.worker_timeline(archive_of(request), study, seconds=seconds or None, most=most)
    trials = [vars(one) for one in data.trials]
    workers = [{"id": worker, "lanes": lanes} for worker, lanes in data.workers.items()]
    return json_response({"now": data.now, "workers": workers, "trials": trials, "cut": data.cut})


def _nothing(reason: UsageError) -> Response:
    """Return why a study has nothing to plot, which is no error of the request."""
    if isinstance(reason, UnknownNameError):
        raise reason

    return json_response({"nothing": str(reason)})


ROUTES = [
    Route("/api/study/parallel", _parallel),
    Route("/api/study/gains", _gains),
    Route("/api/timeline", _timeline),
]

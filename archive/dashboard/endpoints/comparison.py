"""Comparison of two networks: differences as a picture and in parts, and distances.

Studies are compared by their points.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from archive import drawing
from archive.architecture.outline.changes import changes
from archive.architecture.outline.outline import outline
from archive.dashboard.endpoints.inputs import archive_of, choice, sheet_of, theme_of
from archive.dashboard.wire import json_response
from archive.errors import InvalidArchitectureError, UsageError

if TYPE_CHECKING:
    from archive.architecture.graph import Architecture
    from archive.kernels.differences import Difference

EXPLAINED = ("edit", "otmann")
"""Kernels that tell the parts of a distance."""


def _networks(request: Request) -> Response:
    from archive import kernels

    first, second = _pair(request)
    rows: list[dict[str, Any]] = []
    left_out: dict[str, str] = {}
    for name in kernels.names() if first.space == second.space else ():
        kernel = kernels.get(name)
        try:
            stack = kernel.distances([first], [second]).stack
        except InvalidArchitectureError as error:
            left_out[name] = str(error)
            continue

        for component, value in zip(kernel.components, stack[:, 0, 0], strict=True):
            rows.append({"kernel": name, "component": component, "distance": float(value)})

    return json_response(
        {
            "keys": [first.key, second.key],
            "distances": rows,
            "left_out": left_out,
            "one_space": first.space == second.space,
        }
    )


def _difference(request: Request) -> Response:
    """Return the parts of a distance with their costs: layers matched, changed, new, removed."""
    explained = _explain(request)
    parts = []
    for part in explained.parts:
        parts.append(
            {
                "subject": part.subject,
                "change": part.change,
                "first": _words(explained.first, part.first),
                "second": _words(explained.second, part.second),
                "cost": part.cost,
                "reason": part.reason,
            }
        )

    totals = []
    for subject, change, count, cost in explained.totals():
        totals.append({"subject": subject, "change": change, "parts": count, "cost": cost})

    named = changes(outline(explained.first), outline(explained.second))
    about = {
        "changes": list(map(str, named)),
        "kernel": explained.kernel,
        "component": explained.component,
        "distance": explained.distance,
    }
    return json_response({**about, "parts": parts, "totals": totals})


def _picture(request: Request) -> Response:
    from archive.kernels.differences.picture import difference_diagram, pair_diagram

    beside = choice(request, "view", ("merged", "beside"), "merged") == "beside"
    draw = pair_diagram if beside else difference_diagram
    compared = draw(_explain(request))
    drawn = drawing.svg(compared, theme=theme_of(request), sheet=sheet_of(request))
    return Response(
        drawn, headers={"cache-control": "private, max-age=86400"}, media_type="image/svg+xml"
    )


def _explain(request: Request) -> Difference:
    from archive.kernels.differences import difference

    first, second = archive_of(request).builds.networks_of(_pair(request))
    return difference(
        first.canonical, second.canonical, choice(request, "kernel", EXPLAINED, EXPLAINED[0])
    )


def _pair(request: Request) -> tuple[Architecture, Architecture]:
    asked = request.query_params.getlist("network")
    if len(asked) != 2:
        raise UsageError(f"two networks are compared, got {len(asked)}")

    architectures = archive_of(request).architectures
    first, second = (architectures.get(architectures.find(key)) for key in asked)
    return first, second


def _words(network: Architecture, ends: tuple[int, ...]) -> str:
    from archive.kernels.differences.base import words

    return (
        f"{ends[0]} {words(network.layers[ends[0]])}"
        if len(ends) == 1
        else " → ".join(map(str, ends))
    )


ROUTES = [
    Route("/api/comparison", _networks),
    Route("/api/difference", _difference),
    Route("/differences.svg", _picture),
]

"""Comparison of two networks: their distances by each kernel. Studies are compared by their points."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from archive.dashboard.endpoints.inputs import archive_of
from archive.dashboard.wire import json_response
from archive.errors import InvalidArchitectureError, UsageError


def _networks(request: Request) -> Response:
    from archive import kernels

    asked = request.query_params.getlist("network")
    if len(asked) != 2:
        raise UsageError(f"two networks are compared, got {len(asked)}")
    archive = archive_of(request)
    keys = [archive.architectures.find(key) for key in asked]
    first, second = (archive.architectures.get(key) for key in keys)
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
        {"keys": keys, "distances": rows, "left_out": left_out, "one_space": first.space == second.space}
    )


ROUTES = [Route("/api/comparison", _networks)]

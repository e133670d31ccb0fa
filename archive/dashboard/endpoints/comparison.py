"""Comparison of networks and of studies: values side by side, differences in parts, bands, distances."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast, get_args

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from archive import drawing
from archive.architecture.outline.changes import changes
from archive.architecture.outline.outline import outline
from archive.dashboard.endpoints.inputs import (
    archive_of,
    choice,
    news_of,
    sheet_of,
    theme_of,
)
from archive.dashboard.wire import json_response
from archive.errors import InvalidArchitectureError, UnknownNameError, UsageError
from archive.plots.data.progress import Against
from archive.queries.measures import measures_of
from archive.store.studies.configurations import configuration_of_network

if TYPE_CHECKING:
    from archive.architecture.graph import Architecture
    from archive.kernels.differences import Difference

EXPLAINED = ("edit", "otmann")
"""Kernels that tell the parts of a distance."""


MOST_NETWORKS = 60
"""Networks that are compared at a time."""

FACTS = ("space", "layers", "edges", "depth", "mass", "params", "flops")
"""Properties of a network in a comparison."""


def _networks(request: Request) -> Response:
    """Return networks with their properties, and their measures side by side.

    Networks that the archive does not have are named in `missing`.
    """
    archive = archive_of(request)
    networks: dict[str, dict[str, Any]] = {}
    missing = []
    for name in request.query_params.getlist("network")[:MOST_NETWORKS]:
        try:
            key = archive.architectures.find(name)
        except UnknownNameError:
            missing.append(name)
            continue

        details = archive.architectures.details(key)
        network = archive.architectures.get(key)
        facts: dict[str, Any] = {fact: details.get(fact) for fact in FACTS}
        configuration = configuration_of_network(archive.connection, network)
        networks[key] = {"key": key, **facts, "configuration": configuration}

    measured = measures_of(archive.connection, list(networks))
    for network_facts, model in zip(networks.values(), measured.models, strict=True):
        network_facts["model"] = model

    measures = []
    for measure in measured.measures:
        values = [None if value is None else value._asdict() for value in measure.values]
        measures.append({**vars(measure), "values": values})

    return json_response(
        {"networks": list(networks.values()), "measures": measures, "missing": missing}
    )


def _studies(request: Request) -> Response:
    """Return the groups of some studies with bands, and sentences on their differences.

    With `estimated=yes`, single studies are compared by the estimates of their recommended
    networks, which takes seconds.
    """
    # Imported here because the page starts without agents and trainers.
    from archive.searches.answer import answer
    from archive.searches.repeats import compare_studies

    archive = archive_of(request)
    names = list(dict.fromkeys(request.query_params.getlist("study")))
    against = choice(request, "against", get_args(Against), "evaluations")
    answers = {}
    if choice(request, "estimated", ("yes", "no"), "no") == "yes":
        answers = {name: answer(archive, name) for name in names}

    agents = {}
    for study in news_of(request).fresh("studies").since(0).values():
        if study is not None:
            agents[study["name"]] = study["agent"]

    compared = compare_studies(
        archive, names, cast("Against", against), agents=agents, answers=answers
    )
    groups = []
    for group in compared.groups:
        quartiles = None
        if group.band is not None:
            quartiles = {
                name: getattr(group.band, name).tolist() for name in ("x", "median", "low", "high")
            }

        interval = answers.get(group.name) if len(group.studies) == 1 else None
        groups.append(
            {
                "name": group.name,
                "studies": group.studies,
                "median": group.median,
                "band": quartiles,
                "low": None if interval is None else interval.low,
                "high": None if interval is None else interval.high,
            }
        )

    return json_response(
        {
            "evaluations": compared.evaluations,
            "groups": groups,
            "verdicts": compared.verdicts,
        }
    )


def _distances(request: Request) -> Response:
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
    Route("/api/comparison/networks", _networks),
    Route("/api/comparison/studies", _studies),
    Route("/api/comparison", _distances),
    Route("/api/difference", _difference),
    Route("/differences.svg", _picture),
]

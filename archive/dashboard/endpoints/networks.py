"""Networks: picture, layers, every evaluation anywhere, relatives, nearest ones."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from archive.architecture import codec, diagram, texts
from archive.architecture.choice_operations import decision_labels
from archive.architecture.graph import Architecture
from archive.architecture.outline.outline import outline
from archive.architecture.outline.summary import rows as outline_rows
from archive.dashboard.endpoints.inputs import archive_of, choice, integer, sheet_of, theme_of
from archive.dashboard.wire import json_response, select_attributes
from archive.errors import InvalidArchitectureError
from archive.queries.networks import (
    EVALUATIONS_OF_NETWORK,
    NETWORKS_BY_MODEL,
    NETWORKS_BY_PREFIX,
    PROPOSALS_OF_NETWORK,
    RELATIVES,
    STEPS_OF_NETWORK,
)
from archive.queries.results_by_task import PREDICTION, models_of
from archive.store.studies.configurations import configuration_of_network

if TYPE_CHECKING:
    from archive.agents.nearest import Nearest
    from archive.api import Archive


MOST_RELATIVES = 200
NEIGHBOURS = 10
MOST_NEIGHBOURS = 100
LAYERS_SHOWN = 2000


def _find(request: Request) -> Response:
    """Return networks whose key, or name at their source, begins like this."""
    prefix = request.query_params.get("find", "").strip().lower()
    by_key, by_model = archive_of(request).connection.read(
        lambda tx: (
            tx.run(NETWORKS_BY_PREFIX, prefix=prefix).data(),
            tx.run(NETWORKS_BY_MODEL, prefix=prefix).data() if prefix else [],
        )
    )
    return json_response({"networks": [*by_model, *by_key]})


def _published(request: Request) -> Response:
    """Return the best published network of a space; its `architecture` is null without results."""
    # Imported here because the page starts without plots.
    from archive.plots.data.network_map import published_results

    task, results = published_results(archive_of(request), request.query_params.get("space", ""))
    if not results:
        return json_response({"architecture": None})

    best = max(results, key=results.__getitem__)
    about = {"architecture": best, "model": results[best].model, "value": results[best].accuracy}
    return json_response({**about, "task": task, "networks": len(results)})


def _network(request: Request) -> Response:
    archive = archive_of(request)
    key = archive.architectures.find(request.path_params["key"])
    network = archive.architectures.get(key)
    details = archive.architectures.details(key)
    evaluations = archive.connection.read(lambda tx: tx.run(EVALUATIONS_OF_NETWORK, key=key).data())
    for row in evaluations:
        row["predicted"] = row.pop("source") == PREDICTION
        row["metrics"] = {
            name.removeprefix("metric_"): value for name, value in row["metrics"] or ()
        }

    proposed = archive.connection.read(lambda tx: tx.run(PROPOSALS_OF_NETWORK, key=key).data())
    about = {}
    for name, value in details.items():
        if name not in ("revision", "parents", "children"):
            about[name] = value

    built = archive.builds.of([key]).get(key)
    return json_response(
        {
            **about,
            "model": models_of(archive.connection, [key]).get(key),
            "network": None if built is None else built.network,
            "configurations": archive.builds.configurations([key]).get(key, []),
            "text": texts.to_text(network),
            "configuration": configuration_of_network(archive.connection, network),
            "outline": list(map(vars, outline_rows(outline(network)))),
            "graph": codec.to_dict(network) if len(network.layers) <= LAYERS_SHOWN else None,
            "evaluations": evaluations,
            "proposals": proposed,
            **_relatives(archive, key),
        }
    )


def _relatives(archive: Archive, key: str) -> dict[str, Any]:
    steps = archive.connection.read(
        lambda tx: tx.run(STEPS_OF_NETWORK, key=key).single(strict=True).data()
    )
    parents = _pair_with_operations(steps["parents"])
    children = _pair_with_operations(steps["children"])
    keys = sorted({key for key, _ in (*parents, *children)})
    networks = archive.connection.read(
        lambda tx: {row["key"]: row.data() for row in tx.run(RELATIVES, keys=keys)}
    )
    for row in networks.values():
        # A network without evaluations has one range without a task.
        row["values"] = []
        for task, objective, lowest, largest in row.pop("ranges"):
            if task is not None:
                span = {"task": task, "objective": objective, "lowest": lowest, "largest": largest}
                row["values"].append(span)

    sides: dict[str, list[dict[str, Any]]] = {"parents": [], "children": []}
    for side, relatives in (("parents", parents), ("children", children)):
        for relative, operations in relatives:
            if relative in networks:
                sides[side].append({**networks[relative], "operations": operations})

    return sides


def _pair_with_operations(pairs: Iterable[Any]) -> list[tuple[str, list[str]]]:
    # A network without relatives has one pair without a key.
    named = sorted((key, list(operations or ())) for key, operations in pairs if key is not None)
    return named[:MOST_RELATIVES]


def _nearest(request: Request) -> Response:
    from archive import kernels

    archive = archive_of(request)
    k = integer(request, "k", NEIGHBOURS, least=1, most=MOST_NEIGHBOURS)
    network = archive.architectures.get(archive.architectures.find(request.path_params["key"]))
    network = archive.builds.network_of(network)
    kernel = request.query_params.get("kernel") or _usual_kernel(network)
    answer = _index(archive).similar(network, k, kernel)
    models = models_of(archive.connection, [neighbour.key for neighbour in answer.neighbours])
    rows = [
        {**vars(neighbour), "model": models.get(neighbour.key)} for neighbour in answer.neighbours
    ]
    about = select_attributes(answer, "certain", "compared", "among")
    return json_response(
        {"kernel": kernel, "kernels": kernels.names(), "neighbours": rows, **about}
    )


def _usual_kernel(network: Architecture) -> str:
    """Return the kernel of the network's space; a general one where that is not defined."""
    from archive import kernels
    from archive.agents.nearest import default_kernel

    usual = default_kernel(network.space)
    try:
        kernels.get(usual).prepare(network)
    except InvalidArchitectureError:
        return "weisfeiler-lehman"

    return usual


@lru_cache(maxsize=4)
def _index(archive: Archive) -> Nearest:
    from archive.agents.nearest import Nearest

    return Nearest(archive)


def _picture(request: Request) -> Response:
    archive = archive_of(request)
    network = archive.architectures.get(archive.architectures.find(request.path_params["key"]))
    network = archive.builds.network_of(network)
    named = configuration_of_network(archive.connection, network)
    labels = decision_labels(network, named)
    fold = choice(request, "fold", ("yes", "no"), "yes") == "yes"
    layers = choice(request, "layers", ("yes", "no"), "no") == "yes"
    drawn = diagram.svg(
        network,
        theme=theme_of(request),
        fold=fold,
        labels=labels,
        layers=layers,
        unfolded=request.query_params.getlist("open"),
        sheet=sheet_of(request),
    )
    return Response(
        drawn, headers={"cache-control": "private, max-age=86400"}, media_type="image/svg+xml"
    )


ROUTES = [
    Route("/api/networks", _find),
    Route("/api/published", _published),
    Route("/api/networks/{key}/nearest", _nearest),
    Route("/api/networks/{key}", _network),
    Route("/networks/{key}.svg", _picture),
]

"""The answer of a study: its recommended network, what it beats, and the sizes of its layers."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from archive.architecture.aten.vocabulary import NAME as TORCH
from archive.architecture.outline.outline import outline
from archive.dashboard.endpoints.inputs import archive_of, choice, named_study, news_of
from archive.dashboard.wire import json_response
from archive.errors import ArchiveError, InvalidArchitectureError
from archive.objectives import sign
from archive.store.studies.configurations import configuration_of_network

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.architecture.graph import Architecture
    from archive.searches.answer import StudyAnswer
    from archive.store.records import Study


def _answer(request: Request) -> Response:
    """Return the recommended network of a study; its `architecture` is null before a result.

    With `estimated=no`, at once, and without the interval of noisy results.
    """
    # Imported here because the page starts without agents and trainers.
    from archive.searches.answer import answer

    archive = archive_of(request)
    name = named_study(request)
    study = archive.studies.get(name)
    estimated = choice(request, "estimated", ("yes", "no"), "yes") == "yes"
    found = answer(archive, name, estimated=estimated)
    if found is None:
        return json_response({"architecture": None})

    network = archive.architectures.get(found.architecture)
    configuration = found.configuration or configuration_of_network(archive.connection, network)
    details = archive.architectures.details(found.architecture)
    return json_response(
        {
            **asdict(found),
            "estimated": estimated,
            "configuration": configuration,
            "layers": details.get("layers"),
            "depth": details.get("depth"),
            "elsewhere": _elsewhere(request, study, found),
            "longer": _longer(archive, study),
        }
    )


def _longer(archive: Archive, study: Study) -> dict[str, Any]:
    """Return the study that trains networks of another one longer; else `why` there is none."""
    from archive.searches.answer import longer_protocol, longer_study

    try:
        protocol = longer_protocol(archive, study)
    except ArchiveError as error:
        return {"why": str(error)}

    name, _ = longer_study(study, protocol)
    return {"study": name, "protocol": protocol.name, "epochs": protocol.epochs}


def _elsewhere(request: Request, study: Study, found: StudyAnswer) -> dict[str, Any] | None:
    """Return the best result of the other studies of the same task, protocol and objective."""
    better = sign(study.direction)
    best: dict[str, Any] | None = None
    for other in news_of(request).fresh("studies").since(0).values():
        if other is None or other["name"] == study.name or other["best"] is None:
            continue

        same = all(
            other[key] == getattr(study, key)
            for key in ("task", "protocol", "objective", "direction")
        )
        if same and (best is None or better * other["best"] > better * best["value"]):
            best = {"study": other["name"], "value": other["best"]}

    return None if best is None else {**best, "gain": better * (found.value - best["value"])}


def _sizes(request: Request) -> Response:
    """Return output shape and parameters of each layer, by its position; empty without sizes.

    Sizes depend on the input, which the task of a study decides.
    """
    archive = archive_of(request)
    key = archive.architectures.find(request.path_params["key"])
    network = archive.builds.network_of(archive.architectures.get(key))
    name = request.query_params.get("study")
    study = None if name is None else archive.studies.get(name)
    return json_response({"sizes": _sizes_of(archive, network.canonical, study)})


def _sizes_of(archive: Archive, network: Architecture, study: Study | None) -> list[dict[str, Any]]:
    from archive.trainer.nn.layer_sizes import layer_sizes
    from archive.trainer.protocols.networks import NetworkForm
    from archive.trainer.tasks import registry
    from archive.trainer.tasks.base import Task
    from archive.trainer.tasks.file_access import FileAccess

    form = NetworkForm((1,), 1, "classification")
    try:
        if network.space != TORCH:
            if study is None:
                return []

            task = registry.of_study(study, FileAccess.of(archive.connection.settings.home))
            if not isinstance(task, Task):
                return []

            form = task.form(space=study.space)
        else:
            # The picture shows the layers of blocks that are written out.
            network = outline(network).architecture

        sizes = layer_sizes(network, form)
    except (ArchiveError, InvalidArchitectureError):
        # A cell has other sizes at each place; a task may be unknown here.
        return []

    return [{"shape": size.shape, "params": size.params} for size in sizes]


ROUTES = [
    Route("/api/study/answer", _answer),
    Route("/api/networks/{key}/sizes", _sizes),
]

"""The application: routes, errors as JSON, and what the endpoints share."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from archive import words
from archive.dashboard import news
from archive.dashboard.access import Access, Gate
from archive.dashboard.endpoints import (
    answers,
    ask,
    changes,
    comparison,
    maps,
    networks,
    plots,
    run,
    run_tree,
    runs,
    studies,
)
from archive.dashboard.endpoints.inputs import archive_of, options_of
from archive.dashboard.news import News
from archive.dashboard.wire import json_response, page
from archive.drawing import palette, stylesheet
from archive.errors import (
    ArchiveError,
    ProposalStateError,
    QueryError,
    StoreError,
    UnknownNameError,
    UsageError,
)

if TYPE_CHECKING:
    from archive.api import Archive


log = logging.getLogger("archive.dashboard")

VIEWS = {
    "/": ("home", "Home"),
    "/study": ("study", "Study"),
    "/run": ("run", "Run"),
    "/network": ("network", "Network"),
    "/compare": ("compare", "Compare"),
    "/map": ("map", "Map"),
    "/ask": ("ask", "Ask"),
    "/workers": ("workers", "Workers"),
}
"""Name and title of the view at each address."""

PAGES = (studies, runs, run_tree, run, answers, plots, networks, comparison, maps, ask)
"""Modules of the endpoints that only read."""


@dataclass(frozen=True)
class Options:
    """Settings of the page.

    Attributes:
        write: Whether a page may change the archive.
        query_seconds: Time after which the server ends a query.
        map_seconds: Time after which the places of a map are given up.
    """

    write: bool = False
    query_seconds: float = 30.0
    map_seconds: float = 180.0


@dataclass(frozen=True)
class Extension:
    """Routes of another package, served behind the same access.

    Attributes:
        routes: The routes.
        running: Returns the context in which they are served.
    """

    routes: Sequence[BaseRoute]
    running: Callable[[], AbstractAsyncContextManager[None]]


def create(
    archive: Archive,
    access: Access,
    options: Options | None = None,
    extensions: Sequence[Extension] = (),
) -> Starlette:
    """Return the application over an archive; it does not close the archive.

    Args:
        archive: The archive.
        access: Rules of access.
        options: Settings of the page.
        extensions: Further routes.
    """
    options = options or Options()

    @asynccontextmanager
    async def lifespan(application: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as contexts:
            for extension in extensions:
                await contexts.enter_async_context(extension.running())

            yield

        application.state.news.close()

    application = Starlette(
        routes=[
            *_routes(options),
            *(route for extension in extensions for route in extension.routes),
        ],
        middleware=[Middleware(Gate, access=access)],
        exception_handlers={
            ArchiveError: _known_error,
            HTTPException: _http_error,
            Exception: _unknown_error,
        },
        lifespan=lifespan,
    )
    application.state.archive = archive
    application.state.options = options
    application.state.news = News(archive)
    return application


def _routes(options: Options) -> list[BaseRoute]:
    routes: list[BaseRoute] = [
        Route("/health", _health),
        Route("/events", news.events),
        Route("/static/palette.css", _palette),
        Mount("/static", StaticFiles(packages=[("archive.dashboard", "static")])),
    ]
    for path, (name, title) in VIEWS.items():
        routes.append(Route(path, partial(_view, name=name, title=title), methods=["GET"]))

    for module in PAGES:
        routes += module.ROUTES

    return [*routes, *changes.ROUTES] if options.write else routes


def _palette(request: Request) -> Response:
    """Return the colours of the page and of the pictures in it."""
    headers = {"cache-control": "max-age=86400"}
    return Response(palette.page_css() + stylesheet(), headers=headers, media_type="text/css")


def _health(request: Request) -> Response:
    return json_response({"status": "ok"})


def _known_error(request: Request, error: Exception) -> Response:
    status = 500
    if isinstance(error, UnknownNameError):
        status = 404
    elif isinstance(error, ProposalStateError):
        status = 409
    elif isinstance(error, UsageError):
        status = 400
    elif isinstance(error, StoreError):
        status = 400 if isinstance(error, QueryError) else 503

    return json_response({"error": str(error)}, status)


def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == HTTPStatus.NOT_FOUND and "text/html" in request.headers.get(
        "accept", ""
    ):
        return page("missing.html", status=error.status_code)

    return json_response({"error": error.detail}, error.status_code)


def _unknown_error(request: Request, error: Exception) -> Response:
    # A page gets nothing of the traceback.
    log.error("the request for %s failed", request.url.path, exc_info=error)
    return json_response({"error": "the dashboard failed to answer; its log says why"}, 500)


def _view(request: Request, name: str, title: str) -> Response:
    settings = archive_of(request).connection.settings
    address = settings.uri or str(settings.home)
    return page(
        "view.html",
        view=name,
        title=title,
        write=options_of(request).write,
        place=address,
        words=words.for_page(),
    )

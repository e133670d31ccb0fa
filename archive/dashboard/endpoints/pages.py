"""Pages: the same frame, with the module of the view; what a page shows is in its address."""

from __future__ import annotations

from functools import partial

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from archive.dashboard.endpoints.inputs import archive_of, options_of
from archive.dashboard.templating import page

VIEWS = {
    "/": ("studies", "Studies"),
    "/study": ("study", "Study"),
    "/network": ("network", "Network"),
    "/compare": ("compare", "Compare"),
    "/map": ("map", "Map"),
    "/ask": ("ask", "Ask"),
    "/workers": ("workers", "Workers"),
}
"""Name and title of the view at each address."""


def _view(request: Request, name: str, title: str) -> Response:
    settings = archive_of(request).connection.settings
    place = settings.uri or str(settings.home)
    return page("view.html", view=name, title=title, write=options_of(request).write, place=place)


ROUTES = [
    Route(path, partial(_view, name=name, title=title), methods=["GET"])
    for path, (name, title) in VIEWS.items()
]

"""Pages: Jinja templates with automatic escaping, so that no name in an archive becomes markup."""

from __future__ import annotations

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from starlette.responses import HTMLResponse

from archive import __version__


def page(template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    """Return a page.

    Args:
        template: Name of a file in `templates`.
        status: Status of the answer.
        values: Variables of the template.
    """
    text = _environment().get_template(template).render(version=__version__, **values)
    return HTMLResponse(text, status, {"cache-control": "no-store"})


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("archive.dashboard"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )

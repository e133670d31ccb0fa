"""Parameters of requests: numbers and choices of the address, and JSON bodies."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, cast

from starlette.requests import Request

from archive.drawing import Sheet
from archive.drawing.svg import SHEET
from archive.errors import UsageError

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.dashboard.application import Options
    from archive.dashboard.news import News
    from archive.drawing import Theme

LONGEST_BODY = 1_000_000
"""Bytes of a body that are read."""


def archive_of(request: Request) -> Archive:
    """Return the archive that the server shows."""
    return cast("Archive", request.app.state.archive)


def news_of(request: Request) -> News:
    """Return the news of the archive."""
    return cast("News", request.app.state.news)


def options_of(request: Request) -> Options:
    """Return the settings of the page."""
    return cast("Options", request.app.state.options)


def named_study(request: Request) -> str:
    """Return the name of the study that a request is about.

    It is a parameter: in a path, browsers resolve a study called `..`, and proxies decode one
    called `a%2Fb`.

    Raises:
        UsageError: None is named.
    """
    name = request.query_params.get("study")
    if not name:
        raise UsageError("the address needs a study: ?study=NAME")

    return name


def integer(request: Request, name: str, default: int, *, least: int = 0, most: int = 2**31) -> int:
    """Return a number of the address.

    Raises:
        UsageError: It is no integer, or out of range.
    """
    text = request.query_params.get(name, str(default))
    try:
        value = int(text)
    except ValueError:
        raise UsageError(f"{name} must be an integer, got {text!r:.80}") from None

    if not least <= value <= most:
        raise UsageError(f"{name} must be between {least} and {most}, got {value}")

    return value


def choice(request: Request, name: str, choices: Collection[str], default: str) -> str:
    """Return one of some words of the address.

    Raises:
        UsageError: It is none of them.
    """
    text = request.query_params.get(name, default)
    if text not in choices:
        raise UsageError(f"{name} must be one of {', '.join(choices)}, got {text!r:.80}")

    return text


def sheet_of(request: Request) -> Sheet:
    """Return the space of the page that a picture should fill.

    Raises:
        UsageError: A side is no integer, or out of range.
    """
    width = integer(request, "width", int(SHEET.width), least=100, most=10_000)
    height = integer(request, "height", int(SHEET.height), least=100, most=10_000)
    return Sheet(width, height)


def theme_of(request: Request) -> Theme:
    """Return the colours of the page that asks for a picture.

    Raises:
        UsageError: There are no such colours.
    """
    theme = choice(request, "theme", ("light", "dark", "page"), "light")
    return cast("Theme", theme)


async def body(request: Request) -> dict[str, Any]:
    """Return the JSON object that a request carries.

    Raises:
        UsageError: It is none, or too long.
    """
    content = b""
    async for part in request.stream():
        content += part
        if len(content) > LONGEST_BODY:
            raise UsageError(f"a request has at most {LONGEST_BODY} bytes")

    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        raise UsageError("the request has no JSON") from None

    if not isinstance(document, dict):
        raise UsageError(f"the request must be a JSON object, got {type(document).__name__}")

    try:
        json.dumps(document, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise UsageError(
            "the request has half a character (a lone surrogate), which no database can store"
        ) from None

    return document


def text_of(document: dict[str, Any], name: str, *, longest: int = 100_000) -> str:
    """Return a text of a request.

    Raises:
        UsageError: It is missing, empty or too long, or no text.
    """
    value = document.get(name)
    if not isinstance(value, str) or not value:
        raise UsageError(f"the request needs a text {name!r}")

    if len(value) > longest:
        raise UsageError(f"{name} has at most {longest} characters, got {len(value)}")

    return value

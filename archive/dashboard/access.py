"""Access to the page: token, session cookie, Host and Origin checks, security headers.

    request ─> Host is one of this server's ─> Origin is this server ─> token or session cookie ─>
    endpoint

A token is always needed, on loopback too, because other users of the machine reach its loopback. A
browser sends it once, as `?token=…` or by the form, and has a session cookie afterwards; a program
sends `Authorization: Bearer …`. The Host check prevents DNS rebinding. The Origin check refuses
requests by pages of other sites and of other ports of this machine. The Content-Security-Policy
lets a page load nothing from elsewhere, and run no inline script.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
import secrets
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from archive.dashboard.wire import json_response, page
from archive.errors import SettingsError

SHORTEST_TOKEN = 16
"""Least number of characters of a token that a user chooses."""

HEADERS: Mapping[str, str] = {
    "content-security-policy": (
        "default-src 'self'; base-uri 'none'; form-action 'self'; "
        "frame-ancestors 'none'; object-src 'none'"
    ),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
}
"""Headers of every answer."""

HOW_TO_SEND = (
    "send the header 'Authorization: Bearer TOKEN', with the token of the address "
    "that archive dashboard prints, of its --token-file, or of ARCHIVE_DASHBOARD_TOKEN"
)
"""How a program gets access."""

_SAFE = ("GET", "HEAD")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_LONGEST_FORM = 10_000
_HTTP_PORT = 80


@dataclass(frozen=True)
class Access:
    """Rules of access to one server.

    Attributes:
        token: Token that browsers and programs send.
        host: Address that the server listens on.
        port: Its port.
        names: Further host names by which browsers may reach it, behind a proxy say.
    """

    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    host: str = "127.0.0.1"
    port: int = 0
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a token that could be guessed."""
        if len(self.token) < SHORTEST_TOKEN:
            raise SettingsError(
                f"a token must have at least {SHORTEST_TOKEN} characters, got {len(self.token)}"
            )

        for name in self.names:
            if not _is_name(name):
                raise SettingsError(
                    "a host name has no scheme, port or path, as in --allow-host "
                    f"archive.example.org, got {name!r}"
                )

    @property
    def cookie(self) -> str:
        """Name of the session cookie: browsers share cookies between the ports of a host."""
        return f"archive-dashboard-{self.port}"

    @property
    def session(self) -> str:
        """Value of the session cookie; the token cannot be computed from it."""
        return hmac.new(self.token.encode(), b"archive dashboard session", sha256).hexdigest()

    @property
    def on_loopback(self) -> bool:
        """Whether only this machine reaches the server."""
        return _is_loopback(self.host)

    def allows_host(self, host: str | None) -> bool:
        """Whether the Host of a request is this server."""
        try:
            parts = urlsplit(f"//{host or ''}")
            name = (parts.hostname or "").rstrip(".")
            port = parts.port
        except ValueError:
            return False

        if not name or parts.username is not None or parts.path:
            return False

        if name in self.names:
            return True  # a proxy has another port

        if (port or _HTTP_PORT) != self.port:
            return False

        if self.on_loopback:
            return name in _LOOPBACK or _is_loopback(name)

        # DNS rebinding needs a name: an address of this machine is no danger.
        return (
            name in _LOOPBACK
            or _is_address(name)
            or name in (socket.gethostname().lower(), socket.getfqdn().lower())
        )

    def allows_origin(self, headers: Headers, method: str) -> bool:
        """Whether a page of this server, or a program with the token, made a request."""
        if method not in _SAFE and headers.get("sec-fetch-site", "none") not in (
            "same-origin",
            "none",
        ):
            return False

        if "origin" in headers:
            return self._is_own_page(headers)

        # Browsers send an Origin with every request that may change something.
        return method in _SAFE or self._has_bearer(headers)

    def is_authorised(self, request: Request) -> bool:
        """Whether a request carries the token, or the cookie of a session that began with it."""
        return self._has_bearer(request.headers) or _same(
            request.cookies.get(self.cookie), self.session
        )

    def is_of_program(self, request: Request) -> bool:
        """Whether a program made a request: a browser names the page, or has begun a session."""
        marks = ("origin", "sec-fetch-site")
        return (
            not any(mark in request.headers for mark in marks)
            and self.cookie not in request.cookies
        )

    def accepts(self, token: str | None) -> bool:
        """Whether a text is the token."""
        return _same(token, self.token)

    def _is_own_page(self, headers: Headers) -> bool:
        """Whether the Origin of a request is this server, or a proxy, which may write another Host.

        Another port of the same name is another server, with which a browser shares the session
        cookie.
        """
        scheme, _, origin = headers.get("origin", "").lower().partition("://")
        if not origin or scheme not in ("http", "https"):
            return False

        return origin in (headers.get("host", "").lower(), *self.names)

    def _has_bearer(self, headers: Headers) -> bool:
        kind, _, token = headers.get("authorization", "").partition(" ")
        return kind.lower() == "bearer" and self.accepts(token.strip())


class Gate:
    """ASGI application in front of another one: refuses what `Access` does not allow.

    Args:
        application: The application to protect.
        access: The rules.
    """

    def __init__(self, application: ASGIApp, access: Access) -> None:
        self._application = application
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or hand it on."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value

                # Modules of two releases must not meet: a browser asks each time, and mostly gets
                # "not modified".
                headers.setdefault("cache-control", "no-cache")

            await send(message)

        # A client that leaves before the end of its request, or of the answer, is no failure of an
        # endpoint.
        with suppress(ClientDisconnect):
            answer = await self._refusal(Request(scope, receive))
            await (answer or self._application)(scope, receive, send_with_headers)

    async def _refusal(self, request: Request) -> Response | None:
        """Return the answer to a request that goes no further; None lets it pass."""
        access = self._access
        path = request.url.path
        if not access.allows_host(request.headers.get("host")):
            return _refuse(
                "this server does not serve that host name; start it with --allow-host NAME", 421
            )

        if not access.allows_origin(request.headers, request.method):
            if path != "/login" and access.is_of_program(request):
                return _without_access(request)

            return _refuse("the request does not come from a page of this server", 403)

        if path == "/login" and request.method == "POST":
            return await self._login(request)

        if path == "/login" and access.is_authorised(request):
            return RedirectResponse("/", 303)

        if request.method in _SAFE and access.accepts(request.query_params.get("token")):
            return self._enter(_without_token(request))

        # Style and scripts of the login page say nothing of the archive.
        if path.startswith("/static/") or path == "/health" or access.is_authorised(request):
            return None

        if request.method in _SAFE and "text/html" in request.headers.get("accept", ""):
            return page(
                "login.html",
                status=401,
                next=_target(request.url.path, request.url.query),
                wrong=False,
            )

        return _without_access(request)

    async def _login(self, request: Request) -> Response:
        body = await _body(request)
        form = dict(parse_qsl(body.decode(errors="replace")))
        target = _target(*form.get("next", "/").partition("?")[::2])
        if self._access.accepts(form.get("token", "").strip()):
            return self._enter(target)

        return page("login.html", status=401, next=target, wrong=True)

    def _enter(self, target: str) -> Response:
        answer = RedirectResponse(target, 303)
        answer.set_cookie(
            self._access.cookie, self._access.session, httponly=True, samesite="lax", path="/"
        )
        return answer


async def _body(request: Request) -> bytes:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _LONGEST_FORM:
            return b""

    return body


def _without_token(request: Request) -> str:
    kept = [(name, value) for name, value in request.query_params.multi_items() if name != "token"]
    return _target(request.url.path, urlencode(kept))


def _target(path: str, query: str) -> str:
    """Return an address on this server; a path such as `//other.org` would lead elsewhere."""
    path = "/" + path.lstrip("/\\")
    if path == "/login":
        return "/"

    return f"{path}?{query}" if query else path


def _without_access(request: Request) -> Response:
    """Return the answer to a request with no token, or with a wrong one."""
    fault = "the token is wrong" if "authorization" in request.headers else "a token is needed"
    answer = _refuse(f"{fault}: {HOW_TO_SEND}", 401)
    answer.headers["www-authenticate"] = "Bearer"
    return answer


def _refuse(reason: str, status: int) -> Response:
    return json_response({"error": reason}, status)


def _same(text: str | None, expected: str) -> bool:
    return text is not None and hmac.compare_digest(
        text.encode(errors="replace"), expected.encode()
    )


def _is_loopback(name: str) -> bool:
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"


def _is_name(text: str) -> bool:
    return _is_address(text) or re.fullmatch(r"[\w-]+(\.[\w-]+)*", text) is not None


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False

    return True

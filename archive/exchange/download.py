"""Download of a dump: over https, bounded in size and in time, by the standard library.

Plain http is for this machine only. A redirection to another protocol is refused.
"""

from __future__ import annotations

import hashlib
import http.client
from pathlib import Path
from time import monotonic
from typing import IO
from urllib import request
from urllib.parse import urlsplit

from archive.errors import UsageError

MOST_BYTES = 4 * 2**30
"""Default limit of a download; the file of all published image networks has some megabytes."""

_HERE = ("127.0.0.1", "::1", "localhost")
_SECONDS = 30.0
_LEAST_SPEED = 1024
"""Bytes per second after the first `_SECONDS`."""
_CHUNK = 2**20


def is_address(text: str) -> bool:
    """Whether a text is the address of a file on the web, not a path."""
    return "://" in text


def download(address: str, path: Path, *, most_bytes: int = MOST_BYTES) -> str:
    """Write the file at an address to a path, and return its SHA-256.

    Args:
        address: Its URL.
        path: Path of the new file.
        most_bytes: Limit of its size.

    Raises:
        UsageError: The address has another protocol, nothing can be read from it, it is too slow,
            or the file is larger.
    """
    _check(address)
    opener = request.OpenerDirector()
    for handler in (
        request.ProxyHandler(),
        request.UnknownHandler(),
        request.HTTPDefaultErrorHandler(),
        request.HTTPErrorProcessor(),
        request.HTTPSHandler(),
        _Redirections(),
    ):
        opener.add_handler(handler)

    if urlsplit(address).scheme == "http":
        opener.add_handler(request.HTTPHandler())

    try:
        with opener.open(address, timeout=_SECONDS) as answer, path.open("xb") as file:
            return _copy(answer, file, address, most_bytes)
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise UsageError(f"cannot read {address}: {reason}") from None


def digest(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal digits.

    Raises:
        UsageError: It cannot be read.
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from None


class _Redirections(request.HTTPRedirectHandler):
    """Redirections, to other addresses that may be downloaded."""

    def redirect_request(
        self,
        req: request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> request.Request | None:
        """Return the request of the new address, if it may be downloaded."""
        _check(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _check(address: str) -> None:
    try:
        parts = urlsplit(address)
        host = parts.hostname
    except ValueError as error:
        raise UsageError(f"no address of a file: {address!r:.200} ({error})") from None

    if parts.scheme == "https" or (parts.scheme == "http" and host in _HERE):
        return

    raise UsageError(f"a dump is loaded over https, or from a file, got {address!r:.200}")


def _copy(answer: http.client.HTTPResponse, file: IO[bytes], address: str, most_bytes: int) -> str:
    content = hashlib.sha256()
    size = 0
    begin = monotonic()
    # What has arrived: to read a whole chunk, a slow server could take for ever.
    while chunk := answer.read1(_CHUNK):
        size += len(chunk)
        if size > most_bytes:
            raise UsageError(f"{address} has more than {most_bytes:,} bytes, the limit")

        if monotonic() - begin > _SECONDS + size / _LEAST_SPEED:
            raise UsageError(f"{address} sends less than {_LEAST_SPEED:,} bytes per second")

        content.update(chunk)
        file.write(chunk)

    return content.hexdigest()

"""Download of a dump: over https, bounded in size, by the standard library.

Plain http is for this machine only. A redirection to another protocol is refused.
"""

from __future__ import annotations

import hashlib
import http.client
from pathlib import Path
from typing import IO
from urllib import request
from urllib.parse import urlsplit

from archive.errors import UsageError

MOST_BYTES = 4 * 2**30
"""Default limit of a download; the file of all published image networks has some megabytes."""

_HERE = ("127.0.0.1", "::1", "localhost")
_SECONDS = 30.0
_CHUNK = 2**20


def is_address(text: str) -> bool:
    """Whether a text is the address of a file on the web, not a path."""
    return "://" in text


def download(address: str, path: Path, *, most_bytes: int = MOST_BYTES) -> None:
    """Write the file at an address to a path.

    Args:
        address: Its URL.
        path: Path of the new file.
        most_bytes: Limit of its size.

    Raises:
        UsageError: The address has another protocol, nothing can be read from it, or the file is
            larger.
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
            _copy(answer, file, address, most_bytes)
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise UsageError(f"cannot read {address}: {reason}") from None


def check_digest(path: Path, expected: str, name: str) -> None:
    """Check that a file has a SHA-256.

    Args:
        path: The file.
        expected: The digest in hexadecimal digits.
        name: Name of the file, for the message.

    Raises:
        UsageError: It has another one.
    """
    found = digest(path)
    if found != expected.lower():
        raise UsageError(f"{name} has the SHA-256 {found}, not {expected:.64}: nothing is loaded")


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


def _copy(answer: IO[bytes], file: IO[bytes], address: str, most_bytes: int) -> None:
    size = 0
    while chunk := answer.read(_CHUNK):
        size += len(chunk)
        if size > most_bytes:
            raise UsageError(f"{address} has more than {most_bytes:,} bytes, the limit")

        file.write(chunk)

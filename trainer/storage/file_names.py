"""Names of files after ids that may hold any character."""

from __future__ import annotations

import hashlib
from urllib.parse import quote

_LONGEST = 200


def file_name(identifier: str) -> str:
    """Return a name that no other id has, and that any file system takes (`s#1` becomes `s%231`)."""
    name = quote(identifier, safe=" ")
    if name.startswith("."):
        name = f"%2E{name[1:]}"
    if len(name) <= _LONGEST:
        return name
    digest = hashlib.sha256(identifier.encode()).hexdigest()[:16]
    return f"{name[: _LONGEST - 17]}-{digest}"

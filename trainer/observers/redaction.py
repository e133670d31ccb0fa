"""Redaction: secrets are removed from what an observer's libraries say before it reaches a log."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

HIDDEN = "***"

_LOGIN = re.compile(r"(?<=://)[^/\s]+(?=@)")
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL")
_SHORTEST = 6
"""Length from which a variable's value counts as a secret: shorter ones occur in any text."""


def has_login(text: str) -> bool:
    """Whether a text has an address with a login, `scheme://user:password@host`."""
    return _LOGIN.search(text) is not None


def redacted(text: str, environment: Mapping[str, str] | None = None) -> str:
    """Return a text without the logins of addresses and without the values of variables that hold
    secrets.

    Args:
        text: The text.
        environment: Stands in for `os.environ`.
    """
    variables = os.environ if environment is None else environment
    secrets = {
        value
        for name, value in variables.items()
        if _SECRET.search(name.upper()) and len(value) >= _SHORTEST
    }
    # The longest first: one secret may be a part of another.
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)

    return _LOGIN.sub(HIDDEN, text)

"""Secrets in what a run leaves behind, which are masked before anything is kept.

A text is masked where it has

- the value of an environment variable, or of an option, whose name says that it is a secret
  (`HF_TOKEN`, `--api-key`),
- a password of `~/.netrc`,
- a password in an address, `https://user:password@host`,
- a token that its form gives away, such as `ghp_…`, `hf_…` or `sk-…`.
"""

from __future__ import annotations

import netrc
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

MASK = "***"

LEAST_LETTERS = 6
"""Length of the shortest value that counts as a secret: masking `1` would mask every number."""

_SECRET_NAME = re.compile(
    r"(^|[_.-])(key|apikey|token|secret|password|passwd|pwd|credentials?|passphrase|auth)$",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"(?<=://)([^\s/:@]*):[^\s/@]+@")
_TOKEN = re.compile(
    r"\b(?:gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|hf_\w{20,}|sk-[\w-]{20,}"
    r"|xox[abprs]-[\w-]{10,}|AKIA[0-9A-Z]{16}|AIza[\w-]{30,})"
)


def is_secret_name(name: str) -> bool:
    """Return whether the name of a variable or an option says that its value is a secret."""
    return _SECRET_NAME.search(name) is not None


class Secrets:
    """The secrets of one run.

    Args:
        values: Texts that must not be kept; texts of less than `LEAST_LETTERS` letters are left
            out.
    """

    def __init__(self, values: Iterable[str]) -> None:
        """Keep the values, the longest first, since one may be a part of another."""
        kept = set()
        for value in values:
            # A log and a difference are masked line by line.
            kept |= {line for line in value.splitlines() if len(line) >= LEAST_LETTERS}

        self._values = sorted(kept, key=len, reverse=True)

    @classmethod
    def find(cls, environment: Mapping[str, str], arguments: Iterable[str] = ()) -> Secrets:
        """Return the secrets of an environment, of arguments, and of the user's `~/.netrc`."""
        values = []
        for name, value in environment.items():
            # The shell keeps its folder in PWD.
            if is_secret_name(name) and name != "PWD":
                values.append(value)

        return cls([*values, *option_secrets(arguments), *_netrc_passwords()])

    def adding(self, values: Iterable[str]) -> Secrets:
        """Return these secrets and further ones."""
        return Secrets([*self._values, *values])

    def mask(self, text: str) -> str:
        """Return a text with `MASK` in place of each secret."""
        for value in self._values:
            text = text.replace(value, MASK)

        if "://" in text:
            text = _ADDRESS.sub(rf"\1:{MASK}@", text)

        return _TOKEN.sub(MASK, text)


def option_secrets(arguments: Iterable[str]) -> list[str]:
    """Return the values of options with the name of a secret."""
    values = []
    expects_value = False
    for argument in arguments:
        if expects_value and not argument.startswith("--"):
            values.append(argument)

        name, equals, value = argument.partition("=")
        is_secret = is_secret_name(name)
        if is_secret and equals:
            values.append(value)

        expects_value = is_secret and not equals and argument.startswith("-")

    return values


def _netrc_passwords() -> list[str]:
    """Return the passwords of the user's `~/.netrc`; none where there is no readable one."""
    try:
        hosts = netrc.netrc(str(Path.home() / ".netrc")).hosts
    except (OSError, RuntimeError, UnicodeDecodeError, netrc.NetrcParseError):
        return []

    return [password for _, _, password in hosts.values() if password]

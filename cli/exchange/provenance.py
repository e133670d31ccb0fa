"""Options that say where results come from, of every command that stores or publishes results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from archive.errors import UsageError

F = TypeVar("F", bound=Callable[..., Any])

ORIGIN = {
    "source": ("TEXT", "Where the results come from, such as a paper or an address."),
    "license": ("NAME", "Licence of the results, such as CC-BY-4.0."),
    "commit": ("ID", "Commit, or another version, of the source."),
}
"""Options, which are properties of an evaluation, with their placeholder and help."""


def provenance_options(command: F) -> F:
    """Add `--source`, `--license` and `--commit` to a command, which passes them on by name."""
    for name, (metavar, text) in reversed(ORIGIN.items()):
        command = click.option(f"--{name}", metavar=metavar, help=text)(command)

    return command


def provenance_of(options: Mapping[str, Any]) -> dict[str, str]:
    """Return the texts of the three options that are given, by name.

    Raises:
        UsageError: A text is empty.
    """
    provenance = {}
    for name in ORIGIN:
        text = options[name]
        if text is None:
            continue

        if not text.strip():
            raise UsageError(f"--{name} is empty: leave it out, or name it")

        provenance[name] = text.strip()

    return provenance

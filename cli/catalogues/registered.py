"""Helpers of the commands that list registered things: tasks, spaces, kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from archive.cli.render import print_message
from archive.errors import SettingsError
from archive.registry import Registry

T = TypeVar("T")


def report_unused(registry: Registry) -> None:
    """Report on stderr which entry points of installed packages are not used, since their names are
    taken.
    """
    for sentence in registry.unused():
        print_message((sentence, "yellow"))


def loaded(names: Iterable[str], get: Callable[[str], T]) -> Iterator[T]:
    """Yield what the names stand for; report what cannot be loaded on stderr, and leave it out.

    One broken package must not hide everything that the others have registered.
    """
    for name in names:
        try:
            yield get(name)
        except SettingsError as error:
            print_message((f"{name} is left out: {error}", "yellow"))


def cell(value: Any) -> Any:
    """Return a value as a table shows it: lists and settings as text, separated by commas."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={default}" for name, default in value.items())

    return ", ".join(value) if isinstance(value, list) else value

"""Registries of spaces, kernels, agents, tasks, observers and launchers by name: built-in ones and plug-ins.

A built-in name is a path `"module:attribute"`, imported at first use. A plug-in package adds a name through an entry
point of the registry's group. It cannot replace a built-in name, since recorded studies must keep their meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeVar

from archive.errors import ArchiveError, SettingsError, UnknownNameError

T = TypeVar("T")


class Registry:
    """Objects of one kind by name.

    Args:
        kind: The kind, for messages (`"agent"`).
        group: The entry point group of plug-ins (`"archive.agents"`).
        built_in: Name to `"module:attribute"`.
    """

    def __init__(self, kind: str, group: str, built_in: Mapping[str, str]) -> None:
        self.kind, self.group, self.built_in = kind, group, dict(built_in)
        self._loaded: dict[str, Any] = {}

    def names(self) -> tuple[str, ...]:
        """Return all names, sorted, without importing any of the objects."""
        return tuple(sorted({*self.built_in, *self._offered, *self._loaded}))

    def load(self, name: str) -> Any:
        """Return the object of a name.

        Raises:
            UnknownNameError: The name is not registered.
            SettingsError: A plug-in of this name cannot be imported.
        """
        if name not in self._loaded:
            self._loaded[name] = self._find(name)
        return self._loaded[name]

    def load_class(self, name: str, base: type[T]) -> type[T]:
        """Return the class of a name.

        Args:
            name: The name.
            base: The class that it must derive from.

        Raises:
            UnknownNameError: The name is not registered.
            SettingsError: A plug-in of this name cannot be imported, or is no such class.
        """
        loaded = self.load(name)
        if not (isinstance(loaded, type) and issubclass(loaded, base)):
            raise SettingsError(
                f"the {self.kind} {name!r} of another package must be a {base.__name__}, got {loaded!r}"
            )
        return loaded

    def maker(self, name: str) -> Callable[..., Any]:
        """Return the class, or the function, that makes the object of a name.

        Raises:
            UnknownNameError: The name is not registered.
            SettingsError: A plug-in of this name cannot be imported, or cannot be called.
        """
        loaded = self.load(name)
        if not callable(loaded):
            raise SettingsError(
                f"the {self.kind} {name!r} of another package must be a class or a function, got {loaded!r}"
            )
        maker: Callable[..., Any] = loaded
        return maker

    def make(self, name: str, base: type[T], *arguments: Any, **settings: Any) -> T:
        """Return the object that the maker of a name returns. Errors of built-in makers pass.

        Args:
            name: The name.
            base: The class of the object.
            *arguments: Arguments of the maker.
            **settings: Its arguments by name.

        Raises:
            UnknownNameError: The name is not registered.
            SettingsError: A plug-in of this name cannot be imported, its maker fails, or returns something else.
        """
        maker = self.maker(name)
        try:
            made = maker(*arguments, **settings)
        except Exception as error:
            if name in self.built_in or isinstance(error, ArchiveError):
                raise
            raise SettingsError(
                f"the {self.kind} {name!r} of another package cannot be made: {type(error).__name__}: {error}"
            ) from error
        if not isinstance(made, base):
            article = "an" if base.__name__.startswith(tuple("AEIO")) else "a"
            raise SettingsError(
                f"the {self.kind} {name!r} of another package must be {article} {base.__name__}, got "
                f"{type(made).__name__}"
            )
        return made

    def _find(self, name: str) -> Any:
        if name in self.built_in:
            module, _, attribute = self.built_in[name].partition(":")
            return getattr(import_module(module), attribute)
        if name not in self._offered:
            raise UnknownNameError(self.kind, name, self.names())
        try:
            return self._offered[name].load()
        except Exception as error:
            raise SettingsError(f"the {self.kind} {name!r} of another package cannot be loaded: {error}") from error
        except SystemExit as error:
            raise SettingsError(
                f"the {self.kind} {name!r} of another package cannot be loaded: its module ends the process"
            ) from error

    @cached_property
    def _offered(self) -> dict[str, EntryPoint]:
        return {point.name: point for point in entry_points(group=self.group)}

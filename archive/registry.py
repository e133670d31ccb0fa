"""Registries of built-in parts and plug-ins by name.

Parts are spaces, kernels, agents, tasks, recipes, observers and others.

A built-in name is a path `"module:attribute"`, imported at first use. A plug-in package adds a name
through an entry point of the registry's group. It cannot replace a built-in name, since recorded
studies must keep their meaning; and no name of two packages is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from archive.errors import ArchiveError, SettingsError, UnknownNameError, with_line

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")


def entry_points(group: str) -> Iterable[EntryPoint]:
    """Return the entry points of a group.

    They are looked up only when a registry is asked for plug-ins.
    """
    from importlib import metadata

    return metadata.entry_points(group=group)


class Registry:
    """Objects of one kind by name.

    Args:
        kind: The kind, for messages (`"agent"`).
        group: The entry point group of plug-ins (`"archive.agents"`).
        built_in: Name to `"module:attribute"`.
    """

    def __init__(self, kind: str, group: str, built_in: Mapping[str, str]) -> None:
        self.kind = kind
        self.group = group
        self.built_in = dict(built_in)
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
                f"the {self.kind} {name!r} of {self.package(name)} must be "
                f"{_with_article(base)}, got {loaded!r}"
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
                f"the {self.kind} {name!r} of {self.package(name)} must be a class or a "
                f"function, got {loaded!r}"
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
            SettingsError: A plug-in of this name cannot be imported, its maker fails, or returns
                something else.
        """
        maker = self.maker(name)
        try:
            made = maker(*arguments, **settings)
        except Exception as error:
            if name in self.built_in or isinstance(error, ArchiveError):
                raise

            reason = with_line(error, module=str(getattr(maker, "__module__", "")))
            raise SettingsError(
                f"the {self.kind} {name!r} of {self.package(name)} cannot be made: {reason}"
            ) from error

        if not isinstance(made, base):
            raise SettingsError(
                f"the {self.kind} {name!r} of {self.package(name)} must be {_with_article(base)}, "
                f"got {type(made).__name__}"
            )

        return made

    def plug_ins(self) -> tuple[str, ...]:
        """Return the sorted names of plug-ins, without those that a built-in name hides."""
        return tuple(sorted({*self._offered} - {*self.built_in}))

    def package(self, name: str) -> str:
        """Return the package that offers a name, with its version.

        `another package` if none is recorded.
        """
        return _package(self._offered.get(name))

    def target(self, name: str) -> str:
        """Return the path `module:attribute` of a name; nothing is imported.

        Raises:
            UnknownNameError: The name is not registered.
            SettingsError: Two packages offer the name.
        """
        return self.built_in[name] if name in self.built_in else self._point(name).value

    def check_unique(self, name: str) -> None:
        """Check that no two packages offer a registered name.

        Raises:
            SettingsError: Two packages offer the name.
        """
        self.target(name)

    def unused(self) -> Iterator[str]:
        """Yield a sentence for each entry point that is not used because its name is taken.

        Nothing is imported.
        """
        for name, points in sorted(self._points.items()):
            if name in self.built_in:
                for point in points:
                    taken = f"a built-in {self.kind} has this name"
                    yield f"the {self.kind} {name!r} of {_package(point)} is not used: {taken}"
            elif len(points) > 1:
                yield self._twice(name)

    def _find(self, name: str) -> Any:
        if name in self.built_in:
            module, _, attribute = self.built_in[name].partition(":")
            return getattr(import_module(module), attribute)

        point = self._point(name)
        try:
            return point.load()
        except Exception as error:
            reason = with_line(error, module=getattr(point, "module", ""))
            raise SettingsError(
                f"the {self.kind} {name!r} of {self.package(name)} cannot be loaded: {reason}"
            ) from error
        except SystemExit as error:
            raise SettingsError(
                f"the {self.kind} {name!r} of {self.package(name)} cannot be loaded: "
                "its module ends the process"
            ) from error

    def _point(self, name: str) -> EntryPoint:
        if name not in self._offered:
            raise UnknownNameError(self.kind, name, self.names())

        if len(self._points.get(name, ())) > 1:
            raise SettingsError(self._twice(name))

        return self._offered[name]

    def _twice(self, name: str) -> str:
        packages = " and ".join(sorted(_package(point) for point in self._points[name]))
        return (
            f"the {self.kind} {name!r} is not used: {packages} both have it, uninstall one of them"
        )

    @cached_property
    def _offered(self) -> dict[str, EntryPoint]:
        return {name: points[0] for name, points in self._points.items()}

    @cached_property
    def _points(self) -> dict[str, list[EntryPoint]]:
        """Entry points of the group by name.

        A package that is found twice on the path counts once.
        """
        by_name: dict[str, dict[str, EntryPoint]] = {}
        for point in entry_points(group=self.group):
            by_name.setdefault(point.name, {}).setdefault(f"{_package(point)} {point.value}", point)

        return {name: list(points.values()) for name, points in by_name.items()}


def _package(point: EntryPoint | None) -> str:
    distribution = getattr(point, "dist", None)
    return (
        "another package"
        if distribution is None
        else (f"{distribution.name} {distribution.version}")
    )


def _with_article(kind: type) -> str:
    return f"{'an' if kind.__name__.startswith(tuple('AEIO')) else 'a'} {kind.__name__}"

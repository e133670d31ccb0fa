"""Import of the Neo4j driver at a fraction of its cost, for the command line.

The driver imports numpy, pandas and pyarrow where they are installed, and computes tables of all
months to the year 9999 and of all numbers of 16 bits. A command needs none of them: together they
are nine tenths of the import. Names within the driver that are not as expected leave its import as
it is.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from importlib.machinery import ModuleSpec
from struct import Struct
from types import CodeType, ModuleType
from typing import Any, Protocol, cast

_DRIVER = "neo4j"
_OPTIONAL = ("pandas", "pyarrow")
_ARRAYS = ("numpy",)

_TIME = "neo4j.time"
_PACKSTREAM = "neo4j._codec.packstream.v1"
_LAST_YEAR = 9999
_UINT_16 = Struct(">H")


def hide_optional_packages() -> None:
    """Make the driver's import cheap: without pandas, pyarrow and large tables.

    Without them the driver accepts none of their values as parameters of a statement, and commands
    pass none. Nothing changes in a process that has imported the driver already. Any other module
    may import both packages.
    """
    if _finder() is None:
        sys.meta_path.insert(0, _DriverFinder(_OPTIONAL))


def hide_arrays() -> None:
    """Make the driver's import cheaper: without numpy, too.

    For commands that pass none of its values to the database.
    """
    finder = _finder()
    if finder is not None:
        finder.hidden = _OPTIONAL + _ARRAYS


def _finder() -> _DriverFinder | None:
    return next((finder for finder in sys.meta_path if isinstance(finder, _DriverFinder)), None)


class _DriverFinder:
    """Import hook that hides packages and makes tables lazy while the driver is imported.

    Args:
        hidden: Packages that are reported as missing.
    """

    def __init__(self, hidden: Sequence[str]) -> None:
        self.hidden = tuple(hidden)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module with tables; None for all others.

        Raises:
            ModuleNotFoundError: The driver asks for a hidden package.
        """
        if fullname in self.hidden and _is_being_imported(_DRIVER):
            raise ModuleNotFoundError(f"{fullname} is hidden from {_DRIVER}", name=fullname)

        if fullname not in _TABLES or not _is_being_imported(_DRIVER):
            return None

        return _spec_of(fullname, path)


def _is_being_imported(name: str) -> bool:
    spec = getattr(sys.modules.get(name), "__spec__", None)
    return bool(getattr(spec, "_initializing", False))


class _Code(Protocol):
    """A loader that has the code of a module."""

    def get_code(self, fullname: str) -> CodeType | None:
        """Return the code of a module."""


def _spec_of(name: str, path: Sequence[str] | None) -> ModuleSpec | None:
    """Return the spec of the other finders, with a loader that makes the module's tables lazy."""
    for finder in sys.meta_path:
        if isinstance(finder, _DriverFinder):
            continue

        spec = finder.find_spec(name, path, None)
        if spec is not None:
            if spec.loader is not None and hasattr(spec.loader, "get_code"):
                spec.loader = cast(Any, _LazyTables(spec.loader))

            return spec

    return None


class _LazyTables:
    """Loader of a module of the driver: empty ranges stand for its tables while its code runs.

    A table is filled at its first use.

    Args:
        loader: The loader of the module.
    """

    def __init__(self, loader: _Code) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> None:
        """Leave the creation to the import system."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the module's code; as it is, where that fails with lazy tables."""
        code = self._loader.get_code(module.__name__)
        if code is None:
            raise ImportError(f"{module.__name__} has no code", name=module.__name__)

        names = vars(module)
        bounds, tables = _TABLES[module.__name__]
        before = dict(names)
        names["range"] = lambda *limits: () if limits == bounds else range(*limits)
        try:
            exec(code, names, _Namespace(names, tables))
            del names["range"]
        except (LookupError, TypeError):
            names.clear()
            names.update(before)
            exec(code, names)


class _Namespace(MutableMapping[str, Any]):
    """The names of a module while its code runs: an assigned empty table becomes a lazy one.

    Args:
        names: The dictionary of the module.
        tables: Makers of the tables, by their names.
    """

    def __init__(
        self, names: dict[str, Any], tables: Mapping[str, Callable[[dict[str, Any]], _Computed]]
    ) -> None:
        self._names = names
        self._tables = tables

    def __setitem__(self, name: str, value: Any) -> None:
        is_lazy = name in self._tables and len(value) == 0
        self._names[name] = self._tables[name](self._names) if is_lazy else value

    def __getitem__(self, name: str) -> Any:
        return self._names[name]

    def __delitem__(self, name: str) -> None:
        del self._names[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class _Computed(dict[Any, Any]):
    """A table whose entries are computed when they are first asked for.

    Args:
        compute: Returns the value of a key.
        keys: Whether a key belongs to the table.
    """

    def __init__(self, compute: Callable[[Any], Any], keys: Callable[[Any], bool]) -> None:
        super().__init__()
        self._compute = compute
        self._keys = keys

    def __missing__(self, key: Any) -> Any:
        if not self._keys(key):
            raise KeyError(key)

        value = self[key] = self._compute(key)
        return value


def _by_year(function: str) -> Callable[[dict[str, Any]], _Computed]:
    """Return the maker of a table of years, which are computed by a function of the module."""
    return lambda names: _Computed(names[function], lambda year: 1 <= year <= _LAST_YEAR)


def _months(names: dict[str, Any]) -> _Computed:
    days = names["_days_in_month"]
    return _Computed(
        lambda key: days(*key), lambda key: 1 <= key[0] <= _LAST_YEAR and 1 <= key[1] <= 12
    )


def _pack(names: dict[str, Any]) -> _Computed:
    return _Computed(_UINT_16.pack, lambda number: 0 <= number <= 0xFFFF)


def _unpack(names: dict[str, Any]) -> _Computed:
    return _Computed(
        lambda packed: _UINT_16.unpack(packed)[0], lambda packed: len(packed) == _UINT_16.size
    )


_TABLES: dict[str, tuple[tuple[int, ...], dict[str, Callable[[dict[str, Any]], _Computed]]]] = {
    _TIME: (
        (1, _LAST_YEAR + 1),
        {
            "_IS_LEAP_YEAR": _by_year("_is_leap_year"),
            "_DAYS_IN_YEAR": _by_year("_days_in_year"),
            "_DAYS_IN_MONTH": _months,
        },
    ),
    _PACKSTREAM: ((0x10000,), {"PACKED_UINT_16": _pack, "UNPACKED_UINT_16": _unpack}),
}
"""Modules of the driver: limits of the range that fills their tables, and makers of those
tables."""

"""Import of the Neo4j driver without pandas and pyarrow, for the command line."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

_DRIVER = "neo4j"
_OPTIONAL = ("pandas", "pyarrow")


def hide_optional_packages() -> None:
    """Let the driver, whenever it is first imported, import neither pandas nor pyarrow: half a second.

    Without them the driver accepts none of their values as parameters of a statement, and commands pass none. Nothing
    changes in a process that has imported the driver already. Any other module may import both packages.
    """
    if not any(isinstance(finder, _OptionalPackages) for finder in sys.meta_path):
        sys.meta_path.insert(0, _OptionalPackages())


class _OptionalPackages(MetaPathFinder):
    """Import hook that reports the optional packages as missing while the driver is being imported."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname in _OPTIONAL and _is_being_imported(_DRIVER):
            raise ModuleNotFoundError(f"{fullname} is hidden from {_DRIVER}", name=fullname)
        return None


def _is_being_imported(name: str) -> bool:
    spec = getattr(sys.modules.get(name), "__spec__", None)
    return bool(getattr(spec, "_initializing", False))

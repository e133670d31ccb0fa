"""Record of the parameters that a user's function reads from its mapping.

The first level is recorded: a group, or a repeated group, is read as a whole. A function that goes
through the mapping, copies it, or passes it on as keyword arguments may have read anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


class Reads:
    """The names that have been read from some mappings.

    Attributes:
        names: Names of parameters and groups.
        whole: Whether all may have been read.
    """

    def __init__(self, names: list[str] | None = None, *, whole: bool = False) -> None:
        """Begin with the names of an earlier record."""
        self.names = set(names or ())
        self.whole = whole

    def known(self) -> list[str] | None:
        """Return the names in order; None if all may have been read."""
        return None if self.whole else sorted(self.names)


class RecordedParameters(dict[str, Any]):
    """Parameters that record their reads.

    Args:
        values: The parameters.
        reads: Receives the names.
    """

    def __init__(self, values: Mapping[str, Any], reads: Reads) -> None:
        super().__init__(values)
        self._reads = reads

    def __getitem__(self, name: str) -> Any:
        self._reads.names.add(name)
        return super().__getitem__(name)

    def __contains__(self, name: object) -> bool:
        self._reads.names.add(str(name))
        return super().__contains__(name)

    def get(self, name: str, default: Any = None) -> Any:
        """Return a value, or the default."""
        self._reads.names.add(name)
        return super().get(name, default)

    def pop(self, name: str, *default: Any) -> Any:
        """Remove a value, and return it."""
        self._reads.names.add(name)
        return super().pop(name, *default)

    def setdefault(self, name: str, default: Any = None) -> Any:
        """Return a value, which is set to the default if there is none."""
        self._reads.names.add(name)
        return super().setdefault(name, default)

    # Python's C code copies a plain dictionary without these methods, but no subclass that has its
    # own iterator.
    def __iter__(self) -> Iterator[str]:
        self._reads.whole = True
        return super().__iter__()

    def __reversed__(self) -> Iterator[str]:
        self._reads.whole = True
        return super().__reversed__()

    def __len__(self) -> int:
        self._reads.whole = True
        return super().__len__()

    def __eq__(self, other: object) -> bool:
        self._reads.whole = True
        return super().__eq__(other)

    def __or__(self, other: Any) -> Any:
        self._reads.whole = True
        return super().__or__(other)

    def __ror__(self, other: Any) -> Any:
        self._reads.whole = True
        return super().__ror__(other)

    def __repr__(self) -> str:
        self._reads.whole = True
        return super().__repr__()

    def __reduce__(self) -> Any:
        # A copy of another process records nothing.
        self._reads.whole = True
        return dict, (dict(super().items()),)

    def keys(self) -> Any:
        """Return the names."""
        self._reads.whole = True
        return super().keys()

    def values(self) -> Any:
        """Return the values."""
        self._reads.whole = True
        return super().values()

    def items(self) -> Any:
        """Return names and values."""
        self._reads.whole = True
        return super().items()

    def copy(self) -> dict[str, Any]:
        """Return a copy."""
        self._reads.whole = True
        return super().copy()

    def popitem(self) -> tuple[str, Any]:
        """Remove the last value, and return it with its name."""
        self._reads.whole = True
        return super().popitem()

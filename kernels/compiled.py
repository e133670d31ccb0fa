"""Compilation of functions by numba, with a cache on disk where a folder is writable.

numba compares the time of a function's own file to decide whether its cached machine code is out of
date. Everything that the machine code depends on must therefore be in that file: other compiled
functions, constants, and the classes of named tuples: their fields are compiled to positions. A
test checks this.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeVar

import numba

F = TypeVar("F", bound=Callable[..., Any])

log = logging.getLogger(__name__)


class _OptionalCache:
    """A cache of numba; functions are compiled where it cannot be read or written.

    numba raises an error for a damaged file, for a file of another release with a class that this
    one does not have, and where the disk is full.
    """

    def __init__(self, cache: Any) -> None:
        self._cache = cache

    @property
    def cache_path(self) -> str:
        """The folder of the machine code."""
        return str(self._cache.cache_path)

    def flush(self) -> None:
        """Forget all machine code."""
        self._cache.flush()

    def load_overload(self, signature: Any, context: Any) -> Any:
        """Return the machine code of a signature; None where it cannot be read."""
        try:
            return self._cache.load_overload(signature, context)
        except Exception as error:
            log.debug("machine code in %s cannot be read: %r", self.cache_path, error)

        try:
            self.flush()
        except OSError:
            self._cache.disable()

        return None

    def save_overload(self, signature: Any, code: Any) -> None:
        """Store the machine code of a signature, if possible."""
        try:
            self._cache.save_overload(signature, code)
        except OSError as error:
            log.debug("machine code cannot be stored in %s: %r", self.cache_path, error)
            self._cache.disable()


def compiled(function: F) -> F:
    """Compile a function at its first call, to run without the interpreter's lock.

    The machine code is cached beside the source, or in the user's cache folder where the source is
    read-only. Without either, numba raises an error instead of caching; the function is then
    compiled once in every process.
    """
    try:
        dispatcher = numba.njit(function, cache=True, nogil=True, error_model="numpy")
    except RuntimeError:
        return numba.njit(function, nogil=True, error_model="numpy")  # type: ignore[no-any-return]

    dispatcher._cache = _OptionalCache(dispatcher._cache)
    return dispatcher  # type: ignore[no-any-return]

"""Compilation of functions by numba, with a cache on disk where a folder is writable.

numba compares the time of a function's own file to decide whether its cached machine code is out of date. Everything
that the machine code depends on must therefore be in that file: other compiled functions, constants, and the classes of
named tuples, whose fields are compiled to positions. A test checks this.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Compile a function at its first call, to run without the interpreter's lock.

    The machine code is cached beside the source, or in the user's cache folder where the source is read-only. Without
    either, numba raises an error instead of caching; the function is then compiled once in every process.
    """
    try:
        return numba.njit(function, cache=True, nogil=True, error_model="numpy")  # type: ignore[no-any-return]
    except RuntimeError:
        return numba.njit(function, nogil=True, error_model="numpy")  # type: ignore[no-any-return]

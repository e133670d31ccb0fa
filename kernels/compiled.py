"""The one place where functions are compiled: numba, with a cache on disk wherever one can be written.

numba compares the cached machine code of a function with the file of that function alone. What the code depends on
must therefore stand in the same file: other compiled functions, constants, and the classes of named tuples, whose
fields are compiled as positions. A test checks it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Compile a function when it is first called; it then runs without the interpreter's lock.

    The machine code is cached beside the source, or in the user's cache folder where the source is read-only.
    With neither, numba refuses to cache at all; compiling once a process is then the better answer.
    """
    try:
        return numba.njit(function, cache=True, nogil=True, error_model="numpy")  # type: ignore[no-any-return]
    except RuntimeError:
        return numba.njit(function, nogil=True, error_model="numpy")  # type: ignore[no-any-return]

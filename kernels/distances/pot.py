"""The library POT (Python Optimal Transport), imported when it is first needed: it loads torch, which takes seconds."""

from __future__ import annotations

import functools
import warnings
from typing import Any


@functools.cache
def pot() -> Any:
    """Return the package `ot`.

    Some of its docstrings are no valid Python strings, which the interpreter says where no bytecode is cached; that is
    nothing a user of a distance could act on.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        import ot
    return ot

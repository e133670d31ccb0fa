"""Lazy import of the library POT (Python Optimal Transport), which loads torch and so takes
seconds.
"""

from __future__ import annotations

import functools
import warnings
from typing import Any


@functools.cache
def pot() -> Any:
    """Return the package `ot`.

    Some of its docstrings have invalid escapes, of which the interpreter warns where no bytecode is
    cached. The user of a distance cannot act on these warnings, so they are ignored.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        import ot

    return ot

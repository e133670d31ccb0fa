"""Python's garbage collector, kept from looking through what is being made.

It looks through all objects each time that a quarter more have been made: while a hundred thousand results are read,
all of which stay, that is two fifths of the time.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused() -> Iterator[None]:
    """Collect nothing within a block, or a function: for what makes many objects that stay, and little rubbish."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()

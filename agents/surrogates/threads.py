"""A context that limits BLAS to one thread, for the linear algebra of small matrices.

Fitting hyperparameters takes hundreds of factorisations of a few hundred rows, where a second BLAS thread gains a
quarter at best. On cores that other processes use (trainers do), BLAS threads spin while they wait for each other, and
the same work takes hundreds of times as long: 90 s instead of 0.4 s were measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped,unused-ignore]

# Matrices with more rows than this are worth the risk of a second thread.
MANY = 1000

_lock = Lock()
_users = 0
_limit: Any = None


@contextmanager
def one_thread(rows: int = 0) -> Iterator[None]:
    """Limit BLAS to one thread in this process until the last caller leaves; calls of several threads may overlap.

    Args:
        rows: Size of the matrices; above `MANY` nothing is limited.
    """
    global _users, _limit
    if rows > MANY:
        yield
        return
    with _lock:
        if not _users:
            _limit = _controller().limit(limits=1, user_api="blas")
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if not _users:
                _limit.restore_original_limits()


@cache
def _controller() -> Any:
    # Finding the loaded libraries takes milliseconds; every caller has loaded BLAS by now.
    return ThreadpoolController()

"""One thread for the linear algebra of small matrices.

The likelihoods of hyperparameters are hundreds of factorisations of a few hundred rows, where a second BLAS thread
gains a quarter at best. Where other processes want the cores (trainers do), BLAS threads that wait for each other by
spinning make the same work take hundreds of times as long: 90 s instead of 0.4 s were measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped,unused-ignore]

# Rows beyond which a second thread is worth its risk.
MANY = 1000

_lock = Lock()
_users = 0
_limit: Any = None


@contextmanager
def one_thread(rows: int = 0) -> Iterator[None]:
    """Keep BLAS to one thread in this process until the last user is done; threads of the process may overlap.

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
    # Looking for the libraries takes milliseconds; whoever needs them has loaded them by now.
    return ThreadpoolController()

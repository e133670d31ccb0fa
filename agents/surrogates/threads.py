"""Limits of BLAS and OpenMP to one thread, for small matrices and for trees.

Fitting hyperparameters takes hundreds of factorisations of a few hundred rows, where a second BLAS
thread gains a quarter at best. On cores that other processes use (trainers do), BLAS threads spin
while they wait for each other, and the same work takes hundreds of times as long: 90 s instead of
0.4 s were measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped,unused-ignore]

MANY = 1000
"""Number of rows above which a matrix is worth the risk of a second thread."""


@contextmanager
def one_thread(rows: int = 0) -> Iterator[None]:
    """Limit BLAS to one thread until the last caller leaves; calls may overlap.

    Args:
        rows: Size of the matrices; above `MANY` nothing is limited.
    """
    if rows > MANY:
        yield
        return

    with _blas:
        yield


@contextmanager
def one_openmp_thread() -> Iterator[None]:
    """Limit OpenMP, with which scikit-learn grows trees, in the same way."""
    with _openmp:
        yield


class _Limit:
    """A limit of a kind of thread pool, in force while it has users."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._users = 0
        self._lock = Lock()
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if not self._users:
                self._limit = _controller(self._kind).limit(limits=1, user_api=self._kind)

            self._users += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._users -= 1
            if not self._users:
                self._limit.restore_original_limits()


@cache
def _controller(kind: str) -> Any:
    # Finding the loaded libraries takes milliseconds. Every caller has loaded the libraries of its
    # kind by now.
    return ThreadpoolController()


_blas = _Limit("blas")
_openmp = _Limit("openmp")

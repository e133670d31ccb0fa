"""Compiling where nothing can be cached."""

from __future__ import annotations

import numba

from archive.kernels.compiled import compiled


def double(x):
    return 2 * x


def test_without_any_folder_to_cache_in(monkeypatch):
    real = numba.njit

    def njit(function, **options):
        if options.get("cache"):
            raise RuntimeError("cannot cache function 'double': no locator available")
        return real(function, **options)

    monkeypatch.setattr(numba, "njit", njit)
    assert compiled(double)(21) == 42

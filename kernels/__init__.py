"""Distances between architectures, and covariances made of them.

Pure functions: no input or output, no database.

`kernels.get("otmann")` returns a distance, `kernels.names()` lists them
(`archive.kernels.registry`). The compiler (numba) is loaded when the first network is prepared.
"""

from archive.kernels.registry import get, names

__all__ = ["get", "names"]

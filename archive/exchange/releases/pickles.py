"""Pickled files of benchmarks, read without executing their code.

A pickle can name any function. Here it may name numpy's numbers and arrays and the containers of Python, and is refused
when it names anything else. The whole content is read into memory, a few times its size on disk.
"""

from __future__ import annotations

import bz2
import collections
import pickle
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from archive.errors import UsageError

_BZ2 = b"BZh"


def content_of(path: Path, benchmark: str) -> Mapping[Any, Any]:
    """Return the dictionary that a file holds: one of torch, or a pickle in bz2.

    Args:
        path: The file.
        benchmark: Name of the benchmark, for messages.

    Raises:
        UsageError: The file cannot be read, has another format, or names objects that could run code.
    """
    try:
        with path.open("rb") as file:
            compressed = file.read(len(_BZ2)) == _BZ2
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    try:
        content = _compressed(path) if compressed else _of_torch(path)
    except pickle.UnpicklingError as error:
        what = str(error).partition("GLOBAL ")[2].partition(" ")[0]
        why = f"it names {what}, which could run code" if what else "it is no pickle that can be read safely"
        raise UsageError(f"{path} is refused: {why}") from None
    except Exception as error:
        # Unpickling untrusted bytes may raise any error.
        raise UsageError(f"{path} is no file of {benchmark}: it cannot be read ({type(error).__name__})") from None
    if not isinstance(content, dict):
        raise UsageError(f"{path} is no file of {benchmark}: it holds no dictionary")
    return content


class HarmlessUnpickler(pickle.Unpickler):
    """An unpickler that knows numbers, arrays and containers only."""

    def __init__(self, file: IO[bytes]) -> None:
        """Read from a file."""
        super().__init__(file)
        self._known = {
            name if isinstance(each, tuple) else f"{each.__module__}.{each.__qualname__}": found
            for each in _harmless()
            for found, name in [each if isinstance(each, tuple) else (each, "")]
        }

    def find_class(self, module: str, name: str) -> Any:
        """Return a known object by its name.

        Raises:
            pickle.UnpicklingError: It is not known.
        """
        known = self._known.get(f"{module}.{name}")
        if known is None:
            raise pickle.UnpicklingError(f"GLOBAL {module}.{name} is not known")
        return known


def _compressed(path: Path) -> Any:
    with bz2.open(path) as file:
        return HarmlessUnpickler(file).load()


def _of_torch(path: Path) -> Any:
    import torch

    with warnings.catch_warnings(), torch.serialization.safe_globals(_harmless()):
        # torch warns of pickles by other programs; the restricted unpickler makes them safe.
        warnings.simplefilter("ignore")
        return torch.load(path, map_location="cpu", weights_only=True)


def _harmless() -> list[Any]:
    """Return the objects that a file may name, those of numpy as pickled by its releases 1 and 2."""
    import _codecs

    import numpy as np
    from numpy._core import multiarray

    made_by = (multiarray.scalar, multiarray._reconstruct)
    return [
        *((each, f"numpy.{core}.multiarray.{each.__name__}") for core in ("core", "_core") for each in made_by),
        *(np.ndarray, np.dtype, np.dtypes.Float64DType, np.dtypes.Float32DType, np.dtypes.Int64DType),
        (_codecs.encode, "_codecs.encode"),
        *(collections.OrderedDict, collections.defaultdict, dict, list, set),
    ]

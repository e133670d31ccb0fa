"""Pickled files of benchmarks, read without executing their code.

A pickle can name any function. Here it may name numpy's numbers and the containers of Python, and
is refused when it names anything else. The whole content is read into memory, a few times its size
on disk.
"""

from __future__ import annotations

import bz2
import collections
import pickle
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from archive.errors import UsageError

_BZ2 = b"BZh"


def content_of(path: Path, benchmark: str) -> Mapping[Any, Any]:
    """Return the dictionary that a file holds: one of torch, or a pickle in bz2.

    Args:
        path: The file.
        benchmark: Name of the benchmark, for messages.

    Raises:
        UsageError: The file cannot be read, has another format, or names objects that could run
            code.
    """
    try:
        with path.open("rb") as file:
            compressed = file.read(len(_BZ2)) == _BZ2
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None

    try:
        content = _decompress(path) if compressed else _of_torch(path)
    except pickle.UnpicklingError as error:
        what = str(error).partition("GLOBAL ")[2].partition(" ")[0]
        why = (
            f"it names {what}, which could run code"
            if what
            else ("it is no pickle that can be read safely")
        )
        raise UsageError(f"{path} is refused: {why}") from None
    except Exception as error:
        # Unpickling untrusted bytes may raise any error.
        raise UsageError(
            f"{path} is no file of {benchmark}: it cannot be read ({type(error).__name__})"
        ) from None

    if not isinstance(content, dict):
        raise UsageError(f"{path} is no file of {benchmark}: it holds no dictionary")

    return content


class HarmlessUnpickler(pickle.Unpickler):
    """An unpickler of numbers and containers only; numbers of numpy become numbers of Python."""

    def find_class(self, module: str, name: str) -> Any:
        """Return a known object by its name.

        Raises:
            pickle.UnpicklingError: It is not known.
        """
        harmless = _KNOWN.get(f"{module}.{name}")
        if harmless is None:
            raise pickle.UnpicklingError(f"GLOBAL {module}.{name} is not known")

        return harmless


class NumberType:
    """The type of a number of numpy, as its pickles describe it.

    numpy's own type is not made from a file: its pickled state could declare bytes to be addresses
    of objects.

    Args:
        text: Kind and size, as in `f8`.
    """

    def __init__(self, text: str, *_: Any) -> None:
        if not isinstance(text, str) or not _NUMBER.fullmatch(text):
            raise pickle.UnpicklingError(f"GLOBAL numpy.dtype {text!r:.20} is no number")

        self.text = text
        self.order = "<"

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        """Take the order of the bytes, the second item of numpy's state."""
        if state[1] not in ("<", ">", "=", "|"):
            raise pickle.UnpicklingError("the order of bytes is not known")

        self.order = str(state[1])


def _number(kind: NumberType, data: Any) -> float | int | bool:
    """Return a number from its bytes, as `numpy.core.multiarray.scalar` does."""
    if not isinstance(kind, NumberType):
        raise pickle.UnpicklingError("a number has no type")

    # Python 2 and protocol 2 wrote bytes as text in Latin-1.
    content = data.encode("latin-1") if isinstance(data, str) else data
    (value,) = np.frombuffer(content, kind.order.replace("|", "=") + kind.text)
    number: float | int | bool = value.item()
    return number


_NUMBER = re.compile(r"[biuf](1|2|4|8)")
_KNOWN: dict[str, Any] = {
    "numpy.dtype": NumberType,
    "numpy.core.multiarray.scalar": _number,
    "numpy._core.multiarray.scalar": _number,
    "_codecs.encode": lambda text, encoding: (
        text.encode("latin-1") if encoding == "latin1" else None
    ),
    "collections.OrderedDict": dict,
    "collections.defaultdict": lambda *_: {},
    **{f"builtins.{type_.__name__}": type_ for type_ in (dict, list, set)},
}


def _decompress(path: Path) -> Any:
    with bz2.open(path) as file:
        return HarmlessUnpickler(file).load()


def _of_torch(path: Path) -> Any:
    import torch

    with warnings.catch_warnings(), torch.serialization.safe_globals(_harmless()):
        # torch warns of pickles by other programs; the restricted unpickler makes them safe.
        warnings.simplefilter("ignore")
        return torch.load(path, map_location="cpu", weights_only=True)


def _harmless() -> list[Any]:
    """Return the objects that a file of torch may name.

    Objects of numpy have the names of its releases 1 and 2.
    """
    import _codecs

    from numpy._core import multiarray

    return [
        *((multiarray.scalar, f"numpy.{core}.multiarray.scalar") for core in ("core", "_core")),
        np.dtype,
        np.dtypes.Float64DType,
        np.dtypes.Float32DType,
        np.dtypes.Int64DType,
        (_codecs.encode, "_codecs.encode"),
        collections.OrderedDict,
        collections.defaultdict,
        dict,
        list,
        set,
    ]

"""Inputs of a layer of the space `torch` by their number, and the shapes of a network's inputs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from archive.architecture.aten.signature import DTYPES
from archive.architecture.aten.vocabulary import COMMUTATIVE
from archive.errors import InvalidArchitectureError

if TYPE_CHECKING:
    from archive.architecture.graph import Architecture

_INPUT = re.compile(r"(scalar|\d+(?:x\d+)*)(?::(\w+))?")


class Input(NamedTuple):
    """An input of a network.

    Attributes:
        shape: Sizes of one input, without the batch.
        dtype: Type of its numbers.
    """

    shape: tuple[int, ...]
    dtype: str = "float32"

    def __str__(self) -> str:
        """Return the text that `read_input` reads: `3x224x224`, `128:int64`, `scalar`."""
        sides = "x".join(map(str, self.shape)) or "scalar"
        return sides if self.dtype == "float32" else f"{sides}:{self.dtype}"


def read_input(text: str) -> Input:
    """Return the input that a text describes.

    Raises:
        InvalidArchitectureError: It describes none.
    """
    match = _INPUT.fullmatch(text)
    if match is None or (match[2] or "float32") not in DTYPES:
        raise InvalidArchitectureError(
            f"an input is given as 3x224x224, or as 128:int64 for indices, got {text!r:.60}"
        )

    shape = () if match[1] == "scalar" else tuple(map(int, match[1].split("x")))
    if shape and not 1 <= min(shape) <= max(shape) < 2**31:
        raise InvalidArchitectureError(
            f"the sides of an input must be in [1, 2^31), got {text!r:.60}"
        )

    return Input(shape, match[2] or "float32")


def inputs(architecture: Architecture) -> list[Input]:
    """Return the inputs of a network.

    Raises:
        InvalidArchitectureError: Its first layer does not say.
    """
    text = architecture.layers[0].attributes.get("input")
    if not isinstance(text, str):
        raise InvalidArchitectureError(
            "the attribute input must have the shapes of the inputs, as in 3x224x224", 0
        )

    return list(map(read_input, text.split(" ")))


def values(architecture: Architecture, layer: int) -> dict[int, int]:
    """Return the position of the layer that each numbered input of a layer comes from.

    Raises:
        InvalidArchitectureError: Two edges have the same number.
    """
    parents: dict[int, int] = {}
    of = architecture.argument_of
    for parent in architecture.parents[layer]:
        for number in of[parent, layer]:
            # Two inputs in either order both have the number 0.
            if (
                number == 0 in parents
                and 1 not in parents
                and architecture.layers[layer].op in COMMUTATIVE
            ):
                number = 1

            if number in parents:
                raise InvalidArchitectureError(f"two edges have the argument {number}", layer)

            parents[number] = parent

    return parents

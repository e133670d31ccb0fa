"""Distinct random draws: networks of a space, or whatever else has a key."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import numpy as np

    from archive.architecture.graph import Architecture
    from archive.spaces.base import Space

Drawn = TypeVar("Drawn")

MISSES = 200
"""Draws in a row without a new one after which a space seems exhausted: less than 5 % of it is left, with 99.99 %
certainty: (1 - 0.05)^200."""


def distinct(space: Space, count: int, rng: np.random.Generator) -> list[Architecture]:
    """Return random networks of a space; fewer where it is exhausted, and the first ones of any larger count."""
    return draw_distinct(lambda: space.sample(rng), lambda one: one.functional_key, count)


def draw_distinct(
    make: Callable[[], Drawn | None], key_of: Callable[[Drawn], str], count: int, taken: Iterable[str] = ()
) -> list[Drawn]:
    """Draw until `count` are new, or there seem to be no more.

    Args:
        make: Draws one; None marks a draw without a result.
        key_of: Returns the key, by which two are the same.
        count: Number to return.
        taken: Keys that must not be drawn.
    """
    seen, drawn, misses = set(taken), list[Drawn](), 0
    while len(drawn) < count and misses < MISSES:
        one = make()
        if one is None or key_of(one) in seen:
            misses += 1
            continue
        misses = 0
        seen.add(key_of(one))
        drawn.append(one)
    return drawn

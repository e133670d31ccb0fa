"""Distinct random draws: networks of a space, or other objects with a key."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import numpy as np

    from archive.architecture.graph import Architecture
    from archive.spaces.base import Space

Drawn = TypeVar("Drawn")

MISSES = 200
"""Draws in a row without a new one after which a space seems exhausted: less than 5 % of it is
left, with 99.99 %
certainty: (1 - 0.05)^200."""


def distinct_sample(space: Space, count: int, rng: np.random.Generator) -> list[Architecture]:
    """Return random networks of a space, no two of equal `functional_key`; fewer where the space is
    exhausted.

    Equal generators give equal networks: a larger count begins with those of a smaller one.
    """
    return draw_distinct(lambda: space.sample(rng), lambda one: one.functional_key, count)


def draw_distinct(
    make: Callable[[], Drawn | None],
    key_of: Callable[[Drawn], str],
    count: int,
    taken: Iterable[str] = (),
) -> list[Drawn]:
    """Draw until `count` objects are new, or there seem to be no more.

    Args:
        make: Draws one object; None marks a draw without a result.
        key_of: Returns the key of an object; objects of equal keys count as one.
        count: Number of objects to return.
        taken: Keys that must not be drawn.
    """
    seen = set(taken)
    drawn = list[Drawn]()
    misses = 0
    while len(drawn) < count and misses < MISSES:
        one = make()
        if one is None or key_of(one) in seen:
            misses += 1
            continue

        misses = 0
        seen.add(key_of(one))
        drawn.append(one)

    return drawn

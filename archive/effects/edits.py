"""Edits by name: the change of one property, in the direction in which it counts.

    Edit("activation", "relu", "gelu")            activation relu -> gelu
    Edit("squeeze-excitation", "", "added")       squeeze-excitation added
    Edit("width", "", "about x1.5")               width about x1.5

A pair in the other direction has the same edit and the opposite effect.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from archive.values import as_float, is_number

FACTORS = (1.1, 1.25, 1.5, 2.0, 3.0, 4.0, 8.0)
"""Factors that stand for those nearest to them."""

SCALED = frozenset(
    [
        "depth",
        "expansion ratio",
        "head size",
        "heads",
        "input size",
        "kv heads",
        "mlp ratio",
        "stem width",
        "test size",
        "tokens",
        "width",
    ]
)
"""Changes of numbers of which the factor counts."""

PLAIN = (
    "",
    "none",
    "post",
    "conv",
    "mlp",
    "batch",
    "relu",
    "layer",
    "identity",
    "skip_connect",
    "avg_pool_3x3",
    "nor_conv_1x1",
    "nor_conv_3x3",
)
"""Values that count as the one before, where they meet a later one or one that is not listed."""

WIDE_FACTORS = (*FACTORS, 16.0, 32.0, 100.0, 1000.0)
"""The same for values of runs, such as learning rates."""

LARGER = "larger"
"""Value after an edit by any factor."""

DOUBLED = "doubled"
"""Value after an edit that has the effect of a factor of two."""

_FACTOR = "about x"
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


@dataclass(frozen=True, order=True)
class Edit:
    """Change of one property.

    Attributes:
        name: The property.
        before: Its value before; empty where the change is a factor or an addition.
        after: Its value after, a factor, or `added`.
    """

    name: str
    before: str
    after: str

    @property
    def whole(self) -> Edit:
        """The edit by any factor, for an edit by a factor; else the edit."""
        is_factor = not self.before and self.after.startswith(_FACTOR)
        return Edit(self.name, "", LARGER) if is_factor else self

    @property
    def is_whole(self) -> bool:
        """Whether it stands for edits by all factors."""
        return self.after == LARGER

    @property
    def is_derived(self) -> bool:
        """Whether it is said of pairs that have another edit in their own words."""
        return self.after in (LARGER, DOUBLED)

    def __str__(self) -> str:
        """Return the edit in words."""
        if self.before:
            return f"{self.name} {self.before} -> {self.after}"

        return f"{self.name} {self.after}"


def edit_of(name: str, before: object, after: object) -> tuple[Edit, bool]:
    """Return the edit of a change, and whether it goes from `after` to `before`.

    Args:
        name: The property.
        before: Its value in the first network; None where it has none.
        after: Its value in the second one.
    """
    first = "" if before is None else _text(before)
    second = "" if after is None else _text(after)
    if name in SCALED:
        factor = _factor(first, second)
        if factor is not None:
            return Edit(name, "", _nearest(max(factor, 1.0 / factor))), factor < 1.0

    reverse = _rank(first) > _rank(second)
    if reverse:
        first, second = second, first

    if not first:
        return Edit(name, "", "added"), reverse

    return Edit(name, first, second), reverse


def edits_of_value(name: str, before: object, after: object) -> list[tuple[Edit, float]]:
    """Return the edits of a change of a run's value, each with the factor of its effect.

    A number that gets larger by a factor is an edit by that factor, by any, and, as far as its
    logarithm counts, so many times a doubling. The factor is -1 for an edit that goes back.

    Args:
        name: Name of the value.
        before: The value before; None where it is absent.
        after: The value after it.
    """
    first = _number(before)
    second = _number(after)
    if first is None or second is None or first == second:
        # Whole numbers may differ where their floats do not.
        edit, reverse = edit_of(name, before, after)
        return [(edit, -1.0 if reverse else 1.0)]

    side = 1.0 if second > first else -1.0
    larger = (Edit(name, "", LARGER), side)
    ratio = second / first if first else math.nan
    if not 0.0 < ratio < math.inf or first < 0.0:
        smallest, largest = sorted((first, second))
        return [(Edit(name, f"{smallest:.4g}", f"{largest:.4g}"), side), larger]

    nearest = Edit(name, "", _nearest(max(ratio, 1.0 / ratio), WIDE_FACTORS))
    return [(nearest, side), larger, (Edit(name, "", DOUBLED), 1.0 / math.log2(ratio))]


def _number(value: object) -> float | None:
    """Return a finite number as float; None for any other value."""
    number = as_float(value) if is_number(value) else None
    return number if number is not None and math.isfinite(number) else None


def _text(value: object) -> str:
    if isinstance(value, tuple | list):
        return "/".join(map(_text, value))

    return f"{value:g}" if isinstance(value, float) else str(value)


def _rank(value: str) -> tuple[int, float, str]:
    """Return the order of values: plain ones, numbers ascending, texts."""
    if value in PLAIN:
        return PLAIN.index(value), 0.0, value

    try:
        number = float(value)
    except ValueError:
        number = math.inf

    return len(PLAIN), math.inf if math.isnan(number) else number, value


def _factor(before: str, after: str) -> float | None:
    """Return the geometric mean of the ratios of numbers; None where they are no such numbers."""
    first = list(map(float, _NUMBER.findall(before)))
    second = list(map(float, _NUMBER.findall(after)))
    if not first or len(first) != len(second) or min(*first, *second) <= 0.0:
        return None

    logs = [math.log(new / old) for old, new in zip(first, second, strict=True) if new != old]
    # A network that is wider in one stage and narrower in another one is neither.
    if not logs or min(logs) * max(logs) < 0.0:
        return None

    return math.exp(sum(logs) / len(logs))


def _nearest(factor: float, factors: Sequence[float] = FACTORS) -> str:
    nearest = min(factors, key=lambda candidate: abs(math.log(factor / candidate)))
    return f"{_FACTOR}{nearest:g}"

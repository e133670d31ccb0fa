"""Edits by name: the change of one property, in the direction in which it counts.

    Edit("activation", "relu", "gelu")            activation relu -> gelu
    Edit("squeeze-excitation", "", "added")       squeeze-excitation added
    Edit("width", "", "about x1.5")               width about x1.5

A pair in the other direction has the same edit and the opposite effect.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

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

LARGER = "larger"
"""Value after an edit by any factor."""

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


def _nearest(factor: float) -> str:
    nearest = min(FACTORS, key=lambda candidate: abs(math.log(factor / candidate)))
    return f"{_FACTOR}{nearest:g}"

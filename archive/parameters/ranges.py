"""Domains of numbers: whole ones and real ones, on a linear or a logarithmic scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from archive.errors import SettingsError, UsageError
from archive.values import brief, is_number

if TYPE_CHECKING:
    import numpy as np

LARGEST_INTEGER = 2**53
"""Whole numbers beyond it are not exact as floats, and JavaScript reads others."""

STEP = 0.2
"""Standard deviation of a random step to another value, as a share of the scale."""


@dataclass(frozen=True)
class Integer:
    """Whole numbers.

    Attributes:
        low: Least value.
        high: Greatest value, at least `low`.
        step: Distance of neighbouring values; the greatest is at most `high`.
        log: Whether ratios of values are compared, not differences.

    Raises:
        SettingsError: The bounds are no whole numbers, are reversed, or are not positive on a
            logarithmic scale; or a step is below 1, or stands beside `log`.
    """

    low: int
    high: int
    step: int = 1
    log: bool = False

    kind = "integer"

    def __post_init__(self) -> None:
        """Check the bounds."""
        for bound in (self.low, self.high, self.step):
            if isinstance(bound, bool) or not isinstance(bound, int):
                raise SettingsError(
                    f"an integer has whole bounds and a whole step, got {brief(bound)}"
                )

            if abs(bound) > LARGEST_INTEGER:
                raise SettingsError(f"an integer lies within 2^53, got {brief(bound)}")

        _check_bounds(self.low, self.high, self.log)
        if self.step < 1:
            raise SettingsError(f"the step of an integer is 1 or more, got {self.step}")

        if self.log and self.step != 1:
            raise SettingsError("an integer has a step or a log scale, got both")

    @property
    def size(self) -> int:
        """Number of values."""
        return (self.high - self.low) // self.step + 1

    @property
    def ordered(self) -> bool:
        """Whether codes are places between 0 and 1."""
        return True

    def check(self, value: Any) -> None:
        """Check that a value is in the domain.

        Raises:
            UsageError: It is not; the message says which values are.
        """
        whole = is_number(value) and float(value).is_integer()
        if whole and self.low <= value <= self.high and (value - self.low) % self.step == 0:
            return

        steps = "" if self.step == 1 else f" in steps of {self.step}"
        raise UsageError(
            f"must be a whole number from {self.low} to {self.high}{steps}, got {brief(value)}"
        )

    def normal(self, value: Any) -> Any:
        """Return the value as it is recorded: 3.0 is 3."""
        return int(value)

    def encode(self, value: Any) -> float:
        """Return the code of a value."""
        return _encode(value, self.low, self.high, self.log)

    def decode(self, code: float) -> Any:
        """Return the value whose code is nearest to a number in [0, 1]."""
        number = _decode(code, self.low, self.high, self.log)
        if self.step == 1:
            return round(number)

        last = self.size - 1
        return self.low + self.step * min(round((number - self.low) / self.step), last)

    def sample(self, rng: np.random.Generator) -> Any:
        """Draw uniformly on the domain's scale."""
        if self.log:
            return self.decode(float(rng.random()))

        if self.step == 1:
            return int(rng.integers(self.low, self.high, endpoint=True))

        return self.low + self.step * int(rng.integers(self.size))

    def neighbours(self, value: Any) -> list[Any]:
        """Return the next smaller and the next larger value, as far as they exist."""
        near = [value - self.step, value + self.step]
        return [other for other in near if self.low <= other <= self.high]

    def values(self) -> Sequence[Any]:
        """Return all values."""
        return range(self.low, self.high + 1, self.step)

    def move(self, value: Any, rng: np.random.Generator) -> Any:
        """Return another value, a normal step of a fifth of the scale away."""
        moved = self.decode(_step(self.encode(value), STEP, rng))
        near = self.neighbours(value)
        if moved != value or not near:
            return moved

        return near[int(rng.integers(len(near)))]

    def sample_near(self, value: Any, width: float, rng: np.random.Generator) -> Any:
        """Draw from a normal distribution around a value, cut off at the bounds.

        Args:
            value: Its centre.
            width: Standard deviation, as a share of the scale.
            rng: Source of the random numbers.
        """
        return self.decode(_normal_within(self.encode(value), width, rng))

    def json(self) -> dict[str, Any]:
        """Return the domain as a JSON object, which `from_json` reads."""
        return {
            "kind": self.kind,
            "low": self.low,
            "high": self.high,
            "step": self.step,
            "log": self.log,
        }


@dataclass(frozen=True)
class Real:
    """Numbers between bounds.

    Attributes:
        low: Least value.
        high: Greatest value, larger than `low`.
        log: Whether ratios of values are compared, not differences.
        step: Distance of neighbouring values, counted from `low`; the greatest is at most `high`.
            None for all numbers between the bounds.

    Raises:
        SettingsError: The bounds are not finite, are reversed or equal, or are not positive on a
            logarithmic scale; or a step is not positive, too small or too large for the bounds, or
            stands beside `log`.
    """

    low: float
    high: float
    log: bool = False
    step: float | None = None

    kind = "real"

    def __post_init__(self) -> None:
        """Check the bounds and the step."""
        for bound in (self.low, self.high):
            if not is_number(bound) or not math.isfinite(bound):
                raise SettingsError(f"a real has finite bounds, got {brief(bound)}")

        object.__setattr__(self, "low", float(self.low))
        object.__setattr__(self, "high", float(self.high))
        _check_bounds(self.low, self.high, self.log)
        if self.low == self.high:
            raise SettingsError(
                f"the bounds of a real differ, got {self.low:g} twice: write constant({self.low:g})"
            )

        if not math.isfinite(self.high - self.low):
            raise SettingsError(f"the bounds {self.low:g} and {self.high:g} are too far apart")

        if self.step is not None:
            self._check_step(self.step)
            object.__setattr__(self, "step", float(self.step))

    def _check_step(self, step: Any) -> None:
        if not is_number(step) or not 0 < step < math.inf:
            raise SettingsError(f"the step of a real is a number above 0, got {brief(step)}")

        if self.log:
            raise SettingsError("a real has a step or a log scale, got both")

        if not 1 <= _count_steps(self.low, self.high, step) <= LARGEST_INTEGER:
            raise SettingsError(
                f"the step of a real divides {self.low:g} to {self.high:g} into 1 to 2^53 parts, "
                f"got {step:g}"
            )

    @property
    def size(self) -> float:
        """Number of values."""
        return math.inf if self.step is None else self._steps + 1

    @property
    def ordered(self) -> bool:
        """Whether codes are places between 0 and 1."""
        return True

    def check(self, value: Any) -> None:
        """Check that a value is in the domain; of a grid, up to rounding.

        Raises:
            UsageError: It is not; the message says which values are.
        """
        if is_number(value) and self.low <= value <= self.high and self._is_on_grid(value):
            return

        steps = "" if self.step is None else f" in steps of {self.step:g}"
        raise UsageError(
            f"must be a number from {self.low:g} to {self.high:g}{steps}, got {brief(value)}"
        )

    def normal(self, value: Any) -> Any:
        """Return the value as it is recorded: 3 is 3.0, and 0.30000000000000004 in steps is 0.3."""
        return float(value) if self.step is None else self._on_grid(float(value))

    def encode(self, value: Any) -> float:
        """Return the code of a value."""
        return _encode(value, self.low, self.high, self.log)

    def decode(self, code: float) -> Any:
        """Return the value whose code is nearest to a number in [0, 1]."""
        value = _decode(code, self.low, self.high, self.log)
        return value if self.step is None else self._on_grid(value)

    def sample(self, rng: np.random.Generator) -> Any:
        """Draw uniformly on the domain's scale."""
        if self.step is None:
            return self.decode(float(rng.random()))

        return self._value(int(rng.integers(self._steps, endpoint=True)))

    def neighbours(self, value: Any) -> list[Any]:
        """Return the values a tenth of the scale away, or a step away, as far as they exist."""
        if self.step is not None:
            near = [self._index(value) - 1, self._index(value) + 1]
            return [self._value(index) for index in near if 0 <= index <= self._steps]

        code = self.encode(value)
        places = [code - NEAR, code + NEAR]
        return [self.decode(other) for other in places if 0.0 <= other <= 1.0]

    def values(self) -> Sequence[Any]:
        """Return all values of a grid.

        Raises:
            TypeError: There is no step: the values are not countable.
        """
        if self.step is None:
            raise TypeError("a real without a step has no list of values")

        return [self._value(index) for index in range(self._steps + 1)]

    def move(self, value: Any, rng: np.random.Generator) -> Any:
        """Return another value, a normal step of a fifth of the scale away."""
        moved = self.decode(_step(self.encode(value), STEP, rng))
        if self.step is None or moved != value:
            return moved

        near = self.neighbours(value)
        return near[int(rng.integers(len(near)))]

    def sample_near(self, value: Any, width: float, rng: np.random.Generator) -> Any:
        """Draw from a normal distribution around a value, as `Integer.sample_near` does."""
        return self.decode(_normal_within(self.encode(value), width, rng))

    def json(self) -> dict[str, Any]:
        """Return the domain as a JSON object, which `from_json` reads."""
        document = {"kind": self.kind, "low": self.low, "high": self.high, "log": self.log}
        return document if self.step is None else {**document, "step": self.step}

    @property
    def _steps(self) -> int:
        """Number of steps from the least value to the greatest."""
        assert self.step is not None, "a domain without a grid"
        return _count_steps(self.low, self.high, self.step)

    def _value(self, index: int) -> float:
        """Return the value a number of steps above the least one."""
        # 0.1 + 2 * 0.1 is not 0.3 in binary.
        return float(Decimal(repr(self.low)) + index * Decimal(repr(self.step)))

    def _index(self, value: float) -> int:
        """Return the number of steps to the nearest value of the grid."""
        assert self.step is not None, "a domain without a grid"
        return min(max(round((value - self.low) / self.step), 0), self._steps)

    def _on_grid(self, value: float) -> float:
        return self._value(self._index(value))

    def _is_on_grid(self, value: float) -> bool:
        if self.step is None:
            return True

        return abs(value - self._on_grid(value)) <= _ROUNDING * self.step


_ROUNDING = 1e-6
"""Greatest distance of a value from its place on a grid, in steps."""

NEAR = 0.1
"""Distance of neighbouring numbers, as a share of the scale."""


def _count_steps(low: float, high: float, step: float) -> int:
    """Return the number of whole steps between bounds, in decimal numbers as they are written."""
    return int((Decimal(repr(high)) - Decimal(repr(low))) / Decimal(repr(step)))


def _check_bounds(low: float, high: float, log: bool) -> None:
    if low > high:
        raise SettingsError(f"the bounds are reversed, got low {low:g} and high {high:g}")

    if log and low <= 0:
        raise SettingsError(f"a log scale begins above 0, got low {low:g}")


def _encode(value: float, low: float, high: float, log: bool) -> float:
    if low == high:
        return 0.0

    if log:
        return (math.log(value) - math.log(low)) / (math.log(high) - math.log(low))

    return (float(value) - low) / (high - low)


def _decode(code: float, low: float, high: float, log: bool) -> float:
    if log:
        value = math.exp(math.log(low) + code * (math.log(high) - math.log(low)))
    else:
        value = low + code * (high - low)

    # Rounding must not move a value beyond a bound.
    return min(max(value, low), high)


def _step(code: float, width: float, rng: np.random.Generator) -> float:
    """Return a code a normal step away, at the bound where the step leads beyond it."""
    return min(max(code + width * float(rng.standard_normal()), 0.0), 1.0)


def _normal_within(code: float, width: float, rng: np.random.Generator) -> float:
    """Draw a code in [0, 1] around a code in [0, 1]."""
    while True:
        drawn = code + width * float(rng.standard_normal())
        if 0.0 <= drawn <= 1.0:
            return drawn

"""Domains: the values that one parameter can take.

| domain     | values                                     | code                                    |
|------------|--------------------------------------------|-----------------------------------------|
| `Integer`  | whole numbers from low to high, in steps   | place between the bounds, in [0, 1]     |
| `Real`     | numbers from low to high, or in steps      | place between the bounds, in [0, 1]     |
| `Choice`   | options of any JSON value                  | position; in [0, 1] if they are ordered |
| `Constant` | one value                                  | 0                                       |

The code of a number is (x - low) / (high - low), on the scale that the domain is compared on
(linear or logarithmic).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from archive.errors import SettingsError, UsageError
from archive.parameters.ranges import Integer, Real
from archive.values import brief

if TYPE_CHECKING:
    import numpy as np

Value = Any
"""A JSON value."""

MOST_OPTIONS = 10_000
"""Most options of a choice."""


@dataclass(frozen=True, eq=False)
class Choice:
    """Options.

    Attributes:
        options: Different JSON values, at least one.
        ordered: Whether the order of the options has a meaning: neighbours are similar.

    Raises:
        SettingsError: There is no option, an option stands twice, is no JSON value, or there are
            too many.
    """

    options: tuple[Value, ...]
    ordered: bool = False

    kind = "choice"

    def __post_init__(self) -> None:
        """Check the options."""
        if not self.options:
            raise SettingsError("a choice has one option or more, got none")

        if len(self.options) > MOST_OPTIONS:
            raise SettingsError(
                f"a choice has at most {MOST_OPTIONS:,} options, got {len(self.options):,}: "
                "write an integer or a real"
            )

        if len(self._position_of) < len(self.options):
            texts = list(map(json_text, self.options))
            twice = next(text for text in texts if texts.count(text) > 1)
            raise SettingsError(f"the option {brief(twice)} stands twice")

    def __eq__(self, other: object) -> bool:
        """Compare the options as JSON: 1 and true are different."""
        return (
            isinstance(other, Choice)
            and self.json() == other.json()
            and (list(self._position_of) == list(other._position_of))
        )

    def __hash__(self) -> int:
        """Hash the options."""
        return hash((self.ordered, *self._position_of))

    @cached_property
    def _position_of(self) -> dict[str, int]:
        """The position of each option by its JSON text."""
        return {json_text(option): position for position, option in enumerate(self.options)}

    @property
    def size(self) -> int:
        """Number of values."""
        return len(self.options)

    def position(self, value: Value) -> int | None:
        """Return the position of an option, None for another value."""
        try:
            return self._position_of.get(json_text(value))
        except SettingsError:
            return None

    def check(self, value: Value) -> None:
        """Check that a value is an option.

        Raises:
            UsageError: It is not; the message names the options.
        """
        if self.position(value) is None:
            shown = ", ".join(json_text(option) for option in self.options[:8])
            rest = ", …" if len(self.options) > 8 else ""
            raise UsageError(f"must be one of {shown}{rest}, got {brief(value)}")

    def normal(self, value: Value) -> Value:
        """Return the option itself."""
        position = self.position(value)
        assert position is not None, "a value that was not checked"
        return self.options[position]

    def encode(self, value: Value) -> float:
        """Return the position of an option; between 0 and 1 if the options are ordered."""
        position = self.position(value)
        assert position is not None, "a value that was not checked"
        if self.ordered:
            return position / max(1, len(self.options) - 1)

        return float(position)

    def decode(self, code: float) -> Value:
        """Return the option whose code is nearest."""
        last = len(self.options) - 1
        position = round(code * last) if self.ordered else round(code)
        return self.options[min(max(position, 0), last)]

    def sample(self, rng: np.random.Generator) -> Value:
        """Draw uniformly."""
        return self.options[int(rng.integers(len(self.options)))]

    def neighbours(self, value: Value) -> list[Value]:
        """Return all other options; of ordered ones the two beside the value."""
        position = self.position(value)
        assert position is not None, "a value that was not checked"
        if self.ordered:
            near = [position - 1, position + 1]
            return [self.options[other] for other in near if 0 <= other < len(self.options)]

        return [*self.options[:position], *self.options[position + 1 :]]

    def values(self) -> Sequence[Value]:
        """Return all options."""
        return self.options

    def move(self, value: Value, rng: np.random.Generator) -> Value:
        """Return another option: any with equal probability, of ordered ones one beside it."""
        near = self.neighbours(value)
        return near[int(rng.integers(len(near)))] if near else value

    def sample_near(self, value: Value, width: float, rng: np.random.Generator) -> Value:
        """Draw an option, more probably one that is expected.

        Args:
            value: The expected option. Its weight is k / (4 width) beside 1 of each of the k - 1
                others, at least 1; of ordered options, the weights are of a normal distribution
                over their places.
            width: Standard deviation, as a share of the scale.
            rng: Source of the random numbers.
        """
        import numpy as np

        position = self.position(value)
        assert position is not None, "a value that was not checked"
        count = len(self.options)
        if self.ordered:
            distance = (np.arange(count) - position) / max(1, count - 1)
            weights = np.exp(-0.5 * np.square(distance / width))
        else:
            weights = np.ones(count)
            weights[position] = max(1.0, count / (4 * width))

        return self.options[int(rng.choice(count, p=weights / weights.sum()))]

    def json(self) -> dict[str, Any]:
        """Return the domain as a JSON object, which `from_json` reads."""
        return {"kind": self.kind, "options": list(self.options), "ordered": self.ordered}


@dataclass(frozen=True, eq=False)
class Constant:
    """One value, which is not searched.

    Attributes:
        value: A JSON value.

    Raises:
        SettingsError: It is none.
    """

    value: Value

    kind = "constant"
    size = 1
    ordered = True

    def __post_init__(self) -> None:
        """Check the value."""
        json_text(self.value)

    def __eq__(self, other: object) -> bool:
        """Compare the values as JSON."""
        return isinstance(other, Constant) and json_text(self.value) == json_text(other.value)

    def __hash__(self) -> int:
        """Hash the value."""
        return hash(json_text(self.value))

    def check(self, value: Value) -> None:
        """Check that a value is the constant.

        Raises:
            UsageError: It is not.
        """
        if json_text(value) != json_text(self.value):
            raise UsageError(f"is always {json_text(self.value)}, got {brief(value)}")

    def normal(self, value: Value) -> Value:
        """Return the value."""
        del value
        return self.value

    def encode(self, value: Value) -> float:
        """Return 0."""
        del value
        return 0.0

    def decode(self, code: float) -> Value:
        """Return the value."""
        del code
        return self.value

    def sample(self, rng: np.random.Generator) -> Value:
        """Return the value; nothing is drawn."""
        del rng
        return self.value

    def neighbours(self, value: Value) -> list[Value]:
        """Return nothing."""
        del value
        return []

    def values(self) -> Sequence[Value]:
        """Return the value alone."""
        return (self.value,)

    def move(self, value: Value, rng: np.random.Generator) -> Value:
        """Return the value: there is no other."""
        del rng
        return value

    def sample_near(self, value: Value, width: float, rng: np.random.Generator) -> Value:
        """Return the value: there is no other."""
        del width, rng
        return value

    def json(self) -> dict[str, Any]:
        """Return the domain as a JSON object, which `from_json` reads."""
        return {"kind": self.kind, "value": self.value}


Domain = Integer | Real | Choice | Constant


def from_json(document: Mapping[str, Any]) -> Domain:
    """Return the domain of a JSON object.

    Raises:
        SettingsError: A field is missing or invalid, or there is no such kind.
    """
    fields = dict(document)
    kind = fields.pop("kind", None)
    try:
        if kind == "integer":
            return Integer(**fields)

        if kind == "real":
            return Real(**fields)

        if kind == "choice":
            return Choice(tuple(fields.pop("options")), **fields)

        if kind == "constant":
            return Constant(**fields)
    except (TypeError, KeyError):
        raise SettingsError(f"no domain: {brief(dict(document))}") from None

    raise SettingsError(f"a domain is integer, real, choice or constant, got {brief(kind)}")


def check(domain: Domain, value: Value, name: str) -> None:
    """Check that a value is in a domain.

    Args:
        domain: The domain.
        value: The value.
        name: What the value is, for the message.

    Raises:
        SettingsError: It is not.
    """
    try:
        domain.check(value)
    except UsageError as error:
        raise SettingsError(f"{name} {error}") from None


def json_text(value: Value) -> str:
    """Return the JSON text of a value; equal for equal values, with the names of objects sorted.

    Raises:
        SettingsError: It is no JSON value.
    """
    try:
        return json.dumps(value, sort_keys=True, allow_nan=False, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        raise SettingsError(f"a value is a JSON value, got {brief(value)}") from None


def options_of(values: Sequence[Value]) -> tuple[Value, ...]:
    """Return options as a tuple.

    Raises:
        SettingsError: They are no list; a text is none.
    """
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Sequence):
        raise SettingsError(f"the options are a list, got {brief(values)}")

    return tuple(values)

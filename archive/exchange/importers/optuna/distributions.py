"""Domains of parameters as distributions of Optuna, and back.

| domain   | distribution                                                                         |
|----------|--------------------------------------------------------------------------------------|
| real     | `FloatDistribution`, with its step and its log scale                                 |
| integer  | `IntDistribution`, likewise                                                          |
| choice   | `CategoricalDistribution` of its options; of their JSON texts where an option is a   |
|          | list or an object, or where Python takes two options for equal (1 and true)          |
| constant | `CategoricalDistribution` of one option                                              |

One name of a study may have several distributions: a range may change from trial to trial.
`merge_distributions` returns the domain that has the values of all of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from archive.errors import SettingsError, UsageError
from archive.parameters.domains import Choice, Constant, Domain, json_text
from archive.parameters.ranges import Integer, Real
from archive.values import is_number, mapped

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution


def number_distribution(domain: Integer | Real, package: Any) -> Any:
    """Return the distribution of numbers; its greatest value is the domain's, not its bound.

    Args:
        domain: The domain.
        package: The module `optuna`.
    """
    if isinstance(domain, Integer):
        high = domain.low + (domain.size - 1) * domain.step
        return package.distributions.IntDistribution(
            domain.low, high, log=domain.log, step=domain.step
        )

    greatest = domain.high if domain.step is None else domain.decode(1.0)
    return package.distributions.FloatDistribution(
        domain.low, greatest, log=domain.log, step=domain.step
    )


def distribution_of(domain: Domain, package: Any) -> Any:
    """Return the distribution of a domain; arguments as of `number_distribution`."""
    if isinstance(domain, Integer | Real):
        return number_distribution(domain, package)

    options = [choice for choice, _ in choices_of(domain)]
    return package.distributions.CategoricalDistribution(options)


def choices_of(domain: Choice | Constant) -> list[tuple[Any, Any]]:
    """Return the choices of Optuna with the options that they stand for."""
    options = list(domain.values())
    scalar = all(
        option is None or isinstance(option, str | bool | int | float) for option in options
    )
    if scalar and len({*options}) == len(options):
        return [(option, option) for option in options]

    return [(json_text(option), option) for option in options]


def choice_of(domain: Domain, value: Any) -> Any:
    """Return what a trial of Optuna has for a value of a domain."""
    if isinstance(domain, Integer | Real):
        return value

    for choice, option in choices_of(domain):
        if json_text(option) == json_text(value):
            return choice

    raise AssertionError("a value that was not checked")


def value_of(domain: Domain, value: Any) -> Any:
    """Return the value of a domain that a trial of Optuna has.

    An option is accepted, and the choice that stands for it (`choices_of`).
    """
    plain = json_value(value)
    if isinstance(domain, Choice) and domain.position(plain) is None:
        for choice, option in choices_of(domain):
            if type(choice) is type(plain) and choice == plain:
                return option

    return plain


def json_value(value: Any) -> Any:
    """Return a value with lists for tuples."""
    return mapped(value, lambda item: item)


def merge_distributions(
    distributions: Iterable[BaseDistribution],
    values: Iterable[Any],
    before: Domain | None = None,
) -> Domain:
    """Return the domain of all values of some distributions.

    Args:
        distributions: Distributions of one name.
        values: Values of trials, which may lie outside the distributions: a user may enqueue any.
        before: Domain of an earlier import, whose values remain.

    Raises:
        UsageError: They are of different kinds, or a choice is no JSON value.
        SettingsError: Numbers are too large, or options too many.
    """
    merged: _NumberRange | _OptionSet | None = None if before is None else _parts_of(before)
    for distribution in distributions:
        read = _read(distribution)
        merged = read if merged is None else _merge(merged, read)

    assert merged is not None, "a name without a distribution"
    for value in values:
        merged = merged.with_value(json_value(value))

    return merged.domain()


@dataclass(frozen=True)
class _NumberRange:
    low: float
    high: float
    step: float | None
    log: bool
    whole: bool

    def with_value(self, value: Any) -> _NumberRange:
        """Return the numbers with one more."""
        if not is_number(value) or not math.isfinite(value):
            raise UsageError(f"has the value {value!r:.80} beside numbers")

        whole = self.whole and float(value).is_integer()
        step = self.step if _is_multiple(value, self.low, self.step) else _finest(whole)
        return replace(
            self,
            low=min(self.low, value),
            high=max(self.high, value),
            step=step,
            whole=whole,
            log=self.log and value > 0,
        )

    def domain(self) -> Domain:
        """Return the domain."""
        if self.whole:
            step = 1 if self.log or self.step is None else int(self.step)
            return Integer(int(self.low), int(self.high), step, self.log)

        if self.low == self.high:
            return Constant(float(self.low))

        return Real(self.low, self.high, self.log, None if self.log else self.step)


@dataclass(frozen=True)
class _OptionSet:
    options: dict[str, Any] = field(default_factory=dict)
    ordered: bool = False

    def with_value(self, value: Any) -> _OptionSet:
        """Return the options with one more."""
        try:
            return replace(self, options={**self.options, json_text(value): value})
        except SettingsError:
            raise UsageError(f"has the choice {value!r:.80}, which is no JSON value") from None

    def domain(self) -> Domain:
        """Return the domain."""
        return Choice(tuple(self.options.values()), self.ordered)


def _parts_of(domain: Domain) -> _NumberRange | _OptionSet:
    if isinstance(domain, Integer | Real):
        whole = isinstance(domain, Integer)
        return _NumberRange(domain.low, domain.high, domain.step, domain.log, whole)

    if isinstance(domain, Constant) and is_number(domain.value):
        return _NumberRange(domain.value, domain.value, None, False, isinstance(domain.value, int))

    options = {json_text(option): option for option in domain.values()}
    return _OptionSet(options, isinstance(domain, Choice) and domain.ordered)


def _read(distribution: Any) -> _NumberRange | _OptionSet:
    if hasattr(distribution, "choices"):
        options = _OptionSet()
        for choice in distribution.choices:
            options = options.with_value(json_value(choice))

        return options

    whole = isinstance(distribution.low, int) and isinstance(distribution.high, int)
    return _NumberRange(
        distribution.low, distribution.high, distribution.step, distribution.log, whole
    )


def _merge(
    first: _NumberRange | _OptionSet, second: _NumberRange | _OptionSet
) -> _NumberRange | _OptionSet:
    if isinstance(first, _OptionSet) and isinstance(second, _OptionSet):
        return replace(first, options={**first.options, **second.options})

    if isinstance(first, _OptionSet) or isinstance(second, _OptionSet):
        raise UsageError("is a number in one trial and a choice in another one")

    whole = first.whole and second.whole
    same = first.step == second.step and _is_multiple(second.low, first.low, first.step)
    low = min(first.low, second.low)
    # A single number is on any scale.
    scales = {part.log for part in (first, second) if part.low < part.high}
    log = scales <= {True} and (first.log or second.log) and low > 0
    step = first.step if same else _finest(whole)
    return _NumberRange(low, max(first.high, second.high), step, log, whole)


def _finest(whole: bool) -> float | None:
    return 1 if whole else None


def _is_multiple(value: float, low: float, step: float | None) -> bool:
    """Return whether a value is a number of steps away from the least one."""
    if step is None:
        return True

    steps = (Decimal(repr(value)) - Decimal(repr(low))) / Decimal(repr(step))
    return abs(steps - round(steps)) < Decimal("1e-6")

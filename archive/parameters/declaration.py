"""What a user writes: parameters by name, groups of them, conditions, defaults and priors.

    Space(
        depth=integer(2, 12),
        lr=real(1e-5, 1e-1, log=True, prior=(1e-3, "high")),
        dropout=real(0, 0.5, when="depth >= 4"),
        stage=repeat({"op": choice(["conv3", "skip"]), "kernel": choice([3, 5])}, "depth"),
    )

A declaration is a tree. `archive.parameters.leaves` has its leaves: `stage_1_op`,
`stage_1_kernel`, `stage_2_op`, …
"""

from __future__ import annotations

import keyword
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from archive.errors import SettingsError
from archive.parameters import domains
from archive.parameters.domains import Choice, Constant, Domain, Value
from archive.parameters.parser import parse
from archive.parameters.ranges import Integer, Real
from archive.parameters.tokens import RESERVED
from archive.values import brief, is_number

MOST_REPEATS = 1000
"""Most repetitions of a group."""

CONFIDENCES: Mapping[str, float] = {"low": 0.5, "medium": 0.25, "high": 0.125}
"""Width of a prior by how sure its author is.

The standard deviation of a number's code around the code of the value, as NePS has it (Mallik et
al., PriorBand, 2023). An option of a choice is as much more likely than the others.
"""


class _NoDefault:
    """No default, since null can be one."""

    def __repr__(self) -> str:
        return "no default"


NO_DEFAULT = _NoDefault()


@dataclass(frozen=True)
class Prior:
    """Where a user expects the best value.

    Attributes:
        value: The value.
        confidence: `low`, `medium` or `high`.
    """

    value: Value
    confidence: str = "medium"

    def __post_init__(self) -> None:
        """Check the confidence."""
        if self.confidence not in CONFIDENCES:
            raise SettingsError(
                f"the confidence of a prior is {', '.join(CONFIDENCES)}, "
                f"got {brief(self.confidence)}"
            )


@dataclass(frozen=True)
class Declaration:
    """One parameter.

    Attributes:
        domain: Its values.
        when: Condition on other parameters, without which it does not exist.
        default: Value where it is not searched, and of results from before it was added;
            `NO_DEFAULT` for none.
        prior: Where the best value is expected.
    """

    domain: Domain
    when: str | None = None
    default: Value = NO_DEFAULT
    prior: Prior | None = None

    def __post_init__(self) -> None:
        """Check the condition, the default and the prior."""
        if self.when is not None:
            parse(self.when)

        if self.default is not NO_DEFAULT:
            domains.check(self.domain, self.default, "the default")

        if self.prior is not None:
            domains.check(self.domain, self.prior.value, "the value of the prior")

    def json(self) -> dict[str, Any]:
        """Return the parameter as a JSON object."""
        document = self.domain.json()
        if self.when is not None:
            document["when"] = self.when

        if self.default is not NO_DEFAULT:
            document["default"] = self.default

        if self.prior is not None:
            document["prior"] = {"value": self.prior.value, "confidence": self.prior.confidence}

        return document


@dataclass(frozen=True)
class Group:
    """Parameters under one name, once or several times.

    Attributes:
        parameters: The declarations by name.
        count: Number of repetitions, or the name of the parameter that gives it; None for a group
            that is not repeated.
        when: Condition without which the group does not exist.
    """

    parameters: Mapping[str, Declaration | Group]
    count: int | str | None = None
    when: str | None = None

    def __post_init__(self) -> None:
        """Check the names, the count and the condition."""
        object.__setattr__(self, "parameters", declarations(self.parameters))
        if isinstance(self.count, int) and not isinstance(self.count, bool):
            if not 1 <= self.count <= MOST_REPEATS:
                raise SettingsError(
                    f"a group is repeated 1 to {MOST_REPEATS} times, got {self.count}"
                )
        elif self.count is not None and not isinstance(self.count, str):
            raise SettingsError(
                "the count of a group is a number or the name of a parameter, "
                f"got {brief(self.count)}"
            )

        if self.when is not None:
            parse(self.when)

    def json(self) -> dict[str, Any]:
        """Return the group as a JSON object."""
        members = [[name, entry.json()] for name, entry in self.parameters.items()]
        document: dict[str, Any] = {"kind": "group", "parameters": members}
        if self.count is not None:
            document = {"kind": "repeat", "count": self.count, "parameters": members}

        if self.when is not None:
            document["when"] = self.when

        return document


def integer(
    low: int,
    high: int,
    *,
    step: int = 1,
    log: bool = False,
    when: str | None = None,
    default: Value = NO_DEFAULT,
    prior: Any = None,
) -> Declaration:
    """Return a parameter of whole numbers, both bounds included.

    Args:
        low: Least value.
        high: Greatest value.
        step: Distance of neighbouring values.
        log: Whether ratios of values are compared, not differences.
        when: Condition on other parameters, such as `"depth >= 4"`, without which it does not
            exist.
        default: Value where it is not searched.
        prior: Where the best value is expected: the value, or a pair of it and how sure this is
            (`low`, `medium`, `high`).

    Raises:
        SettingsError: A bound, the default, the prior or the condition is invalid.
    """
    return Declaration(Integer(low, high, step, log), when, default, _prior(prior))


def real(
    low: float,
    high: float,
    *,
    step: float | None = None,
    log: bool = False,
    when: str | None = None,
    default: Value = NO_DEFAULT,
    prior: Any = None,
) -> Declaration:
    """Return a parameter of numbers, both bounds included; arguments as of `integer`.

    Without a step, it takes all numbers between the bounds.
    """
    return Declaration(Real(low, high, log, step), when, default, _prior(prior))


def choice(
    options: Sequence[Value],
    *,
    ordered: bool = False,
    when: str | None = None,
    default: Value = NO_DEFAULT,
    prior: Any = None,
) -> Declaration:
    """Return a parameter with options.

    Args:
        options: Different JSON values: texts, numbers, true, null, lists, objects.
        ordered: Whether neighbouring options are similar, as `["small", "base", "large"]`.
        when: As of `integer`.
        default: As of `integer`.
        prior: As of `integer`.

    Raises:
        SettingsError: The options, the default, the prior or the condition are invalid.
    """
    checked = domains.options_of(options)
    return Declaration(Choice(checked, ordered), when, default, _prior(prior))


def ordinal(options: Sequence[Value], **settings: Any) -> Declaration:
    """Return a parameter with options whose order has a meaning; arguments as of `choice`."""
    return choice(options, ordered=True, **settings)


def constant(value: Value, *, when: str | None = None) -> Declaration:
    """Return a parameter of one value, which the training gets with the others."""
    return Declaration(Constant(value), when)


def group(parameters: Mapping[str, Any], *, when: str | None = None) -> Group:
    """Return parameters under one name, such as the settings of one optimiser.

    Args:
        parameters: The parameters by name. Their conditions may name each other.
        when: Condition without which the group does not exist.

    Raises:
        SettingsError: A name or the condition is invalid.
    """
    return Group(parameters, None, when)


def repeat(parameters: Mapping[str, Any], count: int | str, *, when: str | None = None) -> Group:
    """Return a group of parameters that is repeated, such as the settings of each stage of a network.

    Args:
        parameters: The parameters of one repetition by name. Their conditions may name each other:
            within a repetition, `op` is the `op` of the same repetition.
        count: Number of repetitions, or the name of the parameter that gives it.
        when: Condition without which no repetition exists.

    Raises:
        SettingsError: A name, the count or the condition is invalid.
    """
    return Group(parameters, count, when)


def declarations(parameters: Mapping[str, Any]) -> dict[str, Declaration | Group]:
    """Return parameters with checked names.

    A list stands for a choice of its values, and another plain value for a constant.

    Raises:
        SettingsError: A name is no identifier or a word of the conditions' grammar, a value is
            none of these, or there are no parameters.
    """
    if not isinstance(parameters, Mapping) or not parameters:
        raise SettingsError(f"parameters are given by name, got {brief(parameters)}")

    checked: dict[str, Declaration | Group] = {}
    for name, entry in parameters.items():
        check_name(name)
        if isinstance(entry, Declaration | Group):
            checked[name] = entry
        elif isinstance(entry, list | tuple):
            checked[name] = choice(entry)
        elif entry is None or isinstance(entry, str | bool) or is_number(entry):
            checked[name] = constant(entry)
        else:
            raise SettingsError(
                f"{name} is no parameter, got {brief(entry)}: "
                "write space.constant(...) or space.group(...)"
            )

    return checked


def check_name(name: Any) -> None:
    """Check that a text can name a parameter.

    Raises:
        SettingsError: It is no identifier of ASCII letters, digits and underscores, or a word of
            Python or of the conditions' grammar.
    """
    if not isinstance(name, str) or not name.isidentifier() or not name.isascii():
        raise SettingsError(f"the name of a parameter has letters, digits and _, got {brief(name)}")

    if name in RESERVED or keyword.iskeyword(name):
        raise SettingsError(f"{name!r} is a word of the language, and no name of a parameter")


def from_json(document: Mapping[str, Any]) -> Declaration | Group:
    """Return the parameter or the group of a JSON object.

    Raises:
        SettingsError: A field is missing, unknown or invalid.
    """
    fields = dict(document)
    when = fields.pop("when", None)
    if fields.get("kind") in ("group", "repeat"):
        members = {name: from_json(entry) for name, entry in fields["parameters"]}
        return Group(members, fields.get("count"), when)

    default = fields.pop("default", NO_DEFAULT)
    prior = fields.pop("prior", None)
    return Declaration(
        domains.from_json(fields), when, default, None if prior is None else Prior(**prior)
    )


def _prior(prior: Any) -> Prior | None:
    if prior is None or isinstance(prior, Prior):
        return prior

    is_pair = isinstance(prior, list | tuple) and len(prior) == 2 and prior[1] in CONFIDENCES
    return Prior(*prior) if is_pair else Prior(prior)

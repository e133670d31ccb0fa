"""Types of an agent's settings, checked by the annotations of its constructor.

A setting may come from a command line, a file or the record of a study. A value of another type
would fail far from here, deep in a surrogate, or not at all: a `kappa` that no acquisition of the
search reads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from inspect import Parameter, signature
from numbers import Integral, Real
from types import MappingProxyType
from typing import Any

from archive.errors import UsageError

Check = Callable[[Any], bool]

TYPES: Mapping[str, tuple[str, Check]] = MappingProxyType(
    {
        "bool": ("true or false", lambda value: isinstance(value, bool)),
        "int": ("a whole number", lambda value: _is_number(value, Integral)),
        "float": ("a number", lambda value: _is_number(value, Real) and not math.isnan(value)),
        "str": ("a text", lambda value: isinstance(value, str)),
        "None": ("none", lambda value: value is None),
    }
)
"""Name and check of each type that is checked, by its annotation; other annotations are left to the
constructor."""


def check(make: Callable[..., Any], title: str, settings: Mapping[str, Any]) -> None:
    """Check the types of settings.

    Args:
        make: The class of an agent.
        title: Its name in errors.
        settings: Settings by name; those without an annotation are not checked.

    Raises:
        UsageError: One has another type than its annotation.
    """
    annotations = _annotations(make)
    for name, value in settings.items():
        allowed = [part.strip() for part in annotations.get(name, "").split("|")]
        if all(part in TYPES for part in allowed) and not any(
            TYPES[part][1](value) for part in allowed
        ):
            words = " or ".join(TYPES[part][0] for part in allowed)
            raise UsageError(f"{name} of {title} must be {words}, got {value!r:.80}")


def _annotations(make: Callable[..., Any]) -> dict[str, str]:
    """Return the annotation of each setting as text: modules postpone the evaluation of theirs."""
    known: dict[str, Any] = {}
    for parameter in signature(make).parameters.values():
        if is_dataclass(parameter.default):
            known |= {field.name: field.type for field in fields(parameter.default)}
        elif parameter.annotation is not Parameter.empty:
            known[parameter.name] = parameter.annotation

    return {
        name: one.__name__ if isinstance(one, type) else str(one) for name, one in known.items()
    }


def _is_number(value: Any, kind: type) -> bool:
    """Return whether a value is a number of this kind; booleans are numbers to Python alone."""
    return isinstance(value, kind) and not isinstance(value, bool)

"""Objects that record the arguments of their constructor, so that they can be created again.

    class Mine(Recreatable):
        def __init__(self, space, alpha=0.5): ...

    arguments(Mine(space, alpha=1), "agent mine")     {"alpha": 1}

The arguments are recorded from the call, not read from attributes: a class may store them under any
name or not at all.

An argument whose default is a dataclass (`archive.agents.options`) is expanded to its fields: each
field is a setting by its own name, like the other arguments.
"""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, Self

import numpy as np

from archive.errors import UsageError

_KEPT = "_constructor_arguments"
"""Entry for the arguments in an object's `__dict__`, because frozen dataclasses refuse
assignments."""


class Recreatable:
    """A base class of objects that record the arguments of their constructor.

    A direct subclass must define `__init__`: `inspect.signature` reads the first `__init__` or
    `__new__` in the method resolution order, and would otherwise read the `__new__` of this class.
    Of a class with both it reads `__new__`.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Keep the arguments, with the defaults of those that are left out."""
        instance = super().__new__(cls)
        try:
            bound = inspect.signature(cls).bind(*args, **kwargs)
        except TypeError:
            # Copies and unpickled objects are created without arguments and get their state
            # afterwards. A wrong call fails in the constructor itself.
            return instance

        bound.apply_defaults()
        instance.__dict__[_KEPT] = {name: _plain(value) for name, value in bound.arguments.items()}
        return instance


def settings_of(maker: Callable[..., Any]) -> tuple[dict[str, Any], bool]:
    """Return the settings of a class with their defaults, and whether it takes further settings
    (`**kwargs`).

    The settings are in the order of the constructor.

    Args:
        maker: The class; its first argument, the space, is no setting.
    """
    defaults: dict[str, Any] = {}
    takes_others = False
    for parameter in _parameters(maker):
        if is_dataclass(parameter.default):
            defaults |= {
                field.name: getattr(parameter.default, field.name)
                for field in fields(parameter.default)
            }
        elif parameter.kind is parameter.VAR_KEYWORD:
            takes_others = True
        elif parameter.kind is not parameter.VAR_POSITIONAL:
            defaults[parameter.name] = parameter.default

    return defaults, takes_others


def keywords(maker: Callable[..., Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings as keyword arguments of a constructor: the fields of a dataclass are joined
    in one argument.
    """
    grouped = dict(settings)
    for parameter in _parameters(maker):
        if is_dataclass(parameter.default):
            own = {
                field.name: grouped.pop(field.name)
                for field in fields(parameter.default)
                if field.name in grouped
            }
            default: Any = parameter.default
            grouped[parameter.name] = replace(default, **own)

    return grouped


def record(instance: Recreatable, **arguments: Any) -> None:
    """Replace recorded arguments by their canonical form, for a constructor that accepts several
    forms.
    """
    instance.__dict__[_KEPT].update({name: _plain(value) for name, value in arguments.items()})


def arguments(instance: Recreatable, title: str) -> dict[str, Any]:
    """Return the recorded arguments by name as JSON values, without the first, with those of
    `**kwargs`.

    Args:
        instance: The object.
        title: Its name in errors.

    Raises:
        UsageError: An argument is no JSON value or was passed by position to `*args`, or the class
            has a `__new__` that does not pass its arguments on.
    """
    if _KEPT not in instance.__dict__:
        raise UsageError(
            f"{title} cannot be recorded: its __new__ must pass its arguments on to super().__new__"
        )

    recorded: dict[str, Any] = {}
    for parameter in _parameters(type(instance)):
        name = parameter.name
        value = _plain(instance.__dict__[_KEPT][name])
        if is_dataclass(parameter.default):
            recorded |= {
                field.name: _plain(getattr(value, field.name))
                for field in fields(parameter.default)
            }
        elif parameter.kind is parameter.VAR_KEYWORD:
            recorded |= value
        elif parameter.kind is not parameter.VAR_POSITIONAL:
            recorded[name] = value
        elif value:
            raise UsageError(
                f"{title} cannot be recorded: settings need names, got {value!r} by position"
            )

    for name, value in recorded.items():
        _check(title, name, value)

    return recorded


def _parameters(maker: Callable[..., Any]) -> Iterable[inspect.Parameter]:
    """Return the parameters of a constructor, without the first."""
    return [*inspect.signature(maker).parameters.values()][1:]


def _plain(value: Any) -> Any:
    """Convert tuples, arrays and paths to JSON values; lists and mappings are copied."""
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}

    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]

    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()

    return os.fspath(value) if isinstance(value, os.PathLike) else value


def _check(title: str, name: str, value: Any) -> None:
    try:
        json.dumps(value)
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"{title} cannot be recorded: its setting {name} must be a text, a number, true, "
            "false, none, or a list or "
            f"mapping of these, got {value!r}"
        ) from error

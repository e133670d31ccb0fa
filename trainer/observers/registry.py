"""Observers by name, with their options: `NAME[:key=value,…]`, as `--observe` takes them.

Another package adds an observer with an entry point of the group `archive.observers` that loads to
a subclass of `TrialObserver`. Only a command line names observers: no record of the database does.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

from archive.errors import SettingsError, UnknownNameError, UsageError
from archive.files import expanded
from archive.registry import Registry
from archive.trainer.observers.base import TrialObserver, has_login

registry = Registry(
    "observer",
    "archive.observers",
    {
        "mlflow": "archive.trainer.observers.mlflow:MlflowObserver",
        "tensorboard": "archive.trainer.observers.tensorboard:TensorBoardObserver",
        "wandb": "archive.trainer.observers.wandb:WandbObserver",
    },
)

_NEXT = re.compile(r",(?=\w+=)")
_TRUTHS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def names() -> tuple[str, ...]:
    """Return the sorted names of all observers, without loading any."""
    return registry.names()


def get(name: str) -> type[TrialObserver]:
    """Return the class of an observer.

    Raises:
        UnknownNameError: There is no observer of this name.
        SettingsError: Another package's entry point of this name is no observer.
    """
    return registry.load_class(name, TrialObserver)  # type: ignore[type-abstract]


def options(kind: type[TrialObserver]) -> dict[str, Any]:
    """Return the default of each option of an observer; None for an option without default."""
    defaults: dict[str, Any] = {}
    for name, parameter in _parameters(kind).items():
        defaults[name] = None if parameter.default is parameter.empty else parameter.default

    return defaults


def missing(kind: type[TrialObserver]) -> tuple[str, ...]:
    """Return the names of the modules that an observer needs and that are not installed."""
    absent: list[str] = []
    for name in kind.requires:
        if find_spec(name) is None:
            absent.append(name)

    return tuple(absent)


def create(text: str, home: Path) -> tuple[str, TrialObserver]:
    """Return the name and the observer of a text like `mlflow:uri=http://host,experiment=mine`.

    A comma separates options where a name and `=` follow; any other is part of a value.

    Args:
        text: Name and options.
        home: Folder of the trainer's files.

    Raises:
        UnknownNameError: There is no such observer or option.
        SettingsError: A package that the observer needs is not installed, or it cannot be loaded.
        UsageError: The value of an option cannot be used.
    """
    name, _, rest = text.partition(":")
    kind = get(name)
    values = _values(name, kind, rest)
    if absent := missing(kind):
        remedy = f": pip install 'nas-archive[{kind.extra}]'" if kind.extra else ""
        raise SettingsError(
            f"the observer {name} needs the package {', '.join(absent)}, "
            f"which is not installed{remedy}"
        )

    return name, registry.make(name, TrialObserver, home, **values)  # type: ignore[type-abstract]


def _values(name: str, kind: type[TrialObserver], text: str) -> dict[str, Any]:
    if has_login(text):
        # Not quoted: the message may reach a log.
        raise UsageError(
            f"an option of the observer {name} has an address with a login: put the login into the "
            "environment, where other users of the machine cannot see it"
        )

    parameters = _parameters(kind)
    values = dict[str, Any]()
    for pair in _NEXT.split(text) if text else []:
        key, separator, value = pair.partition("=")
        if not separator:
            raise UsageError(f"an option of the observer {name} must be key=value, got {pair!r}")

        if key not in parameters:
            raise UnknownNameError(
                f"option of the observer {name}", key, parameters, f"{name} has no options"
            )

        if key in values:
            raise UsageError(f"the option {key} of the observer {name} is given twice")

        values[key] = _convert(name, key, value, parameters[key].annotation)

    for key, parameter in parameters.items():
        if parameter.default is parameter.empty and key not in values:
            raise UsageError(
                f"the observer {name} needs the option {key}: --observe {name}:{key}=VALUE"
            )

    return values


def _parameters(kind: type[TrialObserver]) -> Mapping[str, inspect.Parameter]:
    parameters: dict[str, inspect.Parameter] = {}
    for name, parameter in list(inspect.signature(kind, eval_str=True).parameters.items())[1:]:
        if parameter.kind is not parameter.VAR_KEYWORD:
            parameters[name] = parameter

    return parameters


def _convert(observer: str, key: str, text: str, annotation: Any) -> Any:
    kind = annotation
    if get_origin(annotation) in (UnionType, Union):
        kind = next(member for member in get_args(annotation) if member is not NoneType)

    if kind is Path:
        return expanded(text).absolute()

    if kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            number = "a whole number" if kind is int else "a number"
            raise UsageError(
                f"the option {key} of the observer {observer} must be {number}, got {text!r}"
            ) from None

    if kind is bool:
        if text.lower() not in _TRUTHS:
            raise UsageError(
                f"the option {key} of the observer {observer} must be true or false, got {text!r}"
            )

        return _TRUTHS[text.lower()]

    return text

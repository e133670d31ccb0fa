"""Settings of agents: recorded arguments of constructors, shared settings, and checks of types.

    class Mine(Recreatable):
        def __init__(self, space, alpha=0.5): ...

    arguments(Mine(space, alpha=1), "agent mine")     {"alpha": 1}

The arguments are recorded from the call, not read from attributes: a class may store them under any
name or not at all.

Agents with a surrogate share settings, which are one argument of their constructors:

    class Mine(ModelBased):
        def __init__(self, space: Space, options: BatchOptions = BATCH, alpha: float = 1.0) -> None:
        ...

    agents.get("mine", space, kappa=2.0, alpha=0.5)        the same as Mine(space, BatchOptions(kappa=2.0), alpha=0.5)
    agents.settings("mine")                                {"preset": "default", …, "kappa": None, …, "alpha": 1.0}

An argument with a dataclass as its default is expanded to its fields: their names are the names of
the settings on the command line, in `agents.get` and in the record of a study.

Types are checked by the annotations of the constructor. A setting may come from a command line, a
file or the record of a study. A value of another type would fail deep in a surrogate, or not at
all: a `kappa` that no acquisition of the search reads.
"""

from __future__ import annotations

import inspect
import json
import math
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from inspect import Parameter, signature
from numbers import Integral, Real
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np

from archive.errors import UnknownNameError, UsageError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Preset = TypeVar("Preset", bound=DataclassInstance)

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
    """Return the settings of a class with defaults, and whether it takes `**kwargs`.

    The settings are in the order of the constructor.

    Args:
        maker: The class; its first argument, the space, is no setting.
    """
    defaults: dict[str, Any] = {}
    takes_others = False
    for parameter in _parameters(maker):
        if is_dataclass(parameter.default):
            for field in fields(parameter.default):
                defaults[field.name] = getattr(parameter.default, field.name)
        elif parameter.kind is parameter.VAR_KEYWORD:
            takes_others = True
        elif parameter.kind is not parameter.VAR_POSITIONAL:
            defaults[parameter.name] = parameter.default

    return defaults, takes_others


def keywords(maker: Callable[..., Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings as keyword arguments; fields of a dataclass join in one argument."""
    grouped = dict(settings)
    for parameter in _parameters(maker):
        if is_dataclass(parameter.default):
            group = {}
            for field in fields(parameter.default):
                if field.name in grouped:
                    group[field.name] = grouped.pop(field.name)

            default: Any = parameter.default
            grouped[parameter.name] = replace(default, **group)

    return grouped


def record(instance: Recreatable, **arguments: Any) -> None:
    """Replace recorded arguments by their canonical form."""
    instance.__dict__[_KEPT].update({name: _plain(value) for name, value in arguments.items()})


def arguments(instance: Recreatable, title: str) -> dict[str, Any]:
    """Return the recorded arguments by name as JSON values, without the first.

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
            for field in fields(parameter.default):
                recorded[field.name] = _plain(getattr(value, field.name))
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
        return {key: _plain(item) for key, item in value.items()}

    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]

    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()

    return os.fspath(value) if isinstance(value, os.PathLike) else value


def _check(title: str, name: str, value: Any) -> None:
    try:
        json.dumps(value)
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"{title} cannot be recorded: its setting {name} must be a text, a number, "
            f"true, false, none, or a list or mapping of these, got {value!r}"
        ) from error


@dataclass(frozen=True, kw_only=True)
class BayesOptOptions:
    """Settings of a search with a surrogate; None means the preset's value.

    Attributes:
        preset: `default` or `paper`; the agent's module defines both.
        n_initial: Number of evaluations of the space's initial pool before the first of the model.
        acquisition: `ei`, `pi`, `ucb`, `its`; or `ts`: joint samples among the best by UCB.
        kappa: Weight of the uncertainty in UCB.
        transform: A name of `archive.agents.surrogates.outcome_transforms`.
        candidates: A name of `archive.agents.acquisition.candidate_generators`.
    """

    preset: str = "default"
    n_initial: int = 10
    acquisition: str | None = None
    kappa: float | None = None
    transform: str | None = None
    candidates: str | None = None


@dataclass(frozen=True, kw_only=True)
class BatchOptions(BayesOptOptions):
    """Settings of a search with a surrogate and a choice of the batch rule.

    Attributes:
        batch_rule: A name of `archive.agents.acquisition.batch`.
    """

    batch_rule: str | None = None


SEQUENTIAL = BayesOptOptions()
BATCH = BatchOptions()
"""Defaults of constructors."""


def choose(presets: Mapping[str, Preset], options: BayesOptOptions, **others: Any) -> Preset:
    """Return the preset of the options, with its values replaced by the settings that are not None.

    Args:
        presets: Presets by name; their fields have the names of the settings.
        options: The shared settings.
        **others: Further settings of the agent.

    Raises:
        UnknownNameError: No preset has this name.
    """
    values = {**asdict(options), **others}
    preset = values.pop("preset")
    values.pop("n_initial")
    if preset not in presets:
        raise UnknownNameError("preset", preset, presets)

    return replace(
        presets[preset], **{name: value for name, value in values.items() if value is not None}
    )


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


def check_types(make: Callable[..., Any], title: str, settings: Mapping[str, Any]) -> None:
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
        parts = map(str.strip, annotations.get(name, "").split("|"))
        allowed = list(map(TYPES.get, parts))
        if None not in allowed and not any(check(value) for _, check in filter(None, allowed)):
            words = " or ".join(word for word, _ in filter(None, allowed))
            raise UsageError(f"{name} of {title} must be {words}, got {value!r:.80}")


def _annotations(make: Callable[..., Any]) -> dict[str, str]:
    """Return the annotation of each setting as text: modules postpone the evaluation of theirs."""
    annotations: dict[str, Any] = {}
    for parameter in signature(make).parameters.values():
        if is_dataclass(parameter.default):
            annotations |= {field.name: field.type for field in fields(parameter.default)}
        elif parameter.annotation is not Parameter.empty:
            annotations[parameter.name] = parameter.annotation

    for name, annotation in annotations.items():
        annotations[name] = annotation.__name__ if isinstance(annotation, type) else str(annotation)

    return annotations


def _is_number(value: Any, kind: type) -> bool:
    """Return whether a value is a number of this kind; booleans are numbers to Python alone."""
    return isinstance(value, kind) and not isinstance(value, bool)

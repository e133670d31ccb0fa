"""Modules of configurations: a user's function, called with the parameters that it names.

def build(depth, width, **others): ...     each parameter by its name
def build(parameters): ...                 all of them as one dictionary
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any

from torch import nn

from archive.errors import UsageError
from archive.trainer.intake.reads import Reads, RecordedParameters

_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def build(
    function: Callable[..., Any], parameters: Mapping[str, Any], reads: Reads | None = None
) -> nn.Module:
    """Return the module of a configuration.

    Args:
        function: The user's function.
        parameters: The configuration as a tree (`archive.parameters.nesting`).
        reads: Receives the names of the parameters that the function reads, or that its signature
            names; None records none.

    Raises:
        UsageError: The function needs a parameter that the configuration lacks, or returns no
            module. Its own errors pass.
    """
    taken = taken_names(function, parameters)
    if taken is None:
        module = function(
            dict(parameters) if reads is None else RecordedParameters(parameters, reads)
        )
    else:
        _check_complete(function, taken)
        if reads is not None:
            reads.names |= set(taken)
            reads.whole = reads.whole or _takes_all(function)

        module = function(**{name: parameters[name] for name in taken})

    if not isinstance(module, nn.Module):
        raise UsageError(
            f"the model {_name_of(function)} must return a torch.nn.Module, got "
            f"{type(module).__name__}"
        )

    return module


def taken_names(function: Callable[..., Any], names: Collection[str]) -> list[str] | None:
    """Return the parameters that a function takes by name; None if it takes all as one argument.

    Args:
        function: The function.
        names: Names of the parameters.
    """
    arguments = list(inspect.signature(function).parameters.values())
    if _takes_all(function):
        return list(names)

    if len(arguments) == 1 and arguments[0].name not in names:
        return None

    taken = []
    for argument in arguments:
        if argument.kind in _BY_NAME and argument.name in names:
            taken.append(argument.name)

    return taken


def _takes_all(function: Callable[..., Any]) -> bool:
    """Return whether a function takes any keyword argument."""
    for argument in inspect.signature(function).parameters.values():
        if argument.kind is inspect.Parameter.VAR_KEYWORD:
            return True

    return False


def _check_complete(function: Callable[..., Any], names: Collection[str]) -> None:
    """Raise where a function needs another argument than these."""
    for argument in inspect.signature(function).parameters.values():
        needed = argument.kind in _BY_NAME and argument.default is inspect.Parameter.empty
        if needed and argument.name not in names:
            raise UsageError(
                f"the model {_name_of(function)} needs {argument.name}, which is no parameter of "
                "this configuration: give it a default"
            )


def _name_of(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", type(function).__name__)

"""Architectures of Optuna's trials, read from an attribute, from the parameters, or by a user's
function.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any

from archive.architecture.graph import Architecture
from archive.architecture.texts import from_text
from archive.errors import ArchiveError, UsageError

if TYPE_CHECKING:
    from archive.exchange.importers.optuna.study import Read
    from archive.spaces.base import Space

ATTRIBUTE = "architecture"
"""User attribute of a trial for its network: JSON, a NAS-Bench-201 string or a genotype."""

Choose = Callable[[Mapping[str, Any]], tuple[Architecture, Mapping[str, Any]]]
"""Function from the parameters of a trial to its architecture and the remaining parameters."""


def reader(space: Space, otherwise: Choose) -> Read:
    """Return a function that reads the architecture of a trial, which must be a member of the
    space.

    Args:
        space: The space.
        otherwise: Reader of trials without the attribute; with it, all parameters are
            hyperparameters.
    """

    def read(
        parameters: Mapping[str, Any], attributes: Mapping[str, Any]
    ) -> tuple[Architecture, Mapping[str, Any]]:
        text = attributes.get(ATTRIBUTE)
        network, rest = (
            (from_text(text), parameters) if isinstance(text, str) else otherwise(parameters)
        )
        space.validate(network)
        return network, rest

    return read


def by_function(function: Callable[[Mapping[str, Any]], Any]) -> Choose:
    """Return a reader of trials that calls a user's function with all parameters.

    Args:
        function: Function that returns an architecture, or its text.
    """

    def choose(parameters: Mapping[str, Any]) -> tuple[Architecture, Mapping[str, Any]]:
        try:
            # Standard output is for the command's own document.
            with redirect_stdout(sys.stderr):
                made = function(dict(parameters))
        except ArchiveError:
            raise
        except Exception as error:
            first = next(iter(str(error).splitlines()), "")
            raise UsageError(f"its function raised {type(error).__name__}: {first:.200}") from error

        if isinstance(made, str):
            made = from_text(made)

        if not isinstance(made, Architecture):
            raise UsageError(
                f"its function must return an Architecture or its text, got {type(made).__name__}"
            )

        return made, {}

    return choose

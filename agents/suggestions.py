"""Check of an agent's suggestions by the contract of `Agent.propose`.

Agents of other packages meet their mistakes here, and not in the archive: a network of another space would become a
result of the study.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from archive.agents.base import Agent, Suggestion
from archive.architecture.graph import Architecture
from archive.errors import InvalidArchitectureError, UsageError

if TYPE_CHECKING:
    from archive.spaces.base import Space

_PREDICTION = ("acquisition", "mean", "std")


def checked(agent: Agent, suggestions: Any) -> list[Suggestion]:
    """Return the suggestions of an agent as a list.

    Raises:
        UsageError: They are no list of `Suggestion`, one is no member of the space, or a prediction is no number.
    """
    if not isinstance(suggestions, list | tuple):
        raise UsageError(f"{_named(agent)} must propose a list of Suggestion, got {type(suggestions).__name__}")
    for one in suggestions:
        if not isinstance(one, Suggestion):
            raise UsageError(f"{_named(agent)} must propose a list of Suggestion, got {type(one).__name__} in it")
        _check_network(agent, agent.space, one.architecture)
        for name in _PREDICTION:
            _check_number(agent, name, getattr(one, name))
    return list(suggestions)


def _check_network(agent: Agent, space: Space, network: Any) -> None:
    if not isinstance(network, Architecture):
        raise UsageError(f"{_named(agent)} must suggest an Architecture, got {type(network).__name__}")
    try:
        space.validate(network)
    except InvalidArchitectureError as error:
        raise UsageError(f"{_named(agent)} suggests a network outside the space {space.name}: {error}") from error


def _check_number(agent: Agent, name: str, value: Any) -> None:
    try:
        float(0 if value is None else value)
    except (TypeError, ValueError):
        raise UsageError(f"the {name} of a suggestion of {_named(agent)} must be a number, got {value!r}") from None


def _named(agent: Agent) -> str:
    return f"agent {getattr(agent, 'kind', type(agent).__name__)}"

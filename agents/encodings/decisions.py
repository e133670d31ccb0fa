"""The decisions that agents search over, and networks of named choices: see `archive.spaces.decisions`."""

from __future__ import annotations

from collections.abc import Mapping

from archive.architecture.graph import Architecture
from archive.errors import UsageError
from archive.spaces.base import Space
from archive.spaces.decisions import ABSENT, Decision, Decisions, Vector

__all__ = ["ABSENT", "Decision", "Decisions", "Vector", "decisions_of", "from_choices"]


def decisions_of(space: Space, agent: str) -> Decisions:
    """Return the decisions of a space.

    Args:
        space: The space, or a table of it.
        agent: Name of the agent that needs them, for the message.

    Raises:
        UsageError: The space has none.
    """
    found = space.decisions()
    if found is None:
        raise UsageError(
            f"agent {agent} needs networks made of decisions, which space {space.name} does not offer "
            "(its method decisions() returns none)"
        )
    return found


def from_choices(decisions: Decisions, named: Mapping[str, object]) -> tuple[Architecture, dict[str, object]]:
    """Return the network that named choices make, and what is named beside them.

    Raises:
        UsageError: A choice is missing, is none of the decision's, or they make no network.
    """
    made: list[int] = []
    for decision in decisions.decisions:
        if not decisions.needed(made):
            made.append(ABSENT)
            continue
        if named.get(decision.name) not in decision.choices:
            known = ", ".join(decision.choices[:8]) + (", …" if len(decision.choices) > 8 else "")
            raise UsageError(f"{decision.name!r} must be one of {known}, got {named.get(decision.name)!r}")
        made.append(decision.choices.index(str(named[decision.name])))
    network = decisions.decode(tuple(made))
    if network is None:
        raise UsageError(f"the choices make no network of the space {decisions.space.name}")
    own = {decision.name for decision in decisions.decisions}
    return network, {name: value for name, value in named.items() if name not in own}

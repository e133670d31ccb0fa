"""Decisions of a space for the agents that search over them, and networks by named choices
(`archive.spaces`).
"""

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
        agent: Name of the agent, for the error message.

    Raises:
        UsageError: The space has no decisions.
    """
    decisions = space.decisions()
    if decisions is None:
        raise UsageError(
            f"agent {agent} needs networks made of decisions, which space {space.name} does not "
            "offer "
            "(its method decisions() returns none)"
        )

    return decisions


def from_choices(
    decisions: Decisions, named: Mapping[str, object]
) -> tuple[Architecture, dict[str, object]]:
    """Return the network of named choices, and the other named values.

    Raises:
        UsageError: A choice is missing or invalid, or the choices define no network of the space.
    """
    vector: list[int] = []
    for decision in decisions.decisions:
        if not decisions.needed(vector):
            vector.append(ABSENT)
            continue

        if named.get(decision.name) not in decision.choices:
            known = ", ".join(decision.choices[:8]) + (", …" if len(decision.choices) > 8 else "")
            raise UsageError(
                f"{decision.name!r} must be one of {known}, got {named.get(decision.name)!r}"
            )

        vector.append(decision.choices.index(str(named[decision.name])))

    network = decisions.decode(tuple(vector))
    if network is None:
        raise UsageError(f"the choices make no network of the space {decisions.space.name}")

    own = {decision.name for decision in decisions.decisions}
    return network, {name: value for name, value in named.items() if name not in own}

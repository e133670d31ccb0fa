"""Contestants of a comparison: an agent with settings, or several agents that take turns on one
study.

tw                                  an agent with its defaults
tw:preset=paper,n_initial=5         with settings
tw+bananas:kappa=1.0+local-search   a team: one study, all its evaluations in the history of each agent
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from archive.agents.base import Agent
from archive.agents.registry import ConfiguredAgent, configured
from archive.spaces.base import Space

PEERS = {"optuna-tpe": "tpe", "optuna-gp": "gp-optuna"}
"""Aliases of agents: the names of their libraries."""


@dataclass(frozen=True)
class Contestant:
    """One or several agents that search a study.

    Attributes:
        name: The requested name, with the settings.
        members: One agent, or those of a team, in the order of their turns.
    """

    name: str
    members: tuple[ConfiguredAgent, ...]

    @property
    def kind(self) -> str:
        """Names of the agents in the registry, joined with a plus."""
        return "+".join(member.kind for member in self.members)

    @property
    def is_team(self) -> bool:
        """Whether there are several agents."""
        return len(self.members) > 1

    def agents(self, space: Space) -> tuple[Agent, ...]:
        """Return the agents, to search a space."""
        return tuple(member.make(space) for member in self.members)


def contestant(text: str) -> Contestant:
    """Return the contestant that a text `AGENT`, `AGENT:NAME=VALUE,NAME=VALUE` or `AGENT+AGENT`
    names.

    A value that is not JSON is a string. Equal settings in another order are the same contestant.

    Raises:
        UsageError: A setting is not written `NAME=VALUE`.
        UnknownNameError: There is no such agent.
    """
    # A plus between two agents is followed by a name; others belong to a value, such as 1e+3.
    names, members = zip(*map(_member, re.split(r"\+(?=[a-z])", text)), strict=True)
    return Contestant("+".join(names), members)


def _member(text: str) -> tuple[str, ConfiguredAgent]:
    name, separator, rest = text.partition(":")
    agent = configured(PEERS.get(name, name) + separator + rest)
    return agent.name.replace(agent.kind, name, 1), agent

"""Metadata of agents, for the choice of one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class AgentInfo:
    """Metadata of an agent, for the choice of one; `archive agents` shows it. n is the number of
    observations.

    Attributes:
        summary: Method.
        preset: Differences of the published method (`preset=paper`) from the default; empty without
            presets.
        paper: Source of the method.
        cost: Cost of a proposal.
        when: Use case.
        transfers: Whether it learns from warm-start studies of other tasks.
        spaces: Names of the spaces that it searches; empty for an agent of all spaces.
    """

    summary: str
    preset: str = ""
    paper: str = ""
    cost: str = ""
    when: str = ""
    transfers: bool = False
    spaces: tuple[str, ...] = ()

"""Studies for a search: created or resumed with budget and sources, and checked for their agent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from archive.agents.registry import default_agent, registry
from archive.architecture.layer import BESIDE
from archive.errors import ArchiveError, StudyConflictError, UsageError

if TYPE_CHECKING:
    from archive.agents.base import Agent
    from archive.api import Archive
    from archive.spaces.base import Space
    from archive.store.records import Study


ZOO = "zoo"
"""Published results in a list of sources."""

BUDGET = 20
"""Default budget of a new study, in evaluations."""


def open_study(
    archive: Archive,
    requested: Study,
    *,
    budget: int | None = None,
    seed: int | None = None,
    sources: Sequence[str] | Literal["all"] = (),
    agent: Agent | None = None,
    space: Space | None = None,
    notify: Callable[[str], None] | None = None,
) -> Study:
    """Return the stored study, created if there is none of its name.

    Args:
        archive: The archive of the study.
        requested: Name, task, protocol, space, objective and direction; the rest applies to a new
            study only.
        budget: Total number of evaluations, never set below those that an existing study has; None
            keeps its budget.
        seed: Seed; None keeps the seed of an existing study.
        sources: Studies to start warm from, or `"all"` eligible ones: see
            `archive.agents.transfer.eligibility`. `"zoo"` stands for published results
            (`archive.agents.transfer.zoo_source`), unless a study has this name.
        agent: The agent of the search, where it is chosen already: sources that it cannot use are
            refused.
        space: The space as the caller has it, who knows the place of its model; None for the space
            of the agent, or else of the record.
        notify: Called with a message before a slow step.

    Raises:
        StudyConflictError: It exists with another task, protocol, space, objectives, direction,
            seed or rungs; without requested rungs the study's apply.
        UnknownNameError: A source does not exist. Nothing is stored then.
        UsageError: The name of a new study is invalid, the budget is below 1, a source is the study
            itself or not eligible, or the agent searches for one of several objectives.
    """
    if budget is not None and budget < 1:
        raise UsageError(f"the budget must be at least 1 evaluation, got {budget}")

    if sources != "all" and requested.name in sources:
        # Checked before the look-up, which would report a study that does not exist yet as an
        # unknown name.
        raise UsageError(f"the study {requested.name!r} cannot start warm from itself")

    # Imported here because it loads numpy, which listing the names of agents does not need.
    from archive.store.studies.creation import check_new_name, check_same

    # First, because the agent and the sources would be checked for a study that is not the stored
    # one.
    if requested.name in archive.studies.names():
        check_same(requested, archive.studies.get(requested.name))
    else:
        check_new_name(requested.name)

    if agent is not None:
        check_agent(agent, requested)

    names: list[str] = []
    if sources:
        from archive.agents.transfer.eligibility import check_sources

        studies, from_zoo = _split_zoo(archive, sources)
        names = check_sources(archive, requested, studies, agent)
        if from_zoo:
            from archive.agents.transfer.zoo_source import zoo_source

            names.append(zoo_source(archive, requested, agent, space, notify))

    stored = archive.studies.create(replace(requested, budget=budget or BUDGET, seed=seed or 0))
    _check_rungs(requested, stored)
    if seed is not None and seed != stored.seed:
        raise StudyConflictError(
            f"study {stored.name!r} exists with seed {stored.seed}, got {seed}: "
            "choose another name for the study"
        )

    if budget is not None and budget != stored.budget:
        stored = replace(stored, budget=set_budget(archive, stored.name, budget))

    if names:
        archive.studies.warm_start(stored.name, names)

    return stored


def _split_zoo(
    archive: Archive, sources: Sequence[str] | Literal["all"]
) -> tuple[Sequence[str] | Literal["all"], bool]:
    """Return the sources that are studies, and whether published results are one, too."""
    if sources == "all" or ZOO not in sources or archive.studies.find(ZOO) is not None:
        return sources, False

    return [name for name in sources if name != ZOO], True


def set_budget(archive: Archive, name: str, budget: int) -> int:
    """Set and return the budget of a study, at least the number of its evaluations.

    Raises:
        UnknownNameError: There is no study of this name.
    """
    counts = archive.studies.counts(name)
    total = max(budget, sum(count for state, count in counts.items() if state.evaluated))
    archive.studies.set_budget(name, total)
    return total


def _check_rungs(study: Study, stored: Study) -> None:
    if study.config.get("rungs") is None:
        return

    from archive.rungs import Rungs

    requested = Rungs.of(study.config)
    existing = Rungs.of(stored.config)
    if requested is not None and requested != existing:
        has = "no rungs" if existing is None else f"rungs at {existing.describe()}"
        raise StudyConflictError(
            f"study {stored.name!r} exists with {has}, got {requested.describe()}: choose "
            "another name for the study"
        )


def agent_of(study: Study) -> str:
    """Return the name of the agent that began a study; of an imported one, the default agent."""
    agent = study.config.get("agent")
    if isinstance(agent, str):
        return agent

    several = bool(study.further) or BESIDE in study.space_config
    return default_agent(study.space, several=several)


def check_agent(agent: Agent, study: Study) -> None:
    """Check that an agent searches for all objectives of a study.

    Raises:
        UsageError: The study has several objectives, and the agent searches for one.
    """
    if study.further and not agent.several_objectives:
        names = ", ".join(objective.name for objective in study.objectives)
        raise UsageError(
            f"the agent {agent.kind} searches for one objective, and the study {study.name!r} "
            f"has several, {names}: choose one of {', '.join(capable())}"
        )


def capable() -> list[str]:
    """Return the names of the agents that search for several objectives."""
    return list(filter(_is_capable, registry.names()))


def _is_capable(name: str) -> bool:
    try:
        return bool(getattr(registry.load(name), "several_objectives", False))
    except ArchiveError:
        # Another package's agent that cannot be loaded.
        return False

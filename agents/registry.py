"""The registry of agents, by name: built-in and of other packages."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from archive.errors import UnknownNameError, UsageError
from archive.registry import Registry
from archive.values import assignments

if TYPE_CHECKING:
    from archive.agents.base import Agent
    from archive.spaces.base import Space


@dataclass(frozen=True, kw_only=True)
class AgentInfo:
    """Metadata of an agent, for the choice of one: `archive agents`.

    n is the number of observations.

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


# Names, not classes: the command line lists the agents without loading their numerics.
registry = Registry(
    "agent",
    "archive.agents",
    {
        "arc": "archive.agents.bayesopt.arc:Arc",
        "bananas": "archive.agents.bayesopt.bananas:Bananas",
        "bfs": "archive.agents.baselines.breadth_first:BreadthFirst",
        "block-additive": "archive.agents.additive.search:BlockAdditive",
        "evolution": "archive.agents.baselines.evolution:Evolution",
        "gp": "archive.agents.bayesopt.gaussian_process:KernelSearch",
        "gp-adjacency": "archive.agents.bayesopt.gaussian_process:GpAdjacency",
        "gp-gromov-wasserstein": "archive.agents.bayesopt.gaussian_process:GpGromovWasserstein",
        "gp-hamming": "archive.agents.bayesopt.gaussian_process:GpHamming",
        "gp-optuna": "archive.agents.baselines.optuna_samplers:GpOptuna",
        "gp-path": "archive.agents.bayesopt.gaussian_process:GpPath",
        "gp-wasserstein": "archive.agents.bayesopt.gaussian_process:GpWasserstein",
        "gp-wl": "archive.agents.bayesopt.gaussian_process:GpWeisfeilerLehman",
        "hill-climbing": "archive.agents.baselines.hill_climbing:HillClimbing",
        "local-search": "archive.agents.baselines.local_search:LocalSearch",
        "morphism": "archive.agents.bayesopt.morphism:Morphism",
        "nasbot": "archive.agents.bayesopt.nasbot:Nasbot",
        "nsga2": "archive.agents.baselines.nsga2:Nsga2",
        "portfolio": "archive.agents.bayesopt.portfolio:Portfolio",
        "rand": "archive.agents.baselines.random_search:Rand",
        "random": "archive.agents.baselines.random_search:RandomSearch",
        "random-forest": "archive.agents.bayesopt.random_forest:RandomForestSearch",
        "regularized-evolution": "archive.agents.baselines.regularized_evolution:RegularizedEvolution",
        "reinforce": "archive.agents.baselines.reinforce:Reinforce",
        "smac": "archive.agents.baselines.smac_search:Smac",
        "source-best": "archive.agents.baselines.source_best:SourceBest",
        "tpe": "archive.agents.baselines.optuna_samplers:Tpe",
        "treebo": "archive.agents.baselines.treebo:TreeBO",
        "tw": "archive.agents.bayesopt.tree_wasserstein:TreeWassersteinSearch",
        "tw-kdpp": "archive.agents.bayesopt.tree_wasserstein:TreeWassersteinKdpp",
    },
)


DEFAULT = "nasbot"
DEFAULT_OF_VALUES = "portfolio"
"""Default agents: of networks, and of parameters or several objectives."""


def default_agent(space: str, *, several: bool = False) -> str:
    """Return the name of the default agent.

    Args:
        space: Name of the space.
        several: Whether it searches for several objectives, or beside networks.
    """
    return DEFAULT_OF_VALUES if several or space == "parameters" else DEFAULT


@dataclass(frozen=True)
class ConfiguredAgent:
    """An agent with the settings that differ from its defaults.

    Attributes:
        kind: Name in the registry.
        settings: By name.
    """

    kind: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """`KIND`, or `KIND:NAME=VALUE,NAME=VALUE` in the order of the names."""
        shown = (f"{setting}={_show(self.settings[setting])}" for setting in sorted(self.settings))
        return f"{self.kind}:{','.join(shown)}" if self.settings else self.kind

    def make(self, space: Space) -> Agent:
        """Return the agent, to search a space; see `get` for the errors."""
        return get(self.kind, space, **self.settings)


def configured(text: str) -> ConfiguredAgent:
    """Return the agent that a text `AGENT` or `AGENT:NAME=VALUE,NAME=VALUE` names.

    A value that is not JSON is a string. Equal settings in another order are the same agent.

    Raises:
        UsageError: A setting is not written `NAME=VALUE`.
        UnknownNameError: There is no such agent.
    """
    kind, _, rest = text.partition(":")
    # A comma between two settings is followed by a name and an equals sign; others belong to a
    # value.
    values = assignments(re.split(r",(?=\w+=)", rest), "a setting of an agent") if rest else {}
    settings(kind)
    return ConfiguredAgent(kind, values)


def names() -> tuple[str, ...]:
    """Return the names of all agents, also of other packages."""
    return registry.names()


def settings(name: str) -> dict[str, Any]:
    """Return an agent's settings with their defaults.

    Raises:
        UnknownNameError: There is no such agent.
    """
    from archive.agents.constructor_arguments import settings_of

    return settings_of(registry.maker(name))[0]


def get(name: str, space: Space, **config: Any) -> Agent:
    """Return an agent.

    Args:
        name: Its name.
        space: The space to search.
        **config: Its settings, by name; the others have the agent's defaults.

    Raises:
        UnknownNameError: No agent, or no setting of the agent, has this name.
        UsageError: A setting has an invalid value, the space has no networks to draw, or it has
            parameters, of which the agent knows nothing.
        SettingsError: Another package's agent cannot be loaded or made.
    """
    from archive.agents.base import Agent
    from archive.agents.constructor_arguments import check_types, keywords, settings_of
    from archive.architecture.parameter_operations import PARAMETERS
    from archive.spaces.joint import joint_space_of

    if not space.searchable:
        raise UsageError(
            f"no agent searches the space {space.name}: its networks are imported, not drawn"
        )

    make = registry.maker(name)
    if joint_space_of(space) is not None:
        fault = "searches networks alone, without parameters beside them"
        _check_capable(name, make, "joint", fault)

    if space.name == PARAMETERS.name and isinstance(make, type):
        fault = "compares networks as graphs, and does not know the values of parameters"
        _check_capable(name, make, "knows_values", fault)

    defaults, takes_others = settings_of(make)
    for setting in config:
        if setting not in defaults and not takes_others:
            raise UnknownNameError(
                f"setting of agent {name}", setting, defaults, f"agent {name} has no settings"
            )

    check_types(make, f"agent {name}", config)
    try:
        return registry.make(name, Agent, space, **keywords(make, config))  # type: ignore[type-abstract]
    except TypeError as error:
        # A value of a type that no annotation tells, as of an agent of another package, ends here.
        if not config:
            raise

        shown = ", ".join(f"{setting}={value!r}" for setting, value in config.items())
        raise UsageError(f"agent {name} cannot be made with {shown}: {error}") from error


def _check_capable(name: str, make: Any, attribute: str, fault: str) -> None:
    """Refuse an agent whose class lacks a capability, with the names of those that have it."""
    if _has(make, attribute):
        return

    capable = [other for other in registry.built_in if _has(registry.load(other), attribute)]
    raise UsageError(f"the agent {name} {fault}: choose one of {', '.join(capable)}")


def _has(make: Any, attribute: str) -> bool:
    from archive.agents.base import Agent

    return isinstance(make, type) and issubclass(make, Agent) and bool(getattr(make, attribute))


def _show(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)

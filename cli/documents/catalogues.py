"""Documents of `archive agents|tasks|protocols|spaces|observers|kernels` and `archive query`."""

from __future__ import annotations

from typing import Any, Literal

from archive.cli.documents.base import Document, JsonObject


class AgentItem(JsonObject):
    """A search agent; texts are empty where its author gave none.

    Attributes:
        agent: Its name.
        summary: Its method.
        preset: Differences of the published method, `preset=paper`; empty where there is no preset.
        paper: Source of the method.
        cost: Cost of a proposal.
        when: Use case.
        transfers: Whether it learns from studies of other tasks.
        spaces: Names of the only spaces that it searches; empty where it is bound to none.
    """

    agent: str
    summary: str
    preset: str
    paper: str
    cost: str
    when: str
    transfers: bool
    spaces: list[str]


class AgentList(Document):
    """The search agents.

    Attributes:
        agents: By name.
    """

    agents: list[AgentItem]


class AgentDocument(Document, AgentItem):
    """One search agent.

    Attributes:
        settings: Default of each setting.
    """

    settings: dict[str, Any]


class QueryDocument(Document):
    """The answer to a query.

    Attributes:
        columns: Their names.
        rows: A value for each column.
        truncated: Whether rows were left out.
    """

    columns: list[str]
    rows: list[dict[str, Any]]
    truncated: bool


class ParameterItem(JsonObject):
    """A parameter of a saved query.

    Attributes:
        name: Its name.
        help: Its meaning.
        needed: Whether it must be given.
        default: Its value otherwise.
        type: Type of its values in words; null for any.
    """

    name: str
    help: str
    needed: bool
    default: Any
    type: str | None


class SavedQueryItem(JsonObject):
    """A saved query.

    Attributes:
        name: Its name.
        summary: Its question.
        parameters: Its parameters.
    """

    name: str
    summary: str
    parameters: list[ParameterItem]


class SavedQueryList(Document):
    """The saved queries.

    Attributes:
        queries: By name.
    """

    queries: list[SavedQueryItem]


class SavedQueryText(Document):
    """The text of a saved query.

    Attributes:
        name: Its name.
        cypher: Its text.
    """

    name: str
    cypher: str


class TaskItem(JsonObject):
    """A task.

    Attributes:
        task: Its name.
        summary: The data set.
        metric: Name of the metric.
        objective: Name of the metric that is optimised.
        direction: Whether larger or smaller values are better.
        spaces: Names of its search spaces, the default first.
        protocols: Names of its protocols, the default first.
    """

    task: str
    summary: str
    metric: str
    objective: str
    direction: Literal["maximise", "minimise"]
    spaces: list[str]
    protocols: list[str]


class TaskList(Document):
    """The tasks.

    Attributes:
        tasks: By name.
    """

    tasks: list[TaskItem]


class ProtocolList(Document):
    """The protocols of a task, or of all.

    Attributes:
        protocols: One object a protocol: its task, its name as `protocol`, and every choice that it
            makes, as it is recorded with a study.
    """

    protocols: list[dict[str, Any]]


class RecipeItem(JsonObject):
    """A recipe.

    Attributes:
        recipe: Its name.
        origin: `built-in`, the package with its version, or `recipes.toml`.
        target: Module and function, or file and function.
    """

    recipe: str
    origin: str
    target: str


class RecipeList(Document):
    """The recipes of this machine.

    Attributes:
        recipes: By name.
    """

    recipes: list[RecipeItem]


class SpaceItem(JsonObject):
    """A search space.

    Attributes:
        space: Its name.
        summary: Its networks.
        cells: Whether these are cells.
        operations: Operations of their layers.
        settings: Default of each setting.
    """

    space: str
    summary: str
    cells: bool
    operations: list[str]
    settings: dict[str, Any]


class SpaceList(Document):
    """The search spaces.

    Attributes:
        spaces: By name.
    """

    spaces: list[SpaceItem]


class ObserverItem(JsonObject):
    """An observer, to which trainers report their trials.

    Attributes:
        observer: Its name.
        summary: What it writes.
        options: Default of each option; null where there is none.
        missing: Packages that it needs and that are not installed.
        extra: Extra of `nas-archive` that installs them, if one does.
    """

    observer: str
    summary: str
    options: dict[str, str | None]
    missing: list[str]
    extra: str | None


class ObserverList(Document):
    """The observers.

    Attributes:
        observers: By name.
    """

    observers: list[ObserverItem]


class KernelItem(JsonObject):
    """A kernel.

    Attributes:
        kernel: Its name.
        summary: The distance that it measures.
        components: Components of the distance.
        settings: Default of each setting.
    """

    kernel: str
    summary: str
    components: list[str]
    settings: dict[str, Any]


class KernelList(Document):
    """The kernels.

    Attributes:
        kernels: By name.
    """

    kernels: list[KernelItem]

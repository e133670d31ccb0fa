"""Documents of `archive bench objectives`."""

from __future__ import annotations

from archive.cli.documents.base import Document, JsonObject


class FrontItem(JsonObject):
    """Hypervolumes of one agent.

    Attributes:
        agent: The agent, with its settings.
        shares: Number of evaluations to the share of the table's hypervolume of each search, in [0,
            1].
        seconds: Processor time of a search, mean over the seeds.
    """

    agent: str
    shares: dict[str, list[float]]
    seconds: float


class FrontComparisonDocument(Document):
    """Searches of a table for several objectives; with --cost.

    Attributes:
        task: Name of the task.
        costs: The objectives beside the task's, to minimise.
        seeds: Number of searches for each agent.
        budget: Evaluations of a search.
        networks: Networks of the table that have all objectives.
        front: How many of them are on the Pareto front.
        rows: One for each agent.
    """

    task: str
    costs: list[str]
    seeds: int
    budget: int
    networks: int
    front: int
    rows: list[FrontItem]


class FeasibleItem(JsonObject):
    """Searches of one agent under constraints.

    Attributes:
        agent: The agent, with its settings.
        budget: Evaluations of a search that does not find the best network.
        queries: Evaluations until the best network, of each search; null where it was not found.
        median: Their median, where a search that found nothing counts as the budget.
        infeasible: Results that did not meet the constraints, mean over the searches.
        seconds: Processor time of a search, mean over the seeds.
    """

    agent: str
    budget: int
    queries: list[int | None]
    median: float
    infeasible: float
    seconds: float


class FeasibleComparisonDocument(Document):
    """Searches of a table under constraints; with --constraint.

    Attributes:
        task: Name of the task.
        constraints: The constraints, with their bounds.
        measured: Costs that agents learn from the results.
        seeds: Number of searches for each agent.
        budget: Evaluations of a search.
        networks: Networks of the table.
        feasible: How many of them meet the constraints.
        rows: One for each agent.
    """

    task: str
    constraints: list[str]
    measured: list[str]
    seeds: int
    budget: int
    networks: int
    feasible: int
    rows: list[FeasibleItem]

"""Documents of `archive bench`.

Shapes are declared apart from the records that fill them: a renamed field of a record must not
change the output.
"""

from __future__ import annotations

from archive.cli.documents.base import Document, JsonObject


class FigureItem(JsonObject):
    """One measured number.

    Attributes:
        name: The measured quantity.
        value: The number.
        unit: Its unit.
    """

    name: str
    value: float
    unit: str


class MachineFigures(Document):
    """Speed of a machine.

    Attributes:
        figures: The measured numbers.
    """

    figures: list[FigureItem]


class RegretItem(JsonObject):
    """Regret after a number of queries.

    Attributes:
        mean: Mean over the seeds.
        error: Standard error of the mean.
    """

    mean: float
    error: float | None


class ShareItem(JsonObject):
    """The share of one agent of a team.

    Attributes:
        agent: Its id.
        evaluations: Networks that it proposed.
        improvements: How often it found a new best network.
        on_others: How often it improved on another agent's best.
        bests: Studies in which it found the best network.
        known: Results of other agents that it knew, in the mean.
    """

    agent: str
    evaluations: int
    improvements: int
    on_others: int
    bests: int
    known: float


class StandingItem(JsonObject):
    """How one agent searched one task.

    Attributes:
        agent: The agent, with its settings.
        task: The task.
        protocol: How it was measured.
        unit: Unit of the regret.
        seeds: Number of searches.
        regret: By number of queries.
        test: Test accuracy of the best network so far, by number of queries; empty where the table
            has none.
        recommended: With noise: noise-free regret of the network that `archive study best`
            recommends; else empty.
        recommended_within: Share of these networks with their noise-free value in the interval of
            95 %.
        errors: Regret of the first agent of the task less that of this one, in standard errors of
            the differences seed by seed, by number of queries; negative where the first one is
            ahead, null for fewer than two seeds.
        recommended_errors: The same for the recommended networks.
        queries_to_best: Median number of queries until the best network was found.
        never_found_best: Searches that did not find it.
        queries_to_best_by_seed: The same for each seed.
        seconds_per_call: Processor time of a call of the agent, in the mean.
        seconds_per_call_at_end: The same for the last calls.
        repeats: Networks that were proposed again.
        shares: Of each agent, where it is a team.
    """

    agent: str
    task: str
    protocol: str
    unit: str
    seeds: int
    regret: dict[str, RegretItem]
    test: dict[str, RegretItem]
    recommended: dict[str, RegretItem]
    recommended_within: float | None
    errors: dict[str, float | None]
    recommended_errors: dict[str, float | None]
    queries_to_best: float | None
    never_found_best: int
    queries_to_best_by_seed: list[int | None]
    seconds_per_call: float | None
    seconds_per_call_at_end: float | None
    repeats: int
    shares: list[ShareItem]


class SearchComparison(Document):
    """A comparison of agents on tables.

    Attributes:
        run: Name of the run.
        seeds: Searches of each agent and task.
        budget: Evaluations of a search.
        batch: Proposals asked for at a time.
        starts: Random networks that came first.
        standings: One row an agent and task.
    """

    run: str
    seeds: int
    budget: int
    batch: int
    starts: int
    standings: list[StandingItem]


class SuiteItem(JsonObject):
    """How one agent of the suite searched one task.

    Attributes:
        agent: The agent, with its settings.
        role: `ours`, `paper` or `baseline`; empty for an agent that the suite does not have.
        task: The task.
        protocol: How it was measured.
        unit: Unit of regret and test accuracy.
        seeds: Number of searches.
        regret: By number of queries.
        test: Test accuracy of the best network so far, by number of queries; empty where the table
            has none.
        errors: Regret of the first agent of the task less that of this one, in standard errors of
            the differences seed by seed, by number of queries; negative where the first one is
            ahead, null for fewer than two seeds.
    """

    agent: str
    role: str
    task: str
    protocol: str
    unit: str
    seeds: int
    regret: dict[str, RegretItem]
    test: dict[str, RegretItem]
    errors: dict[str, float | None]


class SuiteComparison(Document):
    """The comparisons of the suite.

    Attributes:
        run: Name of the run.
        seeds: Searches of each agent and task.
        budget: Evaluations of a search.
        batch: Proposals asked for at a time.
        starts: Random networks that came first; 0 for the agents' own initial designs.
        rows: One row an agent and task.
    """

    run: str
    seeds: int
    budget: int
    batch: int
    starts: int
    rows: list[SuiteItem]

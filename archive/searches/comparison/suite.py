"""Suite of comparisons: contestants with their roles, tasks, and the rows of the result.

| role       | contestants                                                                         |
|------------|-------------------------------------------------------------------------------------|
| `ours`     | defaults of this archive, which were chosen on NAS-Bench-201 (12 epochs)            |
| `paper`    | the same methods with the settings of their papers                                  |
| `baseline` | published methods; `random-forest` has the features and candidates of our defaults  |

| task             | noise of `TASK~SD`                                                            |
|------------------|-------------------------------------------------------------------------------|
| `nbmacro~0.0015` | mean standard deviation of three trainings in NAS-Bench-Macro, 0.0015         |
| others           | 0.003 or 0.005, chosen: their tables have one training per network, or means  |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from archive.benchmarks.measurement import mean_and_error
from archive.searches.comparison.standings import ContestantResult, Regret, by_problem

QUERIES = (10, 20, 50, 100)
"""Numbers of queries after which a suite reports."""

ROLES: Mapping[str, str] = MappingProxyType(
    {
        "portfolio": "ours",
        "tw": "ours",
        "bananas": "ours",
        "tw:preset=paper": "paper",
        "bananas:preset=paper": "paper",
        "random-forest": "baseline",
        "optuna-tpe:multivariate=false": "baseline",
        "optuna-gp:candidates=members": "baseline",
        "regularized-evolution": "baseline",
        "local-search": "baseline",
        "random": "baseline",
    }
)
"""Role of each contestant."""


@dataclass(frozen=True)
class Suite:
    """A list of comparisons.

    Attributes:
        agents: The contestants.
        tasks: The tabular tasks.
        seeds: Number of searches for each contestant and task.
        budget: Evaluations of a search.
    """

    agents: tuple[str, ...]
    tasks: tuple[str, ...]
    seeds: int
    budget: int


FULL = Suite(
    agents=tuple(ROLES),
    tasks=(
        "nb201-cifar10",
        "nb201-cifar10~0.005",
        "nb201-cifar100",
        "nb201-cifar10-200",
        "nb201-cifar10-200~0.003",
        "nb101",
        "nb101~0.003",
        "transnas-scene",
        "transnas-scene~0.003",
        "transnas-object",
        "transnas-autoencoder",
        "nbmacro",
        "nbmacro~0.0015",
    ),
    seeds=20,
    budget=100,
)

QUICK = Suite(
    agents=tuple(name for name in ROLES if name not in ("bananas", "bananas:preset=paper")),
    tasks=("nb201-cifar10-200", "transnas-scene~0.003", "nbmacro"),
    seeds=2,
    budget=30,
)
"""A minute on two idle cores; with two seeds it shows that everything runs, not which agent is
better."""


@dataclass(frozen=True)
class SuiteItem:
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
        errors: Regret of the first agent of the task less this agent's, in standard errors of the
            differences seed by seed, by number of queries; negative where the first one is
            ahead, null for fewer than two seeds.
    """

    agent: str
    role: str
    task: str
    protocol: str
    unit: str
    seeds: int
    regret: dict[int, Regret]
    test: dict[int, Regret]
    errors: dict[int, float | None]


@dataclass(frozen=True)
class SuiteComparison:
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


def rows(results: Sequence[ContestantResult]) -> list[SuiteItem]:
    """Return one row per contestant and task, beside the first contestant of the task."""
    firsts = {problem: standings[0] for problem, standings in by_problem(results).items()}
    items = []
    for result in results:
        counts = queries(result)
        tests = {count: result.test(count) for count in counts}
        item = SuiteItem(
            agent=result.contestant,
            role=ROLES.get(result.contestant, ""),
            task=result.problem,
            protocol=result.protocol,
            unit=result.unit,
            seeds=result.seeds,
            regret={count: result.regret(count) for count in counts},
            test={count: test for count, test in tests.items() if test is not None},
            errors=result.errors(firsts[result.problem, result.protocol]),
        )
        items.append(item)

    return items


def queries(result: ContestantResult) -> list[int]:
    """Return the numbers of queries of a report: `QUERIES` below the budget, and the budget."""
    budget = len(result.curve)
    return [*(number for number in QUERIES if number < budget), budget]


def cells(result: ContestantResult) -> list[str]:
    """Return the texts of a row of the table: role, regrets, test accuracies."""
    numbers = queries(result)
    texts = [ROLES.get(result.contestant, "")]
    for figure in (*map(result.regret, numbers), *map(result.test, numbers)):
        texts.append("" if figure is None else mean_and_error(figure.mean, figure.error))

    return texts

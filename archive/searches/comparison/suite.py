"""Suite of comparisons: contestants with their roles, tasks, and the rows of the result.

| role       | contestants                                                                         |
|------------|-------------------------------------------------------------------------------------|
| `ours`     | defaults of this archive, which were chosen on NAS-Bench-201 (12 epochs)            |
| `paper`    | the same methods with the settings of their papers                                  |
| `baseline` | published methods; `random-forest` has the features and candidates of our defaults  |

| task             | noise of `TASK~SD`                                                            |
|------------------|-------------------------------------------------------------------------------|
| `nbmacro~0.0015` | mean standard deviation of three trainings in NAS-Bench-Macro, 0.0015         |
| others           | 0.003 or 0.005, chosen: their tables have one training a network, or means    |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from archive.measurement import mean_and_error
from archive.searches.comparison.standings import (
    ContestantResult,
    by_problem,
    describe_tests,
    with_text_keys,
)

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


def rows(results: Sequence[ContestantResult]) -> list[dict[str, Any]]:
    """Return one row a contestant and task, beside the first contestant of the task."""
    firsts = {problem: standings[0] for problem, standings in by_problem(results).items()}
    described = []
    for result in results:
        numbers = queries(result)
        first = firsts[result.problem, result.protocol]
        described.append(
            {
                "agent": result.contestant,
                "role": ROLES.get(result.contestant, ""),
                "task": result.problem,
                "protocol": result.protocol,
                "unit": result.unit,
                "seeds": result.seeds,
                "regret": {str(number): result.regret(number)._asdict() for number in numbers},
                "test": describe_tests(result, numbers),
                "errors": with_text_keys(result.errors(first)),
            }
        )

    return described


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

"""Suite of comparisons: contestants with their roles, tasks, and the rows of the result.

| role       | contestants                                                                             |
|------------|-----------------------------------------------------------------------------------------|
| `ours`     | defaults of this archive, which were chosen on NAS-Bench-201 (12 epochs)                |
| `paper`    | the same methods with the settings of their papers                                      |
| `baseline` | published methods; `random-forest` has the features and the candidates of our defaults  |

| task                  | noise of `TASK~SD`                                                                          |
|-----------------------|---------------------------------------------------------------------------------------------|
| `nbmacro~0.0015`      | the mean standard deviation of three trainings in NAS-Bench-Macro, 0.0015                   |
| others                | 0.003 or 0.005, chosen: their tables have one training a network, or means over trainings   |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from archive.measurement import mean_and_error
from archive.searches.comparison.standings import ContestantResult, by_problem

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
    """Return one row a contestant and task, as plain values, beside the first contestant of the
    task.
    """
    firsts = {problem: standings[0] for problem, standings in by_problem(results).items()}
    return [
        {
            "agent": one.contestant,
            "role": ROLES.get(one.contestant, ""),
            "task": one.problem,
            "protocol": one.protocol,
            "unit": one.unit,
            "seeds": one.seeds,
            "regret": {str(at): one.regret(at)._asdict() for at in queries(one)},
            "test": {
                str(at): test._asdict() for at in queries(one) if (test := one.test(at)) is not None
            },
            "errors": {
                str(at): error
                for at, error in one.errors(firsts[one.problem, one.protocol]).items()
            },
        }
        for one in results
    ]


def queries(result: ContestantResult) -> list[int]:
    """Return the numbers of queries that a result is reported after:

    `QUERIES` up to the budget, and the budget.
    """
    budget = len(result.curve)
    return [*(at for at in QUERIES if at < budget), budget]


def cells(result: ContestantResult) -> list[str]:
    """Return the texts of a row of the table: role, regrets, test accuracies."""
    at = queries(result)
    numbers = [*map(result.regret, at), *map(result.test, at)]
    texts = [
        "" if number is None else mean_and_error(number.mean, number.error) for number in numbers
    ]
    return [ROLES.get(result.contestant, ""), *texts]

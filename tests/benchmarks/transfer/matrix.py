"""Transfer matrix: every ordered pair of tasks that share a space, with good and with misleading
sources.

| space         | tasks                                                                                        |
|---------------|----------------------------------------------------------------------------------------------|
| `nasbench201` | the 12-epoch columns of CIFAR-10 and CIFAR-100, the 200-epoch column of CIFAR-10             |
| `transnas`    | scene classification, object classification, autoencoding of TransNAS-Bench-101 (micro)      |

Sources are searches by regularized evolution, which evaluates random networks and good ones. Each
pair has the source with 50 and with 200 evaluations; the 200 with every value reversed, and with
the values shuffled among the networks; all of it without noise and with noise, which source and
target then have both. The same can be had of any tabular tasks that share a space (`between`), such
as the columns of a user's table; noise is then what the tasks have.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations, permutations
from types import MappingProxyType

from archive.agents.transfer.cell_vocabulary import comparable
from archive.architecture.choice_operations import conflict
from archive.errors import UnknownNameError, UsageError
from archive.queue.capabilities import NOISE
from archive.searches.comparison.plan import Problem
from tests.benchmarks.transfer.scenarios import Scenario, SourceDesign

TASKS: Mapping[str, float] = MappingProxyType(
    {
        "nb201-cifar10": 0.005,
        "nb201-cifar100": 0.005,
        "nb201-cifar10-200": 0.003,
        "transnas-scene": 0.003,
        "transnas-object": 0.003,
        "transnas-autoencoder": 0.003,
    }
)
"""Standard deviation of the noise of each task, where there is noise."""

GROUPS = (
    ("nb201-cifar10", "nb201-cifar100", "nb201-cifar10-200"),
    ("transnas-scene", "transnas-object", "transnas-autoencoder"),
)
"""Tasks that share a space."""

SEARCHER = "regularized-evolution"
SOURCES = ((50, ""), (200, ""), (200, "reversed"), (200, "shuffled"))
"""Number of evaluations of a source, and the alteration of its values."""


def matrix(
    quick: bool = False, targets: Collection[str] = (), names: Collection[str] = ()
) -> list[Scenario]:
    """Return the scenarios of the matrix.

    Args:
        quick: Two tasks and no noise: minutes instead of hours.
        targets: Tasks of the searches that start warm, those with noise as `TASK~SD`; empty: all.
        names: Names of scenarios, such as `nb201-cifar100-200-reversed`; empty: all of the targets.

    Raises:
        UnknownNameError: The matrix has no such target, or its targets have no such scenario.
    """
    groups: Sequence[Sequence[str]] = (GROUPS[1][:2],) if quick else GROUPS
    whole = [
        scenario
        for noisy in ((False,) if quick else (False, True))
        for group in groups
        for scenario in _pairs(
            {name: name for name in (_noisy(task) if noisy else task for task in group)}
        )
    ]
    return _chosen(whole, targets, names)


def between(
    problems: Mapping[str, Problem], targets: Collection[str] = (), names: Collection[str] = ()
) -> list[Scenario]:
    """Return the scenarios of every ordered pair of tasks that share a space.

    Args:
        problems: The tasks, by the names under which scenarios refer to them.
        targets: Those of the searches that start warm; empty: all.
        names: Names of scenarios, see `matrix`; empty: all of the targets.

    Raises:
        UsageError: There are fewer than two tasks, or the networks of two of them cannot be
            compared.
        UnknownNameError: A target is none of the tasks, or the targets have no such scenario.
    """
    if len({(problem.task, problem.protocol) for problem in problems.values()}) < 2:
        raise UsageError(
            "a matrix needs two tasks or more that share a space, got "
            f"{', '.join(problems) or 'none'}"
        )

    for (name, one), (other_name, other) in combinations(problems.items(), 2):
        if reason := _incomparable(one, other):
            raise UsageError(f"the tasks {name} and {other_name} share no space: {reason}")

    return _chosen(_pairs(labels(problems)), targets, names)


def labels(problems: Mapping[str, Problem]) -> dict[str, str]:
    """Return a short name of each task: its label, or its whole name where another task has the
    same label.
    """
    all_labels = [problem.label for problem in problems.values()]
    return {
        name: problem.label if all_labels.count(problem.label) == 1 else problem.task
        for name, problem in problems.items()
    }


def _pairs(names: Mapping[str, str]) -> list[Scenario]:
    """Return the scenarios of every ordered pair of tasks;

    `names` are the tasks with their names in a scenario's.
    """
    return [
        Scenario(
            "-".join(part for part in (names[source], str(size), altered) if part),
            target,
            (SourceDesign(source, size, SEARCHER, altered),),
        )
        for source, target in permutations(names, 2)
        for size, altered in SOURCES
    ]


def _chosen(
    whole: Sequence[Scenario], targets: Collection[str], names: Collection[str]
) -> list[Scenario]:
    """Return the scenarios of some targets and names; an empty collection stands for all."""
    _check_known("target of the matrix", targets, [scenario.target for scenario in whole])
    of_targets = [scenario for scenario in whole if not targets or scenario.target in targets]
    _check_known("scenario of the matrix", names, [scenario.name for scenario in of_targets])
    return [scenario for scenario in of_targets if not names or scenario.name in names]


def _check_known(kind: str, names: Collection[str], known: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            raise UnknownNameError(kind, name, dict.fromkeys(known))


def _incomparable(one: Problem, other: Problem) -> str | None:
    """Return why networks of two tasks cannot be compared; None where they can."""
    if not comparable(one.space, other.space):
        return f"one has {one.space}, the other has {other.space}"

    if one.space == other.space and (
        names := conflict(one.space, one.space_config, other.space_config)
    ):
        return f"one has {names[0]} where the other has {names[1]}"

    return None


def _noisy(task: str) -> str:
    return f"{task}{NOISE}{TASKS[task]:g}"

"""Transfer matrix: every ordered pair of tasks that share a space, with good and with misleading sources.

| space         | tasks                                                                                        |
|---------------|----------------------------------------------------------------------------------------------|
| `nasbench201` | the 12-epoch columns of CIFAR-10 and CIFAR-100, the 200-epoch column of CIFAR-10             |
| `transnas`    | scene classification, object classification, autoencoding of TransNAS-Bench-101 (micro)      |

Sources are searches by regularized evolution, which evaluates random networks and good ones. Each pair has the source
with 50 and with 200 evaluations; the 200 with every value reversed, and with the values shuffled among the networks;
all of it without noise and with noise, which source and target then have both.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import permutations
from types import MappingProxyType

from archive.agents.benchmarks.transfer.scenarios import Recipe, Scenario
from archive.errors import UnknownNameError

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


def matrix(quick: bool = False, targets: Collection[str] = ()) -> list[Scenario]:
    """Return the scenarios of the matrix.

    Args:
        quick: Two tasks and no noise: minutes instead of hours.
        targets: Tasks of the searches that start warm, those with noise as `TASK~SD`; empty: all.

    Raises:
        UnknownNameError: The matrix has no such target.
    """
    groups: Sequence[Sequence[str]] = (GROUPS[1][:2],) if quick else GROUPS
    whole = [
        _scenario(source, target, noisy, size, altered)
        for noisy in ((False,) if quick else (False, True))
        for group in groups
        for source, target in permutations(group, 2)
        for size, altered in SOURCES
    ]
    known = dict.fromkeys(scenario.target for scenario in whole)
    for name in targets:
        if name not in known:
            raise UnknownNameError("target of the matrix", name, known)
    return [scenario for scenario in whole if not targets or scenario.target in targets]


def _scenario(source: str, target: str, noisy: bool, size: int, altered: str) -> Scenario:
    source, target = (f"{task}~{TASKS[task]:g}" if noisy else task for task in (source, target))
    name = "-".join(part for part in (source, str(size), altered) if part)
    return Scenario(name, target, (Recipe(source, size, SEARCHER, altered),))

"""Scenarios of warm starts on one task: what the sources hold, and whether they should help.

| scenario      | source of each study                                             | expected effect       |
|---------------|------------------------------------------------------------------|-----------------------|
| `searched`    | a search of the agent on CIFAR-10, 200 evaluations               | helpful               |
| `sampled`     | 50 random cells on CIFAR-10                                      | helpful               |
| `other-space` | 1,000 random cells of NAS-Bench-101                              | helpful               |
| `both`        | the last two together                                            | helpful               |
| `reversed`    | as `searched`, every value with its sign changed                 | misleading            |
| `shuffled`    | as `searched`, the values permuted among the cells               | misleading            |
| `unrelated`   | as `other-space`, the values permuted among the cells            | misleading            |

The target is CIFAR-100 on the cells of NAS-Bench-201.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from archive.errors import UnknownNameError
from archive.searches.comparison.plan import STARTER

TARGET = "nb201-cifar100"


@dataclass(frozen=True)
class SourceDesign:
    """Design of a source study.

    Attributes:
        task: Task of its evaluations.
        budget: Number of evaluations.
        searcher: Name of the agent that makes it; empty for the agent of the targets.
        altered: `reversed` or `shuffled` values; empty for those of the table.
    """

    task: str
    budget: int
    searcher: str = ""
    altered: str = ""


@dataclass(frozen=True)
class Scenario:
    """A kind of warm start.

    Attributes:
        name: Its name, unique among those of one target.
        target: Task of the studies that start warm.
        sources: Designs of their source studies.
    """

    name: str
    target: str
    sources: tuple[SourceDesign, ...]


_SEARCHED = SourceDesign("nb201-cifar10", 200)
_SAMPLED = SourceDesign("nb201-cifar10", 50, STARTER)
_OTHER = SourceDesign("nb101", 1000, STARTER)

SCENARIOS: Mapping[str, Scenario] = MappingProxyType(
    {
        name: Scenario(name, TARGET, sources)
        for name, sources in {
            "searched": (_SEARCHED,),
            "sampled": (_SAMPLED,),
            "other-space": (_OTHER,),
            "both": (_SAMPLED, _OTHER),
            "reversed": (replace(_SEARCHED, altered="reversed"),),
            "shuffled": (replace(_SEARCHED, altered="shuffled"),),
            "unrelated": (replace(_OTHER, altered="shuffled"),),
        }.items()
    }
)
"""The scenarios, by name."""


def scenarios(names: Iterable[str]) -> list[Scenario]:
    """Return scenarios by name, each once; all for no names.

    Raises:
        UnknownNameError: There is no such scenario.
    """
    requested = list(dict.fromkeys(names)) or list(SCENARIOS)
    for name in requested:
        if name not in SCENARIOS:
            raise UnknownNameError("scenario", name, SCENARIOS)

    return [SCENARIOS[name] for name in requested]

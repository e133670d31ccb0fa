"""Noise of a history: whether another evaluation of a network could give another score.

| evaluations of one network, with equal hyperparameters   | the history                                              |
|----------------------------------------------------------|----------------------------------------------------------|
| two scores differ                                        | has noise                                                |
| two seeds differ, and no two scores                      | has no noise                                             |
| none of these                                            | has noise if a seed is on record: a training depends on  |
|                                                          | it, and the answer of a table has none                   |

The rule says only that there may be noise. Its variance is a hyperparameter of the surrogates, which they fit to all
evaluations.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from archive.agents.observations import Observation


def is_noisy(observations: Sequence[Observation]) -> bool:
    """Return whether the scores of observations have noise, by the table at the head of this module."""
    first: dict[tuple[str, str], Observation] = {}
    seeds_differ = False
    for seen in observations:
        other = first.setdefault(_configuration(seen), seen)
        if seen.score != other.score:
            return True
        seeds_differ = seeds_differ or seen.seed != other.seed
    return not seeds_differ and any(seen.seed is not None for seen in observations)


def replicates(observations: Iterable[Observation]) -> list[list[Observation]]:
    """Return the observations grouped by network and hyperparameters, in the order of their first ones."""
    groups: dict[tuple[str, str], list[Observation]] = {}
    for seen in observations:
        groups.setdefault(_configuration(seen), []).append(seen)
    return list(groups.values())


def _configuration(seen: Observation) -> tuple[str, str]:
    settings = repr(sorted(seen.hyperparameters.items())) if seen.hyperparameters else ""
    return seen.architecture.functional_key, settings

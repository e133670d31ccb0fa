"""Objectives: the quantities that a study optimises, as text `NAME[:minimise|maximise]`.

| names                                          | direction |
|------------------------------------------------|-----------|
| `accuracy`, and with a prefix such as `valid_` | maximise  |
| `loss`, `mse`, `error`, likewise               | minimise  |
| costs: `params`, `flops`, `latency…`, `peak…`  | minimise  |

The first objective of a study is the value of its evaluations; further ones are metrics of these.
Agents maximise scores: a value times the `sign` of its direction.

| module                        | use                                                             |
|-------------------------------|-----------------------------------------------------------------|
| `archive.objectives.pareto`   | Pareto sets, ranks and hypervolumes of scores                   |
| `archive.searches.request`    | the objectives that a search asks for, checked against the task |
| `archive.store.records`       | objectives of a study                                           |
| `archive.store.ranking`       | values of a study's results for all objectives                  |
| `archive.store.metric_names`  | units of metrics                                                |
| `archive.agents.objectives`   | scores of a history for several objectives, and suggestions     |
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from archive.errors import UnknownNameError, UsageError
from archive.values import check_length

Direction = Literal["maximise", "minimise"]
DIRECTIONS = ("maximise", "minimise")

MOST_OBJECTIVES = 4
"""Most objectives of a study.

With M objectives, a proposal of an agent costs the size of the front to the power of M - 1."""

COST_METRICS = (
    "params",
    "flops",
    "latency_ms",
    "latency_iqr_ms",
    "latency_batch",
    "latency_prefill_ms",
    "latency_decode_ms",
    "peak_memory_bytes",
    "train_flops",
    "cache_bytes",
)
"""Metrics of an evaluation that are costs."""

PREFIXES = ("train_", "valid_", "test_")
"""Prefixes of metrics: the part of the data that they are measured on."""

_OF_PREDICTIONS: Mapping[str, Direction] = {
    "accuracy": "maximise",
    "loss": "minimise",
    "mse": "minimise",
    "rmse": "minimise",
    "error": "minimise",
    "bits_per_byte": "minimise",
}


@dataclass(frozen=True)
class Objective:
    """One of the quantities that a study optimises.

    Attributes:
        name: Name of the metric.
        direction: Whether larger or smaller values are better.
    """

    name: str
    direction: Direction = "maximise"

    def __str__(self) -> str:
        """Return it as the command line takes it, `latency_ms:minimise`."""
        return f"{self.name}:{self.direction}"


def parse(
    text: str, declared: Mapping[str, Direction] | None = None, known: Collection[str] = ()
) -> Objective:
    """Return the objective that a text names.

    Args:
        text: `NAME` or `NAME:DIRECTION`.
        declared: Directions of names, before those that names declare by themselves.
        known: Names with a direction, for the error about a name without one; empty where any
            metric may be meant.

    Raises:
        UnknownNameError: The text has no direction, and its name declares none.
        UsageError: The name is empty, or the direction is none.
    """
    name, separator, direction = text.partition(":")
    name = name.strip()
    direction = direction.strip()
    if not name or (separator and direction not in DIRECTIONS):
        raise UsageError(f"an objective is NAME, NAME:minimise or NAME:maximise, got {text!r}")

    stated = direction or (declared or {}).get(name) or direction_of(name)
    if stated is None:
        raise UnknownNameError(
            "objective", name, known, f"write {name}:minimise or {name}:maximise"
        )

    return Objective(name, cast(Direction, stated))


def direction_of(name: str) -> Direction | None:
    """Return the direction that the name of a quantity declares; None where it declares none."""
    if name in COST_METRICS or name.startswith("latency"):
        return "minimise"

    for prefix in PREFIXES:
        name = name.removeprefix(prefix)

    return _OF_PREDICTIONS.get(name)


def sign(direction: str) -> float:
    """Return the factor that makes larger values better: 1 or, for `minimise`, -1."""
    return -1.0 if direction == "minimise" else 1.0


def check(objectives: Sequence[Objective]) -> None:
    """Check that a study can have these objectives.

    Raises:
        UsageError: There are too many, a name is empty or occurs twice, or a direction is invalid.
    """
    names = [objective.name for objective in objectives]
    if len(names) > MOST_OBJECTIVES:
        raise UsageError(
            f"a study has at most {MOST_OBJECTIVES} objectives, got {len(names)}: {', '.join(names)}"
        )

    for objective in objectives:
        if not objective.name or names.count(objective.name) > 1:
            raise UsageError(
                f"the objectives of a study need different names, got {', '.join(map(repr, names))}"
            )

        check_length("the name of an objective", objective.name)
        if objective.direction not in DIRECTIONS:
            raise UsageError(
                f"direction of {objective.name} must be maximise or minimise, "
                f"got {objective.direction!r}"
            )

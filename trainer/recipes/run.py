"""Outcome of a trial from its recipe's reports and result: `run(fit, TrialContext(…))`.

`run(fit, TrialContext(architecture, task))`.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from archive.errors import TrainingError
from archive.trainer.recipes.base import Fit, FitResult, Stop
from archive.trainer.recipes.checkpoint import as_tensors
from archive.trainer.recipes.context import TrialContext
from archive.trainer.recipes.curve import Metrics, check_metrics

if TYPE_CHECKING:
    from torch import Tensor


class Cancelled(Exception):  # noqa: N818 - no error, and never seen outside the process of a trial
    """The trial was interrupted.

    `saved` tells whether there is a checkpoint, `epoch` the number of reports.
    """

    def __init__(self, saved: bool, epoch: int) -> None:
        """Keep the attributes."""
        super().__init__()
        self.saved = saved
        self.epoch = epoch


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of a finished trial.

    Attributes:
        value: The objective, in the task's own unit.
        metrics: Final metrics by name, the objective among them.
        curve: `epoch`, the reported metrics and `seconds` since the start, parallel lists with one
            entry a report.
        epochs: Number of reports.
        seconds: Wall time from the start to the end, over all resumptions.
        weights: Trained tensors by name.
        ended: Why the training ended: `epochs` (all of the protocol's), `rung` (it may continue),
            the recipe's own reason, or `finished`.
        resumed: Number of resumptions.
        environment: What the recipe says that the result may depend on.
        inherited: Record of the inherited weights, as JSON values; empty if they were drawn from
            the seed.
    """

    value: float
    metrics: Metrics
    curve: dict[str, list[float]]
    epochs: int
    seconds: float
    weights: dict[str, Tensor] = field(repr=False)
    ended: str = "epochs"
    resumed: int = 0
    environment: Mapping[str, Any] = field(default_factory=dict)
    inherited: Mapping[str, Any] = field(default_factory=dict)

    @property
    def precision(self) -> str:
        """Floating-point format of the training."""
        return str(self.environment.get("precision", "float32"))


def run(fit: Fit, trial: TrialContext, also: Callable[[Outcome], Metrics] | None = None) -> Outcome:
    """Run a recipe, and return the outcome.

    Args:
        fit: The recipe.
        trial: Its context.
        also: Returns further metrics of an outcome, which has no value yet: those that the recipe
            does not report. The objective may be one of them.

    The default generators of Python, numpy and torch begin with the trial's seed, and are as before
    afterwards.

    Raises:
        TrainingError: The recipe failed, or did not return a result.
        Cancelled: The trial was interrupted.
    """
    with _seed_generators(trial.seed):
        returned = fit(trial)

    result = _result(returned)
    stop = trial.stop
    # A training that has ended by its own rule is finished, whatever the trainer wishes.
    if trial.told_to_stop and stop is Stop.INTERRUPTED and not result.ended:
        raise Cancelled(trial.checkpoint.saved, trial.reports)

    outcome = Outcome(
        value=math.nan,
        metrics=_metrics(trial, result),
        curve=dict(trial.curve),
        epochs=trial.reports,
        seconds=trial.seconds,
        weights={name: tensor.cpu() for name, tensor in as_tensors(result.weights).items()},
        ended=str(Stop.RUNG) if trial.overran else _reason_of_end(result, stop),
        resumed=trial.resumed,
        environment=_json_values(result.environment),
        inherited=trial.inherited,
    )
    metrics = {**(also(outcome) if also else {}), **outcome.metrics}
    if trial.objective not in metrics:
        raise TrainingError(unreported_reason(trial.objective, metrics))

    return replace(outcome, value=metrics[trial.objective], metrics=metrics)


def run_beside(fit: Fit, trial: TrialContext) -> None:
    """Run a recipe on a rank above 0, of which no result is expected."""
    with _seed_generators(trial.seed):
        fit(trial)


@contextmanager
def _seed_generators(seed: int) -> Iterator[None]:
    import numpy as np
    import torch

    before = random.getstate(), np.random.get_state(), torch.get_rng_state()
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)
    try:
        yield
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])
        torch.set_rng_state(before[2])


def _result(returned: object) -> FitResult:
    if returned is None:
        return FitResult()

    if isinstance(returned, Mapping):
        return FitResult(returned)

    if not isinstance(returned, FitResult):
        raise TrainingError(
            "a recipe must return a FitResult, metrics by name or None, got "
            f"{type(returned).__name__}"
        )

    return returned


def _metrics(trial: TrialContext, result: FitResult) -> Metrics:
    """Return the final metrics; beyond a rung, a recipe returns metrics of a longer training."""
    reported = trial._curve.last()
    returned = check_metrics(result.metrics, " in the result")
    return {**returned, **reported} if trial.overran else {**reported, **returned}


def _reason_of_end(result: FitResult, stop: Stop | None) -> str:
    """Return why a trial ended; a recipe's own rule comes first: it converged, even at a rung."""
    if result.ended and result.ended != Stop.RUNG:
        return str(result.ended)

    return "finished" if stop in (None, Stop.INTERRUPTED) else str(stop)


def _json_values(environment: Mapping[str, Any]) -> dict[str, Any]:
    try:
        values: dict[str, Any] = json.loads(json.dumps(dict(environment)))
    except (TypeError, ValueError) as error:
        raise TrainingError(f"the environment of a result must be JSON values: {error}") from error

    return values


def unreported_reason(objective: str, metrics: Iterable[str]) -> str:
    """Return the reason of the failure of a recipe that does not report the study's objective.

    Args:
        objective: Name of the study's objective.
        metrics: Names of the metrics that the recipe reports.
    """
    return _beginning(objective) + (", ".join(metrics) or "none")


def metrics_in_reason(reason: str | None, objective: str) -> list[str] | None:
    """Return the metrics that a failed trial reported; None where it failed for another reason.

    Args:
        reason: Reason of the failure.
        objective: Name of the study's objective.
    """
    beginning = _beginning(objective)
    if reason is None or not reason.startswith(beginning):
        return None

    metrics = reason.removeprefix(beginning)
    return [] if metrics == "none" else metrics.split(", ")


def _beginning(objective: str) -> str:
    return f"the recipe reports no metric {objective!r}, the study's objective; the training has "

"""Results of a study as plain records: incumbents, estimates, Pareto sets, constraints.

A record is what `archive.search` returns, what a command shows, and what `--json` writes: the
attributes that a docstring lists are the keys of its JSON object.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import starmap
from typing import TYPE_CHECKING, Any, Literal

from archive.objectives import sign

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from archive.agents.recommendation import Recommendation
    from archive.api import Archive
    from archive.constraints import KnownCosts
    from archive.errors import ArchiveError
    from archive.store.records import Study
    from archive.store.snapshots import ProposalView, Snapshot


@dataclass(frozen=True)
class ObjectiveItem:
    """One objective of a study.

    Attributes:
        name: Name of the metric.
        direction: Whether larger or smaller values are better.
    """

    name: str
    direction: Literal["maximise", "minimise"]


@dataclass(frozen=True)
class ConstraintItem:
    """One constraint of a study.

    Attributes:
        name: Name of the metric or cost.
        operator: How the value must compare with the bound.
        bound: The bound, in the quantity's unit.
    """

    name: str
    operator: Literal["<=", "<", ">=", ">"]
    bound: float


@dataclass(frozen=True)
class NearestItem:
    """The result of the smallest violation of the constraints.

    Attributes:
        architecture: Key of the architecture.
        proposal: Id of the proposal.
        value: The objective.
        metrics: Value of each constrained quantity, by name.
        configuration: Values of named decisions and of hyperparameters, by name.
    """

    architecture: str
    proposal: str
    value: float | None
    metrics: dict[str, float]
    configuration: Mapping[str, Any]


@dataclass(frozen=True)
class EstimateItem:
    """Estimate of the noise-free value of a network.

    Attributes:
        mean: Posterior mean.
        low: Lower end of its 95 % interval; null where there are too few networks for a model.
        high: Upper end.
        evaluations: Number of evaluations of the network.
    """

    mean: float
    low: float | None
    high: float | None
    evaluations: int


@dataclass(frozen=True)
class ParetoProposal:
    """A result of the Pareto set.

    Attributes:
        proposal: Id of the proposal.
        number: Its number in the study.
        architecture: Key of the architecture.
        values: Value of each objective, by name; of several evaluations of the network their mean.
        evaluations: Number of these evaluations; `proposal` is the first one.
        configuration: Values of named decisions and of hyperparameters, by name.
    """

    proposal: str
    number: int
    architecture: str
    values: dict[str, float]
    evaluations: int
    configuration: Mapping[str, Any]


@dataclass(frozen=True)
class HypervolumeItem:
    """Hypervolume of the results up to a proposal.

    Attributes:
        number: Number of the proposal.
        hypervolume: The volume.
    """

    number: int
    hypervolume: float


@dataclass(frozen=True)
class ParetoItem:
    """Results of a study with several objectives that no other result dominates.

    Attributes:
        reference: Reference point of the hypervolume: the worst value of each objective among the
            results.
        hypervolume: Volume between the reference point and the front, in the product of the
            objectives' units.
        history: The hypervolume after each result.
        left_out: Number of results without a value of every objective.
        proposals: The Pareto set, the best in the first objective first.
    """

    reference: dict[str, float]
    hypervolume: float
    history: list[HypervolumeItem]
    left_out: int
    proposals: list[ParetoProposal]


@dataclass(frozen=True)
class ObjectiveEstimate:
    """Estimate of a network's noise-free value in one objective.

    Attributes:
        mean: Posterior mean; without noise the value itself, without a model the mean of the
            evaluations.
        low: Lower end of its 95 % interval; null where no model could be fitted.
        high: Upper end.
        evaluations: Number of evaluations of the network that have the objective.
    """

    mean: float
    low: float | None
    high: float | None
    evaluations: int


@dataclass(frozen=True)
class RecommendedProposal:
    """A network of the recommended Pareto set.

    Attributes:
        proposal: Id of its first proposal in the study.
        number: Number of this proposal.
        architecture: Key of the architecture.
        expected: Estimate of each objective, by name.
        configuration: Values of named decisions and of hyperparameters, by name.
    """

    proposal: str
    number: int
    architecture: str
    expected: dict[str, ObjectiveEstimate]
    configuration: Mapping[str, Any]


@dataclass(frozen=True)
class RecommendedPareto:
    """Undominated networks by expected values, in a study with several noisy objectives.

    Attributes:
        noise: Estimated standard deviation of an evaluation in each objective, by name: 0 without
            noise, null where no model could be fitted.
        proposals: The networks, the best in the first objective first.
    """

    noise: dict[str, float | None]
    proposals: list[RecommendedProposal]


def objective_items(study: Study) -> list[ObjectiveItem]:
    """Return the objectives of a study."""
    return [ObjectiveItem(objective.name, objective.direction) for objective in study.objectives]


def constraint_items(study: Study) -> list[ConstraintItem]:
    """Return the constraints of a study."""
    items = []
    for constraint in study.constraints:
        items.append(ConstraintItem(constraint.name, constraint.operator, constraint.bound))

    return items


def nearest_item(snapshot: Snapshot) -> NearestItem | None:
    """Return the result of the smallest violation.

    None where a result meets the constraints, there are none, or no result has all their
    quantities.
    """
    study = snapshot.study
    nearest = snapshot.nearest
    if not study.constraints or snapshot.incumbent is not None or nearest is None:
        return None

    values = {study.objective: nearest.value, **nearest.metrics}
    metrics: dict[str, float] = {}
    for constraint in study.constraints:
        value = values[constraint.name]
        if value is not None:
            metrics[constraint.name] = value

    return NearestItem(
        nearest.architecture_key, nearest.id, nearest.value, metrics, nearest.configuration
    )


def unmet(snapshot: Snapshot) -> str | None:
    """Return in one line that no result meets the constraints, with the nearest one.

    None where one does.
    """
    study = snapshot.study
    results = sum(view.value is not None for view in snapshot.proposals)
    if not study.constraints or snapshot.incumbent is not None or not results:
        return None

    return unmet_line([*map(str, study.constraints)], results, nearest_item(snapshot))


def unmet_line(constraints: list[str], results: int, nearest: NearestItem | None) -> str:
    """Return in one line that no result meets constraints.

    Args:
        constraints: The constraints as text.
        results: Number of results.
        nearest: The nearest result, from `nearest_item`.
    """
    line = f"none of the {results} results meets {' and '.join(constraints)}"
    if nearest is None:
        return f"{line}: none has a value of each of these quantities"

    values = ", ".join(f"{name} {value:.6g}" for name, value in nearest.metrics.items())
    return f"{line}: the nearest, {nearest.architecture} ({nearest.proposal}), has {values}"


def estimate_item(study: Study, recommendation: Recommendation) -> EstimateItem:
    """Return the estimate of a network's value, in the task's own unit."""
    better = sign(study.direction)
    low, high = interval_ends(better, recommendation.low, recommendation.high)
    return EstimateItem(better * recommendation.score, low, high, len(recommendation.evaluations))


def interval_ends(
    better: float, low: float | None, high: float | None
) -> tuple[float | None, float | None]:
    """Return an interval of scores in the metric's unit, the lower end first; None for none.

    Args:
        better: The sign of the direction, 1 or -1.
        low: Lower end of the scores.
        high: Upper end.
    """
    if low is None or high is None:
        return None, None

    first, last = sorted((better * low, better * high))
    return first, last


def best_views(snapshot: Snapshot) -> dict[str, ProposalView]:
    """Return the best evaluation of each network of a study by key, the best first."""
    views: dict[str, ProposalView] = {}
    for view in snapshot.best(len(snapshot.proposals)):
        views.setdefault(view.architecture_key, view)

    return views


def best_view(
    views: Mapping[str, ProposalView], recommendation: Recommendation
) -> ProposalView | None:
    """Return the best evaluation of a recommended network in the study.

    None if it is newer than the snapshot.
    """
    # Networks of one function may have several keys, with other dead layers.
    keys = {evaluation.architecture.key for evaluation in recommendation.evaluations}
    candidates = [views[key] for key in keys if key in views]
    scores = {evaluation.id: evaluation.score for evaluation in recommendation.evaluations}
    return max(candidates, key=lambda view: scores.get(view.id, -math.inf), default=None)


def pareto_item(snapshot: Snapshot) -> ParetoItem | None:
    """Return the Pareto set of a study; None with one objective or without results."""
    if not snapshot.study.further:
        return None

    from archive.queries.pareto import pareto_set

    pareto = pareto_set(snapshot)
    if pareto is None:
        return None

    names = [objective.name for objective in pareto.objectives]
    proposals = []
    for view, values, count in zip(
        pareto.proposals, pareto.values, pareto.evaluations, strict=True
    ):
        by_name = dict(zip(names, values, strict=True))
        proposals.append(
            ParetoProposal(
                view.id, view.number, view.architecture_key, by_name, count, view.configuration
            )
        )

    return ParetoItem(
        reference=dict(zip(names, pareto.reference, strict=True)),
        hypervolume=pareto.hypervolume,
        history=list(starmap(HypervolumeItem, pareto.history)),
        left_out=pareto.left_out,
        proposals=proposals,
    )


def recommended_item(
    archive: Archive, snapshot: Snapshot, unknown: Callable[[ArchiveError], object]
) -> RecommendedPareto | None:
    """Return the recommended Pareto set of a study with several objectives; None without noise.

    Args:
        archive: The archive of the study.
        snapshot: The study.
        unknown: Called with the reason why the space of a study with noise is not known here.
    """
    from archive.agents.objectives import recommendation

    home = archive.connection.settings.home
    recommended = recommendation.of_snapshot(
        archive, snapshot, lambda study: _costs_on_record(study, home), unknown
    )
    if recommended is None:
        return None

    signs = {objective.name: sign(objective.direction) for objective in snapshot.study.objectives}
    proposals = []
    for view, estimates in zip(recommended.proposals, recommended.estimates, strict=True):
        expected = {}
        for (name, better), estimate in zip(signs.items(), estimates, strict=True):
            low, high = interval_ends(better, estimate.low, estimate.high)
            expected[name] = ObjectiveEstimate(
                better * estimate.score, low, high, estimate.evaluations
            )

        proposals.append(
            RecommendedProposal(
                view.id, view.number, view.architecture_key, expected, view.configuration
            )
        )

    return RecommendedPareto(dict(zip(signs, recommended.noises, strict=True)), proposals)


def _costs_on_record(study: Study, home: Path) -> KnownCosts:
    from archive.constraints import NO_COSTS
    from archive.errors import ArchiveError
    from archive.trainer.tasks import known_costs

    try:
        return known_costs.of_study(study, home)
    except ArchiveError:
        # A file of the task that may not be opened here: its costs are then estimated from the
        # results.
        return NO_COSTS

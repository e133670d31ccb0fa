"""`archive study best`: the best architectures of a study, and its Pareto sets as tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import click

from archive.cli.exit_codes import ExitCode
from archive.cli.names import STUDY
from archive.cli.parameters import Count
from archive.cli.render import (
    json_option,
    open_archive,
    print_json,
    print_line,
    print_message,
    print_table,
)
from archive.cli.study.items import ProposalItem, proposal_item
from archive.searches.results import (
    EstimateItem,
    NearestItem,
    ObjectiveEstimate,
    ParetoItem,
    RecommendedPareto,
    best_view,
    best_views,
    estimate_item,
    nearest_item,
    pareto_item,
    recommended_item,
    unmet,
)
from archive.store.metric_names import own_unit_metric
from archive.values import short_settings

if TYPE_CHECKING:
    from archive.agents.recommendation import Recommendation
    from archive.api import Archive
    from archive.errors import ArchiveError
    from archive.store.records import Study
    from archive.store.snapshots import ProposalView, Snapshot

TEST = "test_"
SHOWN_COSTS = ("params", "flops", "latency_ms")


@dataclass(frozen=True)
class BestItem(ProposalItem):
    """One of the best networks of a study: the proposal with its best value.

    Attributes:
        weights: Where its trained weights are, if they were kept.
        expected: Estimate of its value where results have noise, else null.
    """

    weights: str | None
    expected: EstimateItem | None


@dataclass(frozen=True)
class BestList:
    """The best networks of a study that meet its constraints.

    Attributes:
        study: Its name.
        objective: Name of the metric that is optimised.
        direction: Whether larger or smaller values are better.
        noise: Estimated standard deviation of a result; null where results have no noise, or it
            cannot be estimated.
        luckiest: Id of the proposal with the best single value where results have noise, else null.
        pareto: Pareto set of several objectives, as measured; null with one, or without results.
        recommended: Pareto set of their expected values where results have noise; else null.
        nearest: The result of the smallest violation, where none meets the constraints; else null.
        proposals: The best first: by the mean of `expected` where results have noise, else by
            value; of several objectives, in the first.
    """

    study: str
    objective: str
    direction: Literal["maximise", "minimise"]
    noise: float | None
    luckiest: str | None
    pareto: ParetoItem | None
    recommended: RecommendedPareto | None
    nearest: NearestItem | None
    proposals: list[BestItem]


@click.command("best")
@click.argument("name", metavar="STUDY", type=STUDY)
@click.option("--top", "count", type=Count(1), default=1, help="Number of networks.")
@json_option
@click.pass_context
def best(ctx: click.Context, name: str, count: int, as_json: bool) -> None:
    """Show the best architectures of a study, the best first.

    Of several objectives the Pareto set: a result is in it unless another one is at least as good
    in every objective, and better in one.

    Of a study with constraints, results that meet them.

    Results of whole trainings only, unless a study with rungs has none yet. Of equal values, the
    earlier one comes first.

    The best of many noisy values is the luckiest one. Where another training of a network could
    give another value, networks are ranked by the posterior mean of a Gaussian process instead
    (expected), with an interval of 95 %; the luckiest value is shown beside them. Of several
    objectives, the Pareto set of the posterior means is shown beside the set of the measured
    values. Results without a seed on record, as in most tables, have no noise.

    The exit code is 3 where no result has a value that meets the constraints.
    """
    from archive.agents import recommendation
    from archive.store.metric_names import units_of

    with open_archive(ctx) as archive:
        snapshot = archive.studies.snapshot(name)
        pareto = pareto_item(snapshot)
        recommended = recommended_item(archive, snapshot, _report_unknown) if pareto else None
        ranked = None
        if pareto is None:
            ranked = recommendation.of_study(archive, snapshot.study, _report_unknown)

        if ranked is None:
            items = _by_value(archive, snapshot, count)
        else:
            items = _by_estimate(archive, snapshot, ranked.ranked[:count])

    study = snapshot.study
    luckiest = snapshot.incumbent if ranked else None
    if as_json:
        document = BestList(
            study=study.name,
            objective=study.objective,
            direction=study.direction,
            noise=None if ranked is None else ranked.noise,
            luckiest=None if luckiest is None else luckiest.id,
            pareto=pareto,
            recommended=recommended,
            nearest=nearest_item(snapshot),
            proposals=items,
        )
        print_json(document)
    elif pareto is not None:
        print_pareto(pareto)
        if recommended is not None:
            print_line()
            print_recommended(recommended)
    elif items:
        _print(study, items)
        if ranked is not None and luckiest is not None:
            deviation = "" if ranked.noise is None else f"; noise of a training: {ranked.noise:.2g}"
            print_line(
                f"luckiest value: {luckiest.value:.4g}, {luckiest.architecture_key} "
                f"(#{luckiest.number}){deviation}"
            )
    else:
        print_message(
            unmet(snapshot) or f"the study {study.name} has no evaluation with a value yet"
        )

    if not as_json and items and (units := units_of(study)) is not None:
        print_line(units)

    if not items and pareto is None:
        ctx.exit(ExitCode.NOTHING_SUCCEEDED)


def print_pareto(pareto: ParetoItem) -> None:
    """Write the Pareto set as a table, and the hypervolume with its reference point."""
    with_names = any(proposal.configuration for proposal in pareto.proposals)
    names = ["number", "architecture", *(["configuration"] if with_names else [])]
    columns = [*names, *pareto.reference]
    repeated = any(proposal.evaluations > 1 for proposal in pareto.proposals)
    if repeated:
        columns.append("evaluations")

    configurations = short_settings([proposal.configuration for proposal in pareto.proposals])
    rows = []
    for proposal, configuration in zip(pareto.proposals, configurations, strict=True):
        row: list[Any] = [proposal.number, proposal.architecture]
        if with_names:
            row.append(configuration)

        row += proposal.values.values()
        if repeated:
            row.append(proposal.evaluations)

        rows.append(row)

    print_table(columns, rows, title="Pareto set")

    reference = ", ".join(f"{name} {value:.4g}" for name, value in pareto.reference.items())
    print_line(f"hypervolume {pareto.hypervolume:.4g}, from the worst values: {reference}")
    if pareto.left_out == 1:
        print_line("1 result lacks an objective and is left out")
    elif pareto.left_out:
        print_line(f"{pareto.left_out} results lack an objective and are left out")


def print_recommended(recommended: RecommendedPareto) -> None:
    """Write the recommended Pareto set as a table, and the noise of each objective."""
    with_names = any(proposal.configuration for proposal in recommended.proposals)
    columns = ["number", "architecture", *(["configuration"] if with_names else [])]
    for name, noise in recommended.noise.items():
        columns.append(name)
        if noise != 0.0:
            columns.append("95 %")

    configurations = short_settings([proposal.configuration for proposal in recommended.proposals])
    rows = []
    for proposal, configuration in zip(recommended.proposals, configurations, strict=True):
        row: list[Any] = [proposal.number, proposal.architecture]
        if with_names:
            row.append(configuration)

        for name, noise in recommended.noise.items():
            estimate = proposal.expected[name]
            row.append(estimate.mean)
            if noise != 0.0:
                row.append(interval(estimate))

        row.append(max(estimate.evaluations for estimate in proposal.expected.values()))
        rows.append(row)

    print_table([*columns, "evaluations"], rows, title="Recommended Pareto set, by expected values")

    noises = [f"{name} {noise:.2g}" for name, noise in recommended.noise.items() if noise]
    if noises:
        print_line(f"noise of an evaluation: {', '.join(noises)}")


def interval(estimate: EstimateItem | ObjectiveEstimate) -> str:
    """Return the interval of an estimate as text."""
    return "–" if estimate.low is None else f"{estimate.low:.4g} to {estimate.high:.4g}"


def _report_unknown(error: ArchiveError) -> None:
    """Write why no estimates of noise-free values are shown."""
    print_message(f"the results have noise, and are shown as measured, without estimates: {error}")


def _by_value(archive: Archive, snapshot: Snapshot, count: int) -> list[BestItem]:
    study = snapshot.study
    return [_item(archive, study, view, None) for view in snapshot.best(count)]


def _by_estimate(
    archive: Archive, snapshot: Snapshot, ranked: Sequence[Recommendation]
) -> list[BestItem]:
    """Return the best evaluation of each network in the study, with the estimate."""
    views = best_views(snapshot)
    study = snapshot.study
    items = []
    for recommendation in ranked:
        view = best_view(views, recommendation)
        if view is not None:
            items.append(_item(archive, study, view, estimate_item(study, recommendation)))

    return items


def _item(
    archive: Archive, study: Study, view: ProposalView, expected: EstimateItem | None
) -> BestItem:
    weights = archive.weights.of_evaluation(view.id)
    return BestItem(
        **vars(proposal_item(study, view)),
        weights=None if weights is None else weights.uri,
        expected=expected,
    )


def _print(study: Study, items: Sequence[BestItem]) -> None:
    """Write a table with columns for test metrics, costs, constrained quantities and weights."""
    metrics = [item.metrics for item in items]
    tested = set()
    for values in metrics:
        tested |= {name for name in values if name.startswith(TEST)}

    tests = sorted(tested - {study.objective})
    costs = []
    for name in dict.fromkeys((*SHOWN_COSTS, *(limit.name for limit in study.constraints))):
        shown = name in SHOWN_COSTS or name not in (study.objective, *tests)
        if shown and any(values.get(name) is not None for values in metrics):
            costs.append(name)

    with_weights = any(item.weights for item in items)
    with_names = any(item.configuration for item in items)
    columns = ["number", "architecture"]
    if with_names:
        columns.append("configuration")

    if items[0].expected is not None:
        columns += ["expected", "95 %", "evaluations"]

    own_unit = own_unit_metric(study)
    beside = [] if own_unit is None or own_unit in tests else [own_unit]
    columns += [study.objective, *beside, *tests, *costs, "epochs", "seconds"]
    if with_weights:
        columns.append("weights")

    configurations = short_settings([item.configuration for item in items])
    rows = []
    for item, configuration in zip(items, configurations, strict=True):
        row: list[Any] = [item.number, item.architecture]
        if with_names:
            row.append(configuration)

        if item.expected is not None:
            row += [item.expected.mean, interval(item.expected), item.expected.evaluations]

        row.append(item.value)
        row += list(map(item.metrics.get, [*beside, *tests]))
        row += [_cost(item.metrics.get(name)) for name in costs]
        row += [item.epochs, item.seconds]
        if with_weights:
            row.append(item.weights)

        rows.append(row)

    print_table(columns, rows)


def _cost(value: float | None) -> float | int | None:
    """Return a count as an integer, which a table shows with all its digits."""
    return int(value) if value is not None and value.is_integer() else value

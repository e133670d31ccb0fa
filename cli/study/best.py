"""`archive study best`: the best architectures of a study."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
from archive.cli.study.estimates import interval
from archive.cli.study.items import proposal_item
from archive.cli.study.pareto import print_pareto, print_recommended
from archive.searches.results import (
    EstimateItem,
    best_view,
    best_views,
    estimate_item,
    nearest_item,
    pareto_item,
    recommended_item,
    unmet,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from archive.agents.recommendation import Recommendation
    from archive.errors import ArchiveError
    from archive.store.records import Study
    from archive.store.snapshots import Snapshot

TEST = "test_"
SHOWN_COSTS = ("params", "flops", "latency_ms")


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
    objectives, the Pareto set of the posterior means is shown beside that of the measured values.
    Results without a seed on record, as those of most tables, have no noise.

    The exit code is 3 where no result has a value that meets the constraints.
    """
    from archive.agents import recommendation
    from archive.store.metric_units import units_of

    with open_archive(ctx) as archive:
        snapshot = archive.studies.snapshot(name)
        pareto = pareto_item(snapshot)
        recommended = recommended_item(archive, snapshot, _tell_unknown) if pareto else None
        ranked = None if pareto else recommendation.of_study(archive, snapshot.study, _tell_unknown)
        items = (
            _by_value(snapshot, count)
            if ranked is None
            else _by_estimate(snapshot, ranked.ranked[:count])
        )
        for item in items:
            weights = archive.weights.of_evaluation(item["proposal"])
            item["weights"] = weights and weights.uri

    study = snapshot.study
    lucky = snapshot.incumbent if ranked else None
    if as_json:
        about = {"study": study.name, "objective": study.objective, "direction": study.direction}
        noise = {"noise": ranked and ranked.noise, "luckiest": lucky and lucky.id}
        sets = {"pareto": pareto, "recommended": recommended}
        print_json(
            {**about, **noise, **sets, "nearest": nearest_item(snapshot), "proposals": items}
        )
    elif pareto is not None:
        print_pareto(pareto)
        if recommended is not None:
            print_line()
            print_recommended(recommended)
    elif items:
        _print(study, items)
        if ranked is not None and lucky is not None:
            deviation = "" if ranked.noise is None else f"; noise of a training: {ranked.noise:.2g}"
            print_line(
                f"luckiest value: {lucky.value:.4g}, {lucky.architecture_key} "
                f"(#{lucky.number}){deviation}"
            )
    else:
        print_message(
            unmet(snapshot) or (f"the study {study.name} has no evaluation with a value yet")
        )

    if not as_json and items and (units := units_of(study)) is not None:
        print_line(units)

    if not items and pareto is None:
        ctx.exit(ExitCode.NOTHING_SUCCEEDED)


def _tell_unknown(error: ArchiveError) -> None:
    """Write why no estimates of noise-free values are shown."""
    print_message(
        f"the results have noise, and are shown as measured, without estimates: {error}", wrap=True
    )


def _by_value(snapshot: Snapshot, count: int) -> list[dict[str, Any]]:
    return [
        {**proposal_item(snapshot.study, view), "expected": None} for view in snapshot.best(count)
    ]


def _by_estimate(snapshot: Snapshot, ranked: Sequence[Recommendation]) -> list[dict[str, Any]]:
    """Return the best evaluation of each network in the study, with the estimate."""
    views = best_views(snapshot)
    study = snapshot.study
    return [
        {**proposal_item(study, view), "expected": estimate_item(study, one)}
        for one in ranked
        if (view := best_view(views, one)) is not None
    ]


def _print(study: Study, items: list[dict[str, Any]]) -> None:
    """Write a table; with columns for metrics on test data, costs, constrained quantities, and
    weights, where known.
    """
    tested = sorted(
        {metric for item in items for metric in item["metrics"] if metric.startswith(TEST)}
        - {study.objective}
    )
    kept = ["weights"] if any(item["weights"] for item in items) else []
    constrained = (
        each.name for each in study.constraints if each.name not in (study.objective, *tested)
    )
    asked = dict.fromkeys((*SHOWN_COSTS, *constrained))
    costs = [name for name in asked if any(item["metrics"].get(name) is not None for item in items)]
    expected = ("expected", "95 %", "evaluations") if items[0]["expected"] else ()
    rows = [
        (
            *(item["number"], item["architecture"]),
            *(_estimate(item["expected"]) if expected else ()),
            item["value"],
            *(item["metrics"].get(metric) for metric in tested),
            *(_cost(item["metrics"].get(cost)) for cost in costs),
            *(item["epochs"], item["seconds"]),
            *(item[name] for name in kept),
        )
        for item in items
    ]
    print_table(
        (
            "number",
            "architecture",
            *expected,
            study.objective,
            *tested,
            *costs,
            "epochs",
            "seconds",
            *kept,
        ),
        rows,
    )


def _estimate(estimate: EstimateItem) -> tuple[Any, ...]:
    return estimate.mean, interval(estimate), estimate.evaluations


def _cost(value: float | None) -> float | int | None:
    """Return a count as an integer, which a table shows with all its digits."""
    return int(value) if value is not None and value.is_integer() else value

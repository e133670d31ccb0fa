"""`archive study best`: the best architectures of a study."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from archive.cli.names import STUDY
from archive.cli.parameters import Count
from archive.cli.render import json_option, open_archive, print_json, print_message, print_table
from archive.cli.study.items import proposal_item

if TYPE_CHECKING:
    from archive.store.records import Study

TEST = "test_"
SHOWN_COSTS = ("params", "flops", "latency_ms")


@click.command("best")
@click.argument("name", metavar="STUDY", type=STUDY)
@click.option("--top", "count", type=Count(1), default=1, help="Number of proposals.")
@json_option
@click.pass_context
def best(ctx: click.Context, name: str, count: int, as_json: bool) -> None:
    """Show the best architectures of a study, the best first.

    Results of whole trainings only, unless a study with rungs has none yet. Of equal values, the earlier one comes
    first.
    """
    with open_archive(ctx) as archive:
        snapshot = archive.studies.snapshot(name)
        items = [proposal_item(snapshot.study, view) for view in snapshot.best(count)]
        for item in items:
            weights = archive.weights.of_evaluation(item["proposal"])
            item["weights"] = weights and weights.uri
    study = snapshot.study
    if as_json:
        about = {"study": study.name, "objective": study.objective, "direction": study.direction}
        print_json({**about, "proposals": items})
    elif items:
        _print(study, items)
    else:
        print_message(f"the study {study.name} has no evaluation with a value yet")


def _print(study: Study, items: list[dict[str, Any]]) -> None:
    """Write a table; a column for each metric on test data, for the costs, and for the weights where some were kept."""
    tested = sorted({metric for item in items for metric in item["metrics"] if metric.startswith(TEST)})
    kept = ["weights"] if any(item["weights"] for item in items) else []
    costs = [name for name in SHOWN_COSTS if any(item["metrics"].get(name) is not None for item in items)]
    rows = [
        (
            *(item["number"], item["architecture"], item["value"]),
            *(item["metrics"].get(metric) for metric in tested),
            *(_cost(item["metrics"].get(cost)) for cost in costs),
            *(item["epochs"], item["seconds"]),
            *(item[name] for name in kept),
        )
        for item in items
    ]
    print_table(("number", "architecture", study.objective, *tested, *costs, "epochs", "seconds", *kept), rows)


def _cost(value: float | None) -> float | int | None:
    """Return a count as an integer, which a table shows with all its digits."""
    return int(value) if value is not None and value.is_integer() else value

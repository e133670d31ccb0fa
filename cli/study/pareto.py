"""The Pareto set of a study with several objectives, as an item of the JSON output and as a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from archive.cli.render import print_line, print_table

if TYPE_CHECKING:
    from archive.store.records import Study
    from archive.store.snapshots import Snapshot


def objective_items(study: Study) -> list[dict[str, str]]:
    """Return the objectives of a study (`archive.cli.documents.pareto.ObjectiveItem`)."""
    return [{"name": each.name, "direction": each.direction} for each in study.objectives]


def pareto_item(snapshot: Snapshot) -> dict[str, Any] | None:
    """Return the Pareto set (`archive.cli.documents.pareto.ParetoItem`); None with one objective or without results."""
    if not snapshot.study.further:
        return None
    from archive.queries.hypervolume import pareto_set

    found = pareto_set(snapshot)
    if found is None:
        return None
    names = [each.name for each in found.objectives]
    return {
        "reference": dict(zip(names, found.reference, strict=True)),
        "hypervolume": found.hypervolume,
        "history": [{"number": number, "hypervolume": volume} for number, volume in found.history],
        "left_out": found.left_out,
        "proposals": [
            {
                "proposal": view.id,
                "number": view.number,
                "architecture": view.architecture_key,
                "values": dict(zip(names, values, strict=True)),
                "evaluations": count,
            }
            for view, values, count in zip(found.proposals, found.values, found.evaluations, strict=True)
        ],
    }


def print_pareto(item: Mapping[str, Any]) -> None:
    """Write the Pareto set as a table, and the hypervolume with its reference point."""
    names = list(item["reference"])
    repeated = any(one["evaluations"] > 1 for one in item["proposals"])
    rows = [
        [one["number"], one["architecture"], *one["values"].values(), *([one["evaluations"]] if repeated else [])]
        for one in item["proposals"]
    ]
    print_table(("number", "architecture", *names, *(["evaluations"] if repeated else [])), rows, title="Pareto set")
    reference = ", ".join(f"{name} {value:.4g}" for name, value in item["reference"].items())
    print_line(f"hypervolume {item['hypervolume']:.4g}, from the worst values: {reference}")
    if item["left_out"]:
        print_line(f"{item['left_out']} results lack an objective, and are left out")

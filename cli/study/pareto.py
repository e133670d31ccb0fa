"""The Pareto sets of a study with several objectives, measured and recommended: JSON items and tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archive.cli.render import print_line, print_table
from archive.cli.study.estimates import interval

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.errors import ArchiveError
    from archive.known_costs import KnownCosts
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

    pareto = pareto_set(snapshot)
    if pareto is None:
        return None
    names = [each.name for each in pareto.objectives]
    return {
        "reference": dict(zip(names, pareto.reference, strict=True)),
        "hypervolume": pareto.hypervolume,
        "history": [{"number": number, "hypervolume": volume} for number, volume in pareto.history],
        "left_out": pareto.left_out,
        "proposals": [
            {
                "proposal": view.id,
                "number": view.number,
                "architecture": view.architecture_key,
                "values": dict(zip(names, values, strict=True)),
                "evaluations": count,
            }
            for view, values, count in zip(pareto.proposals, pareto.values, pareto.evaluations, strict=True)
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
        n = item["left_out"]
        lacking = "1 result lacks an objective and is" if n == 1 else f"{n} results lack an objective and are"
        print_line(f"{lacking} left out")


def recommended_item(
    archive: Archive, snapshot: Snapshot, unknown: Callable[[ArchiveError], object]
) -> dict[str, Any] | None:
    """Return the recommended set (`archive.cli.documents.pareto.RecommendedPareto`); None without noise.

    `unknown` is called with the reason why the space of a study with noise is not known here.
    """
    from archive.agents.objectives import recommendation
    from archive.store.records import sign

    home = archive.connection.settings.home
    recommended = recommendation.of_snapshot(archive, snapshot, lambda study: _known_costs(study, home), unknown)
    if recommended is None:
        return None
    signs = {each.name: sign(each.direction) for each in snapshot.study.objectives}
    return {
        "noise": dict(zip(signs, recommended.noises, strict=True)),
        "proposals": [
            {
                "proposal": view.id,
                "number": view.number,
                "architecture": view.architecture_key,
                "expected": {
                    name: {
                        "mean": better * one.score,
                        **_bounds(better, one.low, one.high),
                        "evaluations": one.evaluations,
                    }
                    for (name, better), one in zip(signs.items(), estimates, strict=True)
                },
            }
            for view, estimates in zip(recommended.proposals, recommended.estimates, strict=True)
        ],
    }


def print_recommended(item: Mapping[str, Any]) -> None:
    """Write the recommended Pareto set as a table, and the noise of each objective."""
    names = list(item["noise"])
    columns = [part for name in names for part in (name, *(["95 %"] if item["noise"][name] != 0.0 else []))]
    rows = []
    for one in item["proposals"]:
        row = [one["number"], one["architecture"]]
        for name in names:
            estimate = one["expected"][name]
            row += [estimate["mean"], *([interval(estimate)] if item["noise"][name] != 0.0 else [])]
        rows.append([*row, max(each["evaluations"] for each in one["expected"].values())])
    title = "Recommended Pareto set, by expected values"
    print_table(("number", "architecture", *columns, "evaluations"), rows, title=title)
    noises = [f"{name} {noise:.2g}" for name, noise in item["noise"].items() if noise]
    if noises:
        print_line(f"noise of an evaluation: {', '.join(noises)}")


def _bounds(better: float, low: float | None, high: float | None) -> dict[str, float | None]:
    ends = sorted(better * end for end in (low, high) if end is not None)
    return dict(zip(("low", "high"), ends or (None, None), strict=True))


def _known_costs(study: Study, home: Path) -> KnownCosts:
    from archive.errors import ArchiveError
    from archive.known_costs import NO_COSTS
    from archive.trainer.tasks import known_costs

    try:
        return known_costs.of_study(study, home)
    except ArchiveError:
        # A file of the task that may not be opened here: its costs are then estimated from the results.
        return NO_COSTS

"""The Pareto sets of a study with several objectives, measured and recommended, as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from archive.cli.render import print_line, print_table
from archive.cli.study.estimates import interval

if TYPE_CHECKING:
    from archive.searches.results import ParetoItem, RecommendedPareto


def print_pareto(pareto: ParetoItem) -> None:
    """Write the Pareto set as a table, and the hypervolume with its reference point."""
    columns = ["number", "architecture", *pareto.reference]
    repeated = any(proposal.evaluations > 1 for proposal in pareto.proposals)
    if repeated:
        columns.append("evaluations")

    rows = []
    for proposal in pareto.proposals:
        row: list[Any] = [proposal.number, proposal.architecture, *proposal.values.values()]
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
    columns = ["number", "architecture"]
    for name, noise in recommended.noise.items():
        columns.append(name)
        if noise != 0.0:
            columns.append("95 %")

    rows = []
    for proposal in recommended.proposals:
        row: list[Any] = [proposal.number, proposal.architecture]
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

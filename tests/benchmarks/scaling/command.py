"""Forecasts of ScAn-Bench: `python -m tests.benchmarks scaling`."""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np


@click.command(short_help="Forecast larger trainings of language models from smaller ones.")
@click.option("--folder", type=click.Path(path_type=Path), required=True, help="Tables.")
@click.option("--below", default=1e18, show_default=True, help="Operations of the runs to learn.")
@click.option("--until", default=1e30, help="Operations of the runs to forecast, at most.")
@click.option("--choose", type=float, help="Choose among models of this many operations or more.")
@click.option("--seeds", default=20, show_default=True, help="Searches of --choose.")
def scaling(folder: Path, below: float, until: float, choose: float | None, seeds: int) -> None:
    """Print the errors of forecasts, and the coverage of their intervals of 90 %.

    With --choose: the regret of the chosen model, in percent of the least loss.
    """
    from tests.benchmarks.scaling.scan_bench import read_table

    table = read_table(folder)
    small = np.flatnonzero(table.flops < below)
    if choose is not None:
        from tests.benchmarks.scaling.selection import METHODS, ModelClass

        large = np.flatnonzero((table.flops >= choose) & (table.flops < until))
        models = ModelClass(table, small, large)
        click.echo(f"{len(large)} models, {len(small)} small ones")
        for name, method in METHODS.items():
            regrets = 100.0 * np.array([method(models, seed) for seed in range(seeds)])
            error = regrets.std(ddof=1) / len(regrets) ** 0.5
            within = int((regrets <= 1.0).sum())
            click.echo(f"{name:10} {regrets.mean():.2f} +- {error:.2f} %, {within} within 1 %")

        return

    from archive.agents.scaling import forecast, laws

    learned = table.runs.take(small)
    rows = np.flatnonzero((table.flops >= below) & (table.flops < until))
    asked = table.runs.take(rows)
    click.echo(f"from {len(small)} runs, {len(rows)} larger ones")
    for form in laws.FORMS.values():
        law = laws.fit(form, learned.params, learned.tokens, learned.losses)
        errors = np.abs(law.loss(asked.params, asked.tokens) - asked.losses)
        click.echo(f"{form.name:22} {errors.mean():.3f}, median {np.median(errors):.3f}")

    for form in laws.FORMS.values():
        model = forecast.fit(table.space, learned, form, np.random.default_rng(0))
        expected = model.forecast(asked)
        errors = np.abs(expected.median - asked.losses)
        inside = (asked.losses >= expected.low) & (asked.losses <= expected.high)
        width = float(np.median(expected.high - expected.low))
        click.echo(
            f"{form.name:11} + residuals {errors.mean():.3f}, median {np.median(errors):.3f}, "
            f"coverage {inside.mean():.3f}, width {width:.3f}"
        )

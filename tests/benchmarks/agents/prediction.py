"""Prediction of families that were left out, beside random forests on sizes.

python -m tests.benchmarks prediction --task imagenet-1k --protocol timm/a1_in1k@224

It needs an archive with results (`archive import zoo timm`).
"""

from __future__ import annotations

import click
import numpy as np

from archive.agents.prediction.features import at_side
from archive.agents.prediction.predicting import choose, results_of, row_of, validate
from archive.agents.prediction.process import fit
from archive.agents.prediction.stored_features import features_of
from archive.agents.prediction.table import LearnedRows
from archive.cli.render import open_archive, print_table

FOLDS = 10
BASELINES = {
    "parameters": ("size: parameters",),
    "multiply-adds": ("size: multiply-adds",),
    "sizes and data": (
        "size: parameters",
        "size: multiply-adds",
        "size: activations",
        "size: side",
    ),
}


@click.command()
@click.option("--task", required=True)
@click.option("--protocol", required=True)
@click.option("--metric")
@click.option("--space", default="torch")
@click.pass_context
def prediction(
    ctx: click.Context, task: str, protocol: str, metric: str | None, space: str
) -> None:
    """Print rank correlations for families left out, of all results and without further data."""
    with open_archive(ctx) as archive:
        results = choose(results_of(archive, task, protocol, metric), protocol)
        results = [result for result in results if result.space == space]
        keys = list(dict.fromkeys(result.architecture for result in results))
        described = features_of(archive, space, keys)

    table = LearnedRows([row_of(result) for result in results], described)
    fitted = fit(table.inputs, table.values, table.families)
    rows = [("archive predict", *rank(table, fitted.left_out.means))]
    for name, columns in BASELINES.items():
        rows.append((f"forest on {name}", *rank(table, forest(table, columns))))

    print_table(("model", "all results", "without further data"), rows)
    outcome = validate(table, fitted)
    print(f"{len(results)} results, {outcome.families} families, {outcome.coverage:.3f} covered")


def rank(table: LearnedRows, predicted: np.ndarray) -> tuple[float, float]:
    """Return Spearman correlations: of all results, and of those without further data."""
    from scipy.stats import spearmanr

    alone = np.array([row.recipe.data == 0.0 for row in table.rows])
    correlations = []
    for chosen in (np.full(len(alone), True), alone):
        correlations.append(float(spearmanr(predicted[chosen], table.values[chosen]).statistic))

    return correlations[0], correlations[1]


def forest(table: LearnedRows, columns: tuple[str, ...]) -> np.ndarray:
    """Return the predictions of a random forest on sizes, in folds of families."""
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.model_selection import GroupKFold, cross_val_predict

    inputs = []
    for row in table.rows:
        described = at_side(table.features[row.network], row.recipe.side)
        further = [float(row.recipe.data > 0.0)] if len(columns) > 1 else []
        inputs.append([described[name] for name in columns] + further)

    model = RandomForestRegressor(100, min_samples_leaf=2, random_state=0)
    folds = GroupKFold(min(FOLDS, len(set(table.families))))
    return cross_val_predict(model, inputs, table.values, groups=table.families, cv=folds)

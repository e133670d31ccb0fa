"""Ranks of vision transformers after thirty labels: `python -m tests.benchmarks autoformer`.

| model    | ranks by                                                                           |
|----------|------------------------------------------------------------------------------------|
| archive  | posterior mean of `archive.agents.advice.study_surrogate`, whose parameters are the|
|          | width, the depth, and ratio and heads of each layer                                |
| forest   | scikit-learn's random forest of 500 trees on the same parameters, with 0 where a   |
|          | layer does not exist                                                               |
| width    | the width alone                                                                    |

In each split, a permutation by its number, the first thirty of a hundred transformers have labels;
the others are ranked. The number is Kendall's tau of predictions and accuracies.

The transformers are of AutoFormer's space, trained by Z. Wei et al., Auto-Prox: Training-Free Vision
Transformer Architecture Search via Automatic Proxy Discovery, AAAI 2024.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
from scipy.stats import kendalltau

from archive import space
from archive.agents.advice import study_surrogate
from archive.agents.base import Observation
from archive.agents.surrogates.base import Array
from archive.spaces.parameters import Parameters

LABELS = 30
TREES = 500
COLUMNS = ("imagenet_super_acc", "c100_base_acc", "flower_base_acc", "chaoyang_base_acc")
"""Accuracies with the supernet's weights, and of plain trainings on three data sets."""
MODELS = ("archive", "forest", "width")


@click.command(short_help="Rank vision transformers after thirty labels.")
@click.option("--splits", default=50, help="Number of splits.")
@click.option("--folder", type=click.Path(path_type=Path), required=True, help="Tables.")
def autoformer(splits: int, folder: Path) -> None:
    """Print Kendall's tau on the seventy transformers without a label, and paired differences."""
    import torch

    rows = torch.load(folder / "autoformer_100.pth", map_location="cpu", weights_only=True)
    designs = [_values(row["arch"]) for row in rows]
    for column in COLUMNS:
        accuracies = np.array([row[column] for row in rows])
        taus = np.array([_split(designs, accuracies, split) for split in range(splits)])
        differences = taus[:, :1] - taus
        errors = taus.std(axis=0, ddof=1) / splits**0.5
        paired = differences.std(axis=0, ddof=1) / splits**0.5
        for index, model in enumerate(MODELS):
            line = f"{taus[:, index].mean():.3f} +- {errors[index]:.3f}"
            behind = f"{differences[:, index].mean():+.3f} +- {paired[index]:.3f}"
            click.echo(f"{column:18} {model:8} {line}  (archive ahead by {behind})")


def _values(design: Mapping[str, Any]) -> dict[str, Any]:
    values = {"width": int(design["hidden_dim"]), "depth": int(design["depth"])}
    for layer in range(values["depth"]):
        values[f"ratio_{layer}"] = float(design["mlp_ratio"][layer])
        values[f"heads_{layer}"] = int(design["num_heads"][layer])

    return values


def _split(designs: Sequence[Mapping[str, Any]], accuracies: Array, split: int) -> list[float]:
    """Return tau of each model."""
    order = np.random.default_rng(split).permutation(len(designs))
    labelled, unlabelled = order[:LABELS], order[LABELS:]
    searched = _space(designs)
    networks = [searched.of_names(values) for values in designs]
    observations = []
    for index in labelled:
        observations.append(Observation(networks[index], float(accuracies[index]), str(index)))

    surrogate = study_surrogate.fit(searched, observations).surrogate
    assert surrogate is not None
    means, _ = surrogate.predict([networks[index] for index in unlabelled])
    features = _features(designs)
    widths = features[unlabelled, 0]
    forest = _forest(features[labelled], accuracies[labelled], features[unlabelled])
    truths = accuracies[unlabelled]
    return [float(kendalltau(scores, truths).statistic) for scores in (means, forest, widths)]


def _space(designs: Sequence[Mapping[str, Any]]) -> Parameters:
    """Return the space with the options that occur."""
    options: dict[str, set[Any]] = {}
    for values in designs:
        for name, value in values.items():
            options.setdefault(name, set()).add(value)

    least = min(options["depth"])
    declared: dict[str, Any] = {}
    for name, occurring in options.items():
        _, _, layer = name.partition("_")
        when = f"depth > {layer}" if layer and int(layer) >= least else None
        declared[name] = space.ordinal(sorted(occurring), when=when)

    return Parameters(space.Space(declared))


def _features(designs: Sequence[Mapping[str, Any]]) -> Array:
    names = sorted({name for values in designs for name in values}, reverse=True)
    rows = [[float(values.get(name, 0.0)) for name in names] for values in designs]
    return np.array(rows)


def _forest(features: Array, scores: Array, unlabelled: Array) -> Array:
    from sklearn.ensemble import RandomForestRegressor

    forest = RandomForestRegressor(TREES, random_state=0)
    predicted: Array = forest.fit(features, scores).predict(unlabelled)
    return predicted

"""Make two tables of real trainings on the space `choices`.

Every combination of decisions is trained.

    python docs/scripts/trained_tables.py FOLDER

| table      | decisions   | value                                                                           |
|------------|-------------|---------------------------------------------------------------------------------|
| `boosting` | 7 of 2 to 5 | R2 of gradient boosting, one training of each of 4,320 settings; a column for   |
|            |             | each of the data sets `protein`, `diabetes` and `friedman` (synthetic)          |
| `layers`   | chain of 5  | accuracy of 16,807 networks of five layers on `digits`, mean of three trainings |

`boosting` takes six minutes of processor time, and `layers` ten. The data of `protein` are fetched
where they are missing. Networks with the same first two layers are trained together, as one batch
of matrices.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.datasets import load_diabetes, load_digits, make_friedman1
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import r2_score
from torch import Tensor
from torch.nn import functional as F

from archive.trainer.datasets import readers, sources

Floats = NDArray[np.float64]
Columns = Mapping[str, Sequence[float]]

BOOSTING: dict[str, Sequence[float | str]] = {
    "learning_rate": [0.02, 0.05, 0.1, 0.2, 0.5],
    "max_leaf_nodes": [4, 8, 16, 32],
    "min_samples_leaf": [2, 10, 40, 120],
    "l2_regularization": [0, 1, 10],
    "max_iter": [10, 30, 90],
    "max_features": [0.2, 0.5, 1.0],
    "loss": ["squared_error", "absolute_error"],
}
ROWS = {"protein": (1000, 2000), "diabetes": (300, 142), "friedman": (300, 900)}
"""Number of rows to train on and to test on, by data set."""

LAYERS = ("skip", "relu", "tanh", "residual", "norm", "dropout", "gate")
DEPTH = 5
WIDTH = 12
TRAINED = 640
VALIDATED = 600
EPOCHS = 10
BATCH = 64


def boosting(name: str, seed: int = 0) -> list[float]:
    """Return R2 on held-out rows of a data set, for every combination of settings."""
    inputs, targets, trained = rows(name)
    decisions = {key: options for key, options in BOOSTING.items() if key != "max_iter"}
    lengths = [int(length) for length in BOOSTING["max_iter"]]
    place = list(BOOSTING).index("max_iter")
    values = {}
    for settings in product(*decisions.values()):
        named = dict(zip(decisions, settings, strict=True))
        model = HistGradientBoostingRegressor(
            early_stopping=False, random_state=seed, max_iter=max(lengths), **named
        )
        model.fit(inputs[:trained], targets[:trained])
        # The first trees of a longer training are those of a shorter one.
        for length, predicted in enumerate(model.staged_predict(inputs[trained:]), 1):
            if length in lengths:
                values[*settings[:place], length, *settings[place:]] = float(
                    r2_score(targets[trained:], predicted)
                )

    return [values[settings] for settings in product(*BOOSTING.values())]


def rows(name: str) -> tuple[Floats, Floats, int]:
    """Return the inputs and targets of a data set in random order.

    Return also the number of those to train on.
    """
    trained, held_out = ROWS[name]
    if name == "diabetes":
        inputs, targets = load_diabetes(return_X_y=True)
    elif name == "friedman":
        inputs, targets = make_friedman1(trained + held_out, noise=1.0, random_state=0)
    else:
        read = readers.read(name, sources.locate(name, "official"))
        inputs = read.inputs
        targets = read.targets

    order = np.random.default_rng(0).permutation(len(targets))[: trained + held_out]
    return inputs[order], targets[order] / targets.std(), trained


class Batch:
    """Networks of one depth and width, whose weights are stacked.

    Args:
        layers: Numbers of the layers, (networks, DEPTH).
        generator: Source of the initial weights and of dropout.
    """

    def __init__(self, layers: NDArray[np.int64], generator: torch.Generator) -> None:
        self._generator = generator
        self._size = len(layers)
        self._input, self._output = self._weights(64, WIDTH), self._weights(WIDTH, 10)
        self._weight = [self._weights(WIDTH, WIDTH) for _ in range(DEPTH)]
        self._bias = [torch.zeros(self._size, 1, WIDTH, requires_grad=True) for _ in range(DEPTH)]
        self._members = [
            [torch.tensor(np.flatnonzero(column == number)) for number in range(len(LAYERS))]
            for column in layers.T
        ]

    def _weights(self, inputs: int, outputs: int) -> Tensor:
        weights = (
            torch.randn(self._size, inputs, outputs, generator=self._generator)
            * (1.5 / inputs) ** 0.5
        )
        trained: Tensor = weights.requires_grad_()
        return trained

    def parameters(self) -> list[Tensor]:
        """Return all weights."""
        return [self._input, self._output, *self._weight, *self._bias]

    def logits(self, images: Tensor, training: bool) -> Tensor:
        """Return the logits of every network, (networks, images, 10)."""
        states = torch.relu(images.expand(self._size, *images.shape) @ self._input)
        for depth, members in enumerate(self._members):
            parts = [
                self._layer(
                    name,
                    states[which],
                    self._weight[depth][which],
                    self._bias[depth][which],
                    training,
                )
                for name, which in zip(LAYERS, members, strict=True)
            ]
            states = torch.cat(parts)[torch.argsort(torch.cat(members))]

        return states @ self._output

    def _layer(
        self, name: str, states: Tensor, weight: Tensor, bias: Tensor, training: bool
    ) -> Tensor:
        if name == "skip":
            return states

        if name == "norm":
            return F.layer_norm(states, (WIDTH,))

        linear = torch.baddbmm(bias, states, weight)
        if name == "dropout" and training:
            kept = torch.rand(linear.shape, generator=self._generator) > 0.3
            return torch.relu(linear) * kept / 0.7

        functions: dict[str, Callable[[], Tensor]] = {
            "tanh": lambda: torch.tanh(linear),
            "residual": lambda: states + torch.relu(linear),
            "gate": lambda: states * torch.sigmoid(linear),
        }
        return functions.get(name, lambda: torch.relu(linear))()


def layers(seed: int) -> list[float]:
    """Return the validation accuracy of every network after ten epochs."""
    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.target))[: TRAINED + VALIDATED]
    images = torch.tensor(digits.data[order] / 16.0, dtype=torch.float32)
    classes = torch.tensor(digits.target[order])
    networks = np.array(list(product(range(len(LAYERS)), repeat=DEPTH)))
    values: list[float] = []
    for number, part in enumerate(np.split(networks, len(LAYERS) ** 2)):
        generator = torch.Generator().manual_seed(1000 * seed + number)
        batch = Batch(part, generator)
        optimizer = torch.optim.Adam(batch.parameters(), lr=5e-3, foreach=False)
        for _ in range(EPOCHS):
            for rows in torch.split(torch.randperm(TRAINED, generator=generator), BATCH):
                logits = batch.logits(images[rows], training=True)
                targets = classes[rows].repeat(len(part))
                loss = F.cross_entropy(logits.flatten(0, 1), targets, reduction="sum") / BATCH
                optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()

        with torch.no_grad():
            predicted = batch.logits(images[TRAINED:], training=False).argmax(-1)

        values += (predicted == classes[TRAINED:]).float().mean(-1).tolist()

    return values


def write(
    file: Path, decisions: Sequence[str], options: Iterable[Sequence[object]], values: Columns
) -> None:
    """Write a table: a column for each decision, and those of the values."""
    with file.open("w", newline="") as opened:
        table = csv.writer(opened)
        table.writerow([*decisions, *values])
        for row, *numbers in zip(options, *values.values(), strict=True):
            table.writerow([*row, *(f"{number:.5f}" for number in numbers)])


def main() -> None:
    """Write both tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    settings = [f"set:{name}" for name in BOOSTING]
    write(
        folder / "boosting.csv",
        settings,
        product(*BOOSTING.values()),
        {name: boosting(name) for name in ROWS},
    )
    places = [f"chain:layer{depth}" for depth in range(1, DEPTH + 1)]
    mean = np.mean([layers(seed) for seed in range(3)], axis=0).tolist()
    write(folder / "layers.csv", places, product(LAYERS, repeat=DEPTH), {"value": mean})


if __name__ == "__main__":
    main()

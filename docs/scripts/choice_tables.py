"""Make tables of made-up functions on the space `choices`.

They are for searches in which decisions matter differently.

    python docs/scripts/choice_tables.py FOLDER

| table          | decisions   | value                                                                             |
|----------------|-------------|-----------------------------------------------------------------------------------|
| `interactions` | 14 of 2     | four effects of single decisions, eight of two together, three of three           |
| `rugged`       | 9 of 3      | an NK landscape (Kauffman, 1993): each decision acts with two others              |
| `grid`         | 7 of 3 to 6 | a quadratic bowl over ordered options, as of hyperparameters, with a bad border   |
| `widths`       | chain of 5  | as of a network of five layers: diminishing returns of width, loss at bottlenecks |
| `bigrams`      | chain of 8  | the sum over runs of two and three operations                                     |

Every value has a normal error of standard deviation 0.1 to 0.2 that never changes, as the luck of
one training does.
"""

from __future__ import annotations

import argparse
import csv
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Made = NDArray[np.int64]


def interactions(made: Made, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return effects of one, two and three of fourteen binary decisions."""
    signs = 2.0 * made - 1.0
    value = np.full(len(made), 80.0)
    for size, count, spread in ((1, 4, 1.0), (2, 8, 0.8), (3, 3, 0.8)):
        for _ in range(count):
            value += rng.normal(0.0, spread) * signs[
                :, rng.choice(made.shape[1], size, replace=False)
            ].prod(axis=1)

    return value + rng.normal(0.0, 0.1, len(made))


def rugged(made: Made, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return the sum of a random table of each decision and two others."""
    value = np.full(len(made), 80.0)
    for at in range(made.shape[1]):
        others = rng.choice([one for one in range(made.shape[1]) if one != at], 2, replace=False)
        value += rng.normal(0.0, 1.0, (3, 3, 3))[tuple(made[:, [at, *others]].T)]

    return value + rng.normal(0.0, 0.1, len(made))


def grid(made: Made, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return a bowl with a random centre and random axes."""
    places = made / made.max(axis=0)
    root = rng.normal(0.0, 1.0, (made.shape[1],) * 2)
    away = places - rng.uniform(0.2, 0.8, made.shape[1])
    bowl = np.einsum("ni,ij,nj->n", away, root @ root.T / made.shape[1], away)
    values: NDArray[np.float64] = (
        90.0 - 12.0 * bowl - 6.0 * (places[:, 0] > 0.9) + rng.normal(0.0, 0.15, len(made))
    )
    return values


def widths(made: Made, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return diminishing returns of each width, minus differences of neighbours.

    A difference is taken from a growth by one.
    """
    returns = np.exp(-0.35 * made) @ np.array([1.0, 1.5, 2.0, 3.0, 4.0])
    bottlenecks = 0.15 * np.abs(np.diff(made, axis=1) - 1).sum(axis=1)
    values: NDArray[np.float64] = 75.0 - returns - bottlenecks + rng.normal(0.0, 0.2, len(made))
    return values


def bigrams(made: Made, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return the sum of random values of each two and each three operations in a row."""
    value = np.full(len(made), 80.0)
    for size, spread in ((2, 1.0), (3, 0.7)):
        of_run = rng.normal(0.0, spread, (3,) * size)
        for at in range(made.shape[1] - size + 1):
            value += of_run[tuple(made[:, at : at + size].T)]

    return value + rng.normal(0.0, 0.1, len(made))


TABLES = {
    "interactions": (interactions, "set", [2] * 14),
    "rugged": (rugged, "set", [3] * 9),
    "grid": (grid, "set", [6, 5, 6, 3, 4, 4, 3]),
    "widths": (widths, "chain", [8] * 5),
    "bigrams": (bigrams, "chain", [3] * 8),
}


def main() -> None:
    """Write one CSV a function."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    for seed, (name, (function, form, sizes)) in enumerate(TABLES.items(), 1):
        made = np.array(list(product(*map(range, sizes))))
        values = function(made, np.random.default_rng(seed))
        with (folder / f"{name}.csv").open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow([*(f"{form}:d{at}" for at in range(len(sizes))), "value"])
            rows.writerows(
                [*options, f"{value:.4f}"]
                for options, value in zip(made.tolist(), values, strict=True)
            )


if __name__ == "__main__":
    main()

"""Coverage of the intervals of `archive study best`, on random tables with noise.

It is the share of intervals that hold the noise-free value.

    python docs/scripts/intervals.py --noise 0.5 --after 20 40

A table has 81 networks of four decisions with three options. A value is the sum of normal effects
of each decision (variance 1), of each pair of decisions (0.3) and of the network itself
(`--deviations`), scaled to a standard deviation of 1 over the table. Evaluations are of random
networks. With `--repeats`, half of them are second evaluations of the best ones so far. A line has
the share of intervals of 95 % that hold the noise-free value, of the best five networks by
posterior mean, and their mean half width.
"""

from __future__ import annotations

import argparse
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from archive import spaces
from archive.agents.base import Observation
from archive.agents.recommendation import Recommendation, recommend

Floats = NDArray[np.float64]

SPACE = spaces.get("choices", decisions={f"d{at}": ["a", "b", "c"] for at in range(4)}, form="set")
EFFECTS = {1: 1.0, 2: 0.3}
"""Variance of the effect of so many decisions together."""
BEST = 5


def table(made: NDArray[np.int64], deviations: float, rng: np.random.Generator) -> Floats:
    """Return the value of each network, with mean 0 and standard deviation 1.

    Args:
        made: (n, 4) options of each network.
        deviations: Variance of what no other network shares.
        rng: Source of randomness.
    """
    values = rng.normal(0.0, deviations**0.5, len(made))
    for size, variance in EFFECTS.items():
        for places in combinations(range(made.shape[1]), size):
            values += rng.normal(0.0, variance**0.5, (3,) * size)[tuple(made[:, places].T)]

    scaled: Floats = (values - values.mean()) / values.std()
    return scaled


def intervals(
    seed: int, count: int, asked: argparse.Namespace
) -> list[tuple[Recommendation, float]]:
    """Return the best networks after `count` evaluations of a random table.

    Each has its noise-free value.
    """
    rng = np.random.default_rng(seed)
    members = list(SPACE.members() or ())
    decisions = SPACE.decisions()
    assert decisions is not None
    made = np.array([decisions.encode(one) for one in members])
    truth = table(made, asked.deviations, rng)
    first = count // 2 if asked.repeats else count
    chosen = rng.choice(len(members), first, replace=False).tolist()
    scores = [truth[at] + asked.noise * rng.normal() for at in chosen]
    again = [chosen[at] for at in np.argsort(scores)[::-1][: count - first]]
    scores += [truth[at] + asked.noise * rng.normal() for at in again]
    seen = [
        Observation(members[at], float(score), str(number), seed=number)
        for number, (at, score) in enumerate(zip([*chosen, *again], scores, strict=True))
    ]
    known: dict[str, float] = {
        one.functional_key: float(value) for one, value in zip(members, truth, strict=True)
    }
    return [
        (one, known[one.architecture.functional_key])
        for one in recommend(SPACE, seen).ranked[:BEST]
    ]


def main() -> None:
    """Print a line for each number of evaluations."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--noise", type=float, default=0.5, help="Standard deviation, in that of the values."
    )
    parser.add_argument(
        "--deviations", type=float, default=0.1, help="Variance of the networks' own deviations."
    )
    parser.add_argument("--after", type=int, nargs="+", default=[20, 40])
    parser.add_argument("--repeats", action="store_true")
    parser.add_argument("--tables", type=int, default=40)
    asked = parser.parse_args()
    for count in asked.after:
        best = [pair for seed in range(asked.tables) for pair in intervals(seed, count, asked)]
        known = [
            (one.low, one.high, value)
            for one, value in best
            if one.low is not None and one.high is not None
        ]
        held = np.mean([low <= value <= high for low, high, value in known])
        width = np.mean([0.5 * (high - low) for low, high, _ in known])
        print(
            f"{count} evaluations, {asked.tables} tables: "
            f"{held:.2f} within, half width {width:.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()

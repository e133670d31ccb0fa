"""The pictures of the guide to plots and of the benchmarks, from real searches.

The searches have a separate archive.

    python docs/scripts/plots.py --search           runs the searches in ARCHIVE_HOME, then draws all pictures
    python docs/scripts/plots.py --search front     runs those of one picture, and draws it into docs/plots
    python docs/scripts/plots.py                    draws all pictures from that archive

The searches on NAS-Bench-201 need its table (ARCHIVE_DATA_DIR). Those on digits train networks for
minutes, those of `front` on Fashion-MNIST for an hour and a half of one core.
"""

from __future__ import annotations

import argparse
import io
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[1] / "plots"
DPI = 90
AGENTS = ("tw", "regularized-evolution", "random")
SEEDS = (1, 2, 3)
TABLE = [f"{agent}-{seed}" for agent in AGENTS for seed in SEEDS]

FRONTS = ("portfolio", "random")

SEARCHES: Mapping[str, str] = {
    **{
        f"{agent}-{seed}": (
            f"--agent {agent} --task nb201-cifar10 --budget 100 --seed {seed} --retrain"
        )
        for seed in SEEDS
        for agent in AGENTS
    },
    "nasbot-digits": "--agent nasbot --budget 30 --seed 1",
    "arc-digits": "--agent arc --task digits --space mlp --budget 30 --seed 1",
    **{
        f"pareto-{agent}": f"--agent {agent} --task fashion-mnist --protocol fashion-mnist/small "
        "--space cnn "
        "--objective valid_accuracy --objective latency_ms --constraint flops<=60M --budget 40"
        for agent in FRONTS
    },
}
"""Study to the options of its search."""

PICTURES: Mapping[str, tuple[str, list[str], dict[str, Any]]] = {
    "progress": ("best-so-far", TABLE, {"by": "agent", "against": "seconds"}),
    "one-study": ("best-so-far", ["regularized-evolution-1"], {}),
    "cost": ("value-and-cost", ["tw-1", "regularized-evolution-1", "random-1"], {"cost": "params"}),
    "curves": ("learning-curves", ["nasbot-digits"], {}),
    "hyperparameters": ("parallel-coordinates", ["arc-digits"], {}),
    "predictions": ("predictions", ["tw-1"], {}),
    "gains": ("operation-gains", ["nasbot-digits"], {}),
    "map": ("network-map", ["tw-1", "random-1"], {"distance": "tree-wasserstein"}),
    "front": ("value-and-cost", [f"pareto-{agent}" for agent in FRONTS], {"cost": "latency_ms"}),
}
"""File to kind of plot, studies and options."""


def search(pictures: Iterable[str]) -> None:
    """Run the searches of pictures; a finished one is not repeated."""
    for study in dict.fromkeys(study for name in pictures for study in PICTURES[name][1]):
        subprocess.run(
            ["archive", "search", *SEARCHES[study].split(), "--study", study], check=True
        )


def draw(pictures: Iterable[str]) -> None:
    """Draw pictures."""
    from PIL import Image

    import archive
    from archive.plots import kinds
    from archive.plots.figures.files import render

    FOLDER.mkdir(exist_ok=True)
    with archive.connect() as store:
        for name in pictures:
            kind, studies, options = PICTURES[name]
            path = FOLDER / f"{name}.png"
            picture = Image.open(
                io.BytesIO(render(kinds.draw(store, kind, studies, **options), "png", DPI))
            )
            # A third of the bytes, for a difference that is hard to see.
            picture.convert("RGB").quantize(64).save(path, optimize=True)
            print(f"{path}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--search", action="store_true", help="run the searches first")
    parser.add_argument("pictures", nargs="*", metavar="PICTURE", help="default: all")
    asked = parser.parse_args()
    chosen = asked.pictures or list(PICTURES)
    if unknown := set(chosen) - set(PICTURES):
        parser.error(f"no picture {min(unknown)}: choose from {', '.join(PICTURES)}")
    if asked.search:
        search(chosen)
    draw(chosen)

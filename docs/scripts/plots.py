"""The pictures of the guide to plots, from real searches in an archive of their own.

    python docs/scripts/plots.py --search     runs the searches of SEARCHES in ARCHIVE_HOME; about ten minutes
    python docs/scripts/plots.py              draws the pictures from that archive into docs/plots

The searches on NAS-Bench-201 need its table (ARCHIVE_DATA_DIR); those on digits train networks.
"""

from __future__ import annotations

import argparse
import io
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[1] / "plots"
DPI = 90
AGENTS = ("tw", "regularized-evolution", "random")
SEEDS = (1, 2, 3)
TABLE = [f"{agent}-{seed}" for agent in AGENTS for seed in SEEDS]

SEARCHES = [
    *(
        f"--agent {agent} --task nb201-cifar10 --budget 100 --seed {seed} --retrain --study {agent}-{seed}"
        for seed in SEEDS
        for agent in AGENTS
    ),
    "--agent nasbot --budget 30 --seed 1 --study nasbot-digits",
    "--agent arc --task digits --space mlp --budget 30 --seed 1 --study arc-digits",
]

PICTURES: Mapping[str, tuple[str, list[str], dict[str, Any]]] = {
    "progress": ("best-so-far", TABLE, {"by": "agent", "against": "seconds"}),
    "one-study": ("best-so-far", ["regularized-evolution-1"], {}),
    "cost": ("value-and-cost", ["tw-1", "regularized-evolution-1", "random-1"], {"cost": "params"}),
    "curves": ("learning-curves", ["nasbot-digits"], {}),
    "hyperparameters": ("parallel-coordinates", ["arc-digits"], {}),
    "predictions": ("predictions", ["tw-1"], {}),
    "gains": ("operation-gains", ["nasbot-digits"], {}),
    "map": ("network-map", ["tw-1", "random-1"], {"distance": "tree-wasserstein"}),
}
"""File to kind of plot, studies and options."""


def search() -> None:
    """Run the searches; a finished one is not repeated."""
    for options in SEARCHES:
        subprocess.run(["archive", "search", *options.split()], check=True)


def draw() -> None:
    """Draw the pictures."""
    from PIL import Image

    import archive
    from archive.plots import kinds
    from archive.plots.figures.files import rendered

    FOLDER.mkdir(exist_ok=True)
    with archive.connect() as store:
        for name, (kind, studies, options) in PICTURES.items():
            path = FOLDER / f"{name}.png"
            picture = Image.open(io.BytesIO(rendered(kinds.draw(store, kind, studies, **options), "png", DPI)))
            # A third of the bytes, for a difference that is hard to see.
            picture.convert("RGB").quantize(64).save(path, optimize=True)
            print(f"{path}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--search", action="store_true", help="run the searches first")
    if parser.parse_args().search:
        search()
    draw()

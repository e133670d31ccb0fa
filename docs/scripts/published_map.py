"""Map of all published networks of an archive, coloured by accuracy: the picture of the README.

    archive import zoo timm                     or archive load of a file with its results
    python docs/scripts/published_map.py        draws docs/plots/published.png

A place is a network's profile: how often each operation, each width and each pair of neighbouring
operations occurs in it (`archive.plots.data.network_map`). The colour is its best top-1 accuracy on
ImageNet-1k under any recipe.
"""

from __future__ import annotations

import io
from collections import Counter
from pathlib import Path

import numpy as np

PATH = Path(__file__).resolve().parents[1] / "plots" / "published.png"
DPI = 110
FAMILIES = (
    "MATCH (e:Evaluation)-[:OF]->(a) WHERE e.family IS NOT NULL RETURN DISTINCT a.key, e.family"
)
NAMED = 14
"""Families with the most networks, whose names stand on the map."""


def draw() -> bytes:
    """Return the picture of the connected archive as PNG."""
    import archive
    from archive.plots.data.network_map import network_map, published_results
    from archive.plots.figures import style
    from archive.plots.figures.files import render

    families: dict[str, str] = {}
    with archive.connect() as store:
        places = network_map(store, space="torch")
        task, published = published_results(store, "torch")
        for key, family in store.query(FAMILIES).rows:
            families[key] = family

    rows = [row for row, key in enumerate(places.architecture) if key in published]
    keys = [places.architecture[row] for row in rows]
    values = np.array([published[key].accuracy for key in keys])
    points = places.places[rows]
    order = np.argsort(values)

    figure, (axes,) = style.figure(height=style.WIDTH * 0.62)
    low = float(np.quantile(values, 0.02))
    drawn = axes.scatter(
        points[order, 0],
        points[order, 1],
        s=16,
        c=values[order],
        vmin=low,
        cmap=f"{style.GRADIENT}_r",
        linewidths=0,
    )
    bar = figure.colorbar(drawn, ax=axes, shrink=0.8)
    bar.set_label(f"best published top-1 on {task} (%)")
    bar.outline.set_visible(False)
    members = [families[key] for key in keys]
    for family, _ in Counter(members).most_common(NAMED):
        middle = np.median(points[[member == family for member in members]], axis=0)
        axes.text(
            middle[0],
            middle[1],
            family.replace("_", " "),
            fontsize=7,
            ha="center",
            bbox={"facecolor": "white", "alpha": 0.7, "linewidth": 0, "pad": 0.8},
        )

    title = f"{len(rows):,} published networks; near ones have the same operations and widths"
    style.label(axes, "", "", title)
    # Only nearness has a meaning, not the numbers of the axes.
    axes.set(xticks=[], yticks=[])
    return render(figure, "png", DPI)


if __name__ == "__main__":
    from PIL import Image

    picture = Image.open(io.BytesIO(draw()))
    picture.convert("RGB").quantize(64).save(PATH, optimize=True)
    print(f"{PATH}: {PATH.stat().st_size:,} bytes")

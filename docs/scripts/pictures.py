"""The pictures of networks in the documents: `python docs/scripts/pictures.py` draws them again."""

from __future__ import annotations

from pathlib import Path

from archive.architecture.diagram import svg
from archive.architecture.graph import Architecture, Layer
from archive.drawing import svg as drawn
from archive.kernels.differences import difference
from archive.kernels.differences.picture import difference_diagram
from archive.spaces.darts.published import PUBLISHED

FOLDER = Path(__file__).resolve().parents[1] / "pictures"

BEFORE = Architecture(
    "cnn",
    [
        Layer("ip"),
        Layer("conv3", 32),
        Layer("conv3", 64),
        Layer("max-pool", stride=2),
        Layer("conv3", 128),
        Layer("conv5", 128),
        Layer("fc", 64),
        Layer("softmax"),
        Layer("op"),
    ],
    [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (6, 7), (7, 8)],
)
AFTER = Architecture(
    "cnn",
    [
        Layer("ip"),
        Layer("conv3", 32),
        Layer("conv3", 96),
        Layer("conv5", 96),
        Layer("max-pool", stride=2),
        Layer("conv3", 128),
        Layer("fc", 64),
        Layer("softmax"),
        Layer("op"),
    ],
    [(0, 1), (1, 2), (1, 3), (2, 3), (3, 4), (4, 5), (5, 6), (6, 7), (7, 8)],
)


def pictures() -> dict[str, str]:
    """Return the name and the SVG of each picture."""
    pair = (BEFORE.canonical, AFTER.canonical)
    return {
        "darts.svg": svg(PUBLISHED["DARTS_V2"].architecture, heading=["DARTS_V2"]),
        "difference.svg": drawn(difference_diagram(difference(*pair))),
        "transport.svg": drawn(difference_diagram(difference(*pair, "otmann"))),
    }


if __name__ == "__main__":
    for name, text in pictures().items():
        (FOLDER / name).write_text(text, encoding="utf-8")

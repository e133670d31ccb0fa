"""A space of cells as another package would offer it: four operations on up to four vertices
between input and output.

Nothing here knows what agents and kernels do with cells.
"""

from __future__ import annotations

from itertools import combinations
from typing import final

from archive.architecture.graph import Architecture, Layer
from archive.architecture.operations import Operation, define
from archive.errors import InvalidArchitectureError
from archive.spaces.base import Mutation, check_space
from archive.spaces.cell import CellSpace

LABELS = ("sep3", "dil5", "pool", "none-but-skip")

define(
    "motifs",
    [
        Operation("sep3", "cell", kernel=3),
        Operation("dil5", "cell", kernel=5),
        Operation("pool", "cell", kernel=3, pools=True),
        Operation("none-but-skip", "cell"),
    ],
    tree={
        "convolution": {"weight": 0.8, "children": {"sep3": 0.2, "dil5": 0.2}},
        "pool": 1.0,
        "none-but-skip": 1.0,
    },
    common={
        "sep3": "conv3x3-bn-relu",
        "dil5": "conv3x3-bn-relu",
        "pool": "maxpool3x3",
        "none-but-skip": None,
    },
)


@final
class Motifs(CellSpace):
    """Cells without dead ends."""

    name = "motifs"
    vertices = 6

    def validate(self, architecture):
        check_space(self.name, architecture)
        if len(architecture.layers) > self.vertices:
            raise InvalidArchitectureError(
                f"at most {self.vertices} vertices, got {len(architecture.layers)}"
            )

    def sample(self, rng):
        while True:
            inner = [LABELS[at] for at in rng.integers(4, size=rng.integers(1, 5))]
            pairs = list(combinations(range(len(inner) + 2), 2))
            cell = _cell(inner, [pair for pair in pairs if rng.random() < 0.6])
            if cell is not None:
                return cell

    def mutate(self, architecture, rng):
        near = [one for one in self.neighbours(architecture) if one.child.key != architecture.key]
        return near[rng.integers(len(near))]

    def neighbours(self, architecture):
        inner = [layer.op for layer in architecture.layers[1:-1]]
        edges = set(architecture.edges)
        n = len(architecture.layers)
        made = [("flip_edge", _cell(inner, edges ^ {pair})) for pair in combinations(range(n), 2)]
        swapped = [[*inner[:u], op, *inner[u + 1 :]] for u in range(n - 2) for op in LABELS]
        if n < self.vertices:
            moved = {(tail, head + (head == n - 1)) for tail, head in edges}
            made += [
                ("add_vertex", _cell([*inner, op], moved | {(0, n - 1), (n - 1, n)}))
                for op in LABELS
            ]

        made += [("swap_label", _cell(labels, edges)) for labels in swapped]
        seen = {architecture.key}
        for name, child in made:
            if child is not None and child.key not in seen:
                seen.add(child.key)
                yield Mutation(child, (name,))


def _cell(inner, edges):
    try:
        return Architecture("motifs", [Layer("ip"), *map(Layer, inner), Layer("op")], edges)
    except InvalidArchitectureError:
        return None

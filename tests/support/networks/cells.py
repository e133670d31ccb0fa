"""Random cells of recurrent networks, as documents of nodes."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import strategies as st

INPUTS = ("x", "h_prev_0", "h_prev_1")
OPERATIONS = {"tanh": 1, "linear": 2, "blend": 3, "elementwise_sum": 2, "elementwise_prod": 2}

GATED: dict[str, Any] = {
    "z": {"op": "linear", "input": ["x", "h_prev_0"]},
    "gate": {"op": "tanh", "input": ["z"]},
    "both": {"op": "elementwise_sum", "input": ["gate", "h_prev_0"]},
    "h_new_0": {"op": "blend", "input": ["gate", "h_prev_0", "both"]},
}


@st.composite
def cell_documents(draw: st.DrawFn, most: int = 5) -> dict[str, Any]:
    """A cell of a few nodes; the last one is its output."""
    count = draw(st.integers(1, most))
    document: dict[str, Any] = {}
    for number in range(count):
        op = draw(st.sampled_from(sorted(OPERATIONS)))
        sources = st.sampled_from([*INPUTS[:2], *document])
        inputs = draw(st.lists(sources, min_size=OPERATIONS[op], max_size=OPERATIONS[op]))
        name = "h_new_0" if number == count - 1 else f"n{number}"
        document[name] = {"op": op, "input": inputs}

    return document


def renamed(document: dict[str, Any], seed: int) -> dict[str, Any]:
    """The same cell with other names and another order of its nodes, and of sums and products."""
    shuffle = random.Random(seed)
    names = [name for name in document if not name.startswith("h_new")]
    shuffle.shuffle(names)
    other = {name: f"m{number}" for number, name in enumerate(names)}
    nodes = []
    for name, node in document.items():
        inputs = [other.get(source, source) for source in node["input"]]
        if node["op"].startswith("elementwise"):
            shuffle.shuffle(inputs)

        nodes.append((other.get(name, name), {"op": node["op"], "input": inputs}))

    shuffle.shuffle(nodes)
    return dict(nodes)

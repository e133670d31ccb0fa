"""Rows that the store writes for a network: properties of its node, of its layers, and of their edges."""

from __future__ import annotations

from typing import Any

from archive.architecture import compact
from archive.architecture.graph import Architecture, Layer
from archive.architecture.layer_mass import total_mass

Row = dict[str, Any]

# Names that all layers have: an attribute of such a name is stored with the prefix.
OWN = frozenset(["index", "op", "units", "stride"])
PREFIX = "attribute_"
# Attributes that may have megabytes and that no query needs. The network's text has them.
LARGE = frozenset(["content"])


def row(architecture: Architecture) -> Row:
    """Return the row of a network in canonical order: its properties, layers and edges."""
    return {
        "key": architecture.key,
        "properties": {
            "functional_key": architecture.functional_key,
            "space": architecture.space,
            "depth": architecture.depth,
            "layers": len(architecture.layers),
            "edges": len(architecture.edges),
            "mass": total_mass(architecture),
            "code": compact.encode(architecture),
        },
        "layers": [
            {"index": index, "op": layer.op, "units": layer.units, "stride": layer.stride}
            for index, layer in enumerate(architecture.layers)
        ],
        "edges": [list(edge) for edge in architecture.edges],
    }


def with_attributes(architecture: Architecture) -> Row:
    """Return the row of a network whose layers have attributes, and whose edges have arguments."""
    whole = row(architecture)
    layers = [{**layer, **_properties(each)} for layer, each in zip(whole["layers"], architecture.layers, strict=True)]
    edges = [
        {"tail": tail, "head": head, "arguments": list(used)}
        for (tail, head), used in zip(architecture.edges, architecture.arguments, strict=True)
    ]
    return {**whole, "layers": layers, "edges": edges}


def _properties(layer: Layer) -> dict[str, Any]:
    """Return the attributes of a layer as properties of its node."""
    return {
        PREFIX + name if name in OWN else name: list(value) if isinstance(value, tuple) else value
        for name, value in layer.attributes.items()
        if name not in LARGE
    }

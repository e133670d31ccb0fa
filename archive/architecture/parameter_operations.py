"""Vocabulary `parameters`: a configuration of parameters as a graph.

Each parameter that exists is one layer between the input and the output, whose attributes are its
name and its value. Two configurations are one network exactly if they have the same parameters with
the same values, so that the archive answers what it knows of a configuration as it does for a
network.

    attribute   content
    name        flat name of the parameter
    value       its value, if that is true, false, a number or a text
    json        JSON text of any other value: null, a list, an object
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from archive.architecture.graph import Architecture
from archive.architecture.layer import Attributes, Layer
from archive.architecture.operations import INPUT, OUTPUT, Operation, define
from archive.errors import InvalidArchitectureError
from archive.values import is_number

NAME = "parameters"
OPERATION = "parameter"

PARAMETERS = define(NAME, [Operation(OPERATION, "cell")], attributes=True)


def network_of(configuration: Mapping[str, Any]) -> Architecture:
    """Return the graph of a configuration.

    Args:
        configuration: JSON values by name, at least one.
    """
    layers = [Layer(INPUT)]
    for name, value in configuration.items():
        attributes: dict[str, Any] = {"name": name}
        if isinstance(value, str | bool) or is_number(value):
            attributes["value"] = value
        else:
            attributes["json"] = json.dumps(value, sort_keys=True)

        layers.append(Layer(OPERATION, attributes=Attributes(attributes)))

    layers.append(Layer(OUTPUT))
    last = len(layers) - 1
    edges = []
    for position in range(1, last):
        edges += [(0, position), (position, last)]

    return Architecture(NAME, layers, edges)


def configuration_of(architecture: Architecture) -> dict[str, Any]:
    """Return the configuration of a graph, in the order of its layers.

    Raises:
        InvalidArchitectureError: The graph is no configuration.
    """
    last = len(architecture.layers) - 1
    around: set[tuple[int, ...]] = set()
    for position in range(1, last):
        around |= {(0, position), (position, last)}

    if architecture.space != NAME or set(architecture.edges) != around:
        raise InvalidArchitectureError(
            "a configuration has its parameters side by side between input and output"
        )

    configuration: dict[str, Any] = {}
    for position, layer in enumerate(architecture.layers[1:-1], 1):
        name = layer.attributes.get("name")
        if not isinstance(name, str) or name in configuration:
            raise InvalidArchitectureError("a parameter has a name of its own", position)

        configuration[name] = _value_of(layer, position)

    return configuration


def _value_of(layer: Layer, position: int) -> Any:
    if "value" in layer.attributes:
        return layer.attributes["value"]

    try:
        return json.loads(str(layer.attributes["json"]))
    except (KeyError, ValueError):
        raise InvalidArchitectureError("a parameter has a value", position) from None

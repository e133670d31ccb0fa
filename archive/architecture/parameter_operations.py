"""Vocabulary `parameters`: a configuration of parameters as a graph.

Each parameter that exists is one layer between the input and the output, whose attributes are its
name and its value. Two configurations are one network exactly if they have the same parameters with
the same values, so that every question about networks can be asked about configurations.

| attribute  | content                                                                                |
|------------|----------------------------------------------------------------------------------------|
| `name`     | flat name of the parameter, such as `stage_2_op`                                       |
| `path`     | its groups and its name, such as `stage.2.op`; only of a parameter in a group          |
| `value`    | its value, if that is true, false, a number or a text                                  |
| `json`     | JSON text of any other value: null, a list, an object                                  |
| `repeated` | of the input: names of the repeated groups, which may have no repetition               |

Parameters beside a network are one attribute of its input, `configuration`, so that the graph is
the network's with another key. Such a graph is the member of a space of networks and parameters
(`archive.spaces.joint`); an archive stores the network and the parameters apart.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from archive.architecture.graph import Architecture
from archive.architecture.layer import CONFIGURATION, Attributes, Layer
from archive.architecture.operations import INPUT, OUTPUT, Operation, define
from archive.errors import InvalidArchitectureError
from archive.values import is_number, setting_text

if TYPE_CHECKING:
    from archive.parameters.parameter_space import ParameterSpace

NAME = "parameters"
PROGRAM_NAME = "program"
OPERATION = "parameter"

CONFIGURATIONS = (NAME, PROGRAM_NAME)
"""Spaces whose graphs are configurations: of a user's parameters, and of recorded runs."""

PARAMETERS = define(NAME, [Operation(OPERATION, "cell")], attributes=True)
PROGRAM = define(PROGRAM_NAME, [Operation(OPERATION, "cell")], attributes=True)


def network_of(space: ParameterSpace, configuration: Mapping[str, Any]) -> Architecture:
    """Return the graph of a configuration.

    Args:
        space: Its space.
        configuration: JSON values by flat name, at least one.
    """
    # A view of networks reads names, and needs no spaces.
    from archive.parameters.nesting import repeated_groups

    paths = {name: space[name].path for name in configuration}
    return graph_of_values(configuration, paths, repeated_groups(space.declared))


def graph_of_values(
    values: Mapping[str, Any],
    paths: Mapping[str, Sequence[str | int]] = MappingProxyType({}),
    repeated: Sequence[str] = (),
    *,
    name: str = NAME,
) -> Architecture:
    """Return the graph of values by name, with or without a space of these names.

    Args:
        values: JSON values by flat name, at least one.
        paths: Groups and name of each value that is in a group.
        repeated: Names of the repeated groups.
        name: Name of its space, one of `CONFIGURATIONS`.
    """
    layers = [Layer(INPUT, attributes=Attributes({"repeated": repeated} if repeated else {}))]
    for parameter, value in values.items():
        attributes: dict[str, Any] = {"name": parameter}
        path = paths.get(parameter, ())
        if len(path) > 1:
            attributes["path"] = ".".join(map(str, path))

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

    return Architecture(name, layers, edges)


def configuration_of(architecture: Architecture) -> dict[str, Any]:
    """Return the configuration of a graph, in the order of its layers.

    Raises:
        InvalidArchitectureError: The graph is no configuration.
    """
    last = len(architecture.layers) - 1
    around: set[tuple[int, ...]] = set()
    for position in range(1, last):
        around |= {(0, position), (position, last)}

    if architecture.space not in CONFIGURATIONS or set(architecture.edges) != around:
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


def parameters_of(architecture: Architecture) -> dict[str, Any]:
    """Return the configuration of a graph as a tree, as `ParameterSpace.nested` does.

    Raises:
        InvalidArchitectureError: The graph is no configuration.
    """
    configuration = configuration_of(architecture)
    values = []
    for layer in architecture.layers[1:-1]:
        name = str(layer.attributes["name"])
        steps: list[str | int] = []
        for step in str(layer.attributes.get("path", name)).split("."):
            steps.append(int(step) if step.isdigit() else step)

        values.append((steps, configuration[name]))

    repeated = architecture.layers[0].attributes.get("repeated", ())
    names = repeated if isinstance(repeated, tuple) else (repeated,)
    # Layers have no order: the second repetition of a group must not come before the first.
    values.sort(key=_position)
    from archive.parameters.nesting import tree_of

    return tree_of(map(str, names), values)


def join(network: Architecture, configuration: Mapping[str, Any]) -> Architecture:
    """Return a network with the parameters beside it; `network` and `configuration` are its parts.

    Args:
        network: The network. Parameters that it has already are replaced.
        configuration: JSON values by flat name; without any, the network itself is returned.
    """
    plain = network.network
    if not configuration:
        return plain

    text = json.dumps(configuration, sort_keys=True, ensure_ascii=False)
    attributes = {**plain.layers[0].attributes, CONFIGURATION: text}
    joint = plain.with_input(Attributes(attributes))
    joint.__dict__["_network"] = plain
    return joint


def describe_layer(layer: Layer) -> str | None:
    """Return a parameter for a reader, `lr = 0.0003`; None for any other layer."""
    if layer.op != OPERATION or "name" not in layer.attributes:
        return None

    return f"{layer.attributes['name']} = {setting_text(_value_of(layer, 0))}"


def _position(entry: tuple[list[str | int], Any]) -> list[tuple[str, int]]:
    """Return the sorting key of a path: texts by their letters, numbers by their size."""
    steps = []
    for step in entry[0]:
        steps.append(("", step) if isinstance(step, int) else (step, 0))

    return steps


def _value_of(layer: Layer, position: int) -> Any:
    if "value" in layer.attributes:
        return layer.attributes["value"]

    try:
        return json.loads(str(layer.attributes["json"]))
    except (KeyError, ValueError):
        raise InvalidArchitectureError("a parameter has a value", position) from None

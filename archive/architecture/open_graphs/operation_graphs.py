"""Vocabulary `graph`: graphs of any operations by name, such as the cells of recurrent networks.

People write a cell as its nodes, each with an operation and the names of its inputs:

    {"z": {"op": "linear", "input": ["x", "h_prev_0"]},
     "gate": {"op": "activation_sigm", "input": ["z"]},
     "h_new_0": {"op": "blend", "input": ["gate", "h_prev_0", "z"]}}

| of the document                       | in the network                                                 |
|---------------------------------------|----------------------------------------------------------------|
| node                                  | layer of that operation; further keys are attributes           |
| name of a node                        | `Layer.name`, no part of the identity                          |
| input that is no node, such as `x`    | layer of that name, attribute `role` = `input`                 |
| `h_new_0`, the next `h_prev_0`        | layer of that name behind the node, `role` = `output`          |
| order of a node's inputs              | arguments of its edges; all 0 where the operation commutes     |

Outputs are the nodes that `outputs` lists, or else the nodes with a name such as `h_new_0`, or else all
nodes that feed no other one. Only the names of inputs and of outputs tell two graphs apart.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from archive.architecture.codec_checks import MOST_ARGUMENTS
from archive.architecture.graph import Architecture, Connection
from archive.architecture.layer import ROLE, Attributes, Layer
from archive.architecture.operations import INPUT, OUTPUT, define
from archive.errors import InvalidArchitectureError
from archive.values import brief

NAME = "graph"

GRAPH = define(NAME, (), dead_ends=True, attributes=True, arguments=True, is_open=True)

MOST_NODES = 1_000
MOST_INPUTS = 5_000
"""Inputs of all nodes of a graph together: each may be a layer, of which a dump has at most 10,000."""

COMMUTATIVE = frozenset(
    "add addition sum plus mul mult multiply multiplication prod product times max maximum min minimum "
    "mean average avg hadamard elementwise_add elementwise_sum elementwise_mul elementwise_mult "
    "elementwise_multiply elementwise_prod elementwise_product elementwise_max elementwise_min "
    "elementwise_mean eltwise_add eltwise_sum eltwise_mul eltwise_prod".split()
)
"""Operations whose inputs have no order, in small letters."""

_RECURRENT = re.compile(r"[A-Za-z]\w*_new(_\d+)?", re.ASCII)
_OPERATION_KEYS = ("op", "operation", "type", "label")
_INPUT_KEYS = ("input", "inputs", "in")
_NAME_KEYS = ("name", "id")
_EDGE_KEYS = ("edges", "links")
_EDGE_ENDS = ("source", "target")
_EDGE_NAMES = frozenset(["key", "id"])
"""Keys of an edge that tell it from others, as networkx writes them."""


class _GraphNode(NamedTuple):
    """A node of a document.

    Attributes:
        name: Its name.
        op: Its operation.
        inputs: Names of its inputs in their order.
        settings: Its further keys.
    """

    name: str
    op: str
    inputs: list[str]
    settings: dict[str, Any]


def read_graph(document: Any, commutative: Collection[str] = ()) -> Architecture:
    """Return the network of a graph.

    Args:
        document: The graph, as JSON text or as its value: an object `{node: {"op": …, "input": […]}}`;
            a list of nodes that have a `name` or `id`, too; or an object with such `nodes`, and
            with `outputs`, names of nodes in their order, or `edges`, pairs of nodes or objects with
            `source` and `target`.
        commutative: Further operations whose inputs have no order.

    Raises:
        InvalidArchitectureError: It is no such graph; the message gives the reason.
    """
    if isinstance(document, str):
        try:
            document = json.loads(document, object_pairs_hook=_object)
        except (ValueError, RecursionError) as error:
            raise InvalidArchitectureError(f"the graph is no JSON: {error!s:.80}") from None

    outputs = None
    edges: Any = ()
    if isinstance(document, Mapping) and _has_nodes(document):
        outputs = document.get("outputs")
        key = _first_key(document, _EDGE_KEYS)
        edges = () if key is None else document[key]
        document = document["nodes"]

    nodes = _read_nodes(document)
    _add_edges(nodes, edges)
    unordered = {name.lower() for name in commutative} | COMMUTATIVE
    return _network(nodes, _output_names(nodes, outputs), unordered)


def _object(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON, of which Python would keep the last of two equal names."""
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name in values:
            raise InvalidArchitectureError(f"the graph has two {name!r:.60} in one object")

        values[name] = value

    return values


def _has_nodes(document: Mapping[Any, Any]) -> bool:
    """Return whether a document has a list of nodes, rather than a node that is called `nodes`."""
    nodes = document.get("nodes")
    return isinstance(nodes, list) or (isinstance(nodes, Mapping) and not _is_node(nodes))


def _is_node(value: Mapping[Any, Any]) -> bool:
    key = _first_key(value, _OPERATION_KEYS)
    return key is not None and isinstance(value[key], str)


def _first_key(value: Mapping[Any, Any], keys: Iterable[str]) -> str | None:
    """Return the first of some keys that has a value."""
    return next((key for key in keys if value.get(key) is not None), None)


def _read_nodes(document: Any) -> dict[str, _GraphNode]:
    """Return the nodes of a document by name."""
    if isinstance(document, Mapping):
        pairs = [(str(name), node) for name, node in document.items()]
    elif isinstance(document, list):
        pairs = [(_name_of(node, position), node) for position, node in enumerate(document)]
    else:
        raise InvalidArchitectureError(
            'a graph is an object {node: {"op": …, "input": […]}} or a list of nodes, got '
            f"{brief(document)}"
        )

    if not 1 <= len(pairs) <= MOST_NODES:
        raise InvalidArchitectureError(f"a graph has 1 to {MOST_NODES} nodes, got {len(pairs)}")

    nodes: dict[str, _GraphNode] = {}
    for name, node in pairs:
        if name in nodes:
            raise InvalidArchitectureError(f"two nodes are called {name!r:.60}")

        nodes[name] = _read_node(name, node)

    return nodes


def _name_of(node: Any, position: int) -> str:
    key = _first_key(node, _NAME_KEYS) if isinstance(node, Mapping) else None
    return str(position if key is None else node[key])


def _read_node(name: str, node: Any) -> _GraphNode:
    if isinstance(node, str):
        node = {"op": node}

    if not isinstance(node, Mapping):
        raise InvalidArchitectureError(
            f"the node {name!r:.60} must be an object with op and input, got {brief(node)}"
        )

    op_key = _first_key(node, _OPERATION_KEYS)
    op = None if op_key is None else node[op_key]
    if not isinstance(op, str):
        raise InvalidArchitectureError(f"the node {name!r:.60} has no operation: its key is op")

    _check_label(op, f"the operation of the node {name!r:.60}")
    input_key = _first_key(node, _INPUT_KEYS)
    inputs = () if input_key is None else node[input_key]
    if _is_name(inputs):
        inputs = [inputs]

    if not isinstance(inputs, Sequence) or not all(map(_is_name, inputs)):
        raise InvalidArchitectureError(
            f"the inputs of the node {name!r:.60} must be a list of names, got {brief(inputs)}"
        )

    # A second key of an operation, such as the type of a convolution, tells nodes apart as well.
    further = {}
    for key, value in node.items():
        if key not in (op_key, input_key, *_NAME_KEYS) and value is not None:
            further[str(key)] = value

    return _GraphNode(name, op, list(map(str, inputs)), _settings_of(name, further))


def _is_name(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _settings_of(node: str, further: Mapping[str, Any]) -> dict[str, Any]:
    """Return the further keys of a node as attributes."""
    settings: dict[str, Any] = {}
    for key, value in further.items():
        name = _setting_name(key)
        if name in settings:
            raise InvalidArchitectureError(
                f"the node {node!r:.60} has two keys that are the attribute {name}"
            )

        settings[name] = _setting(value)

    return settings


def _check_label(label: str, what: str) -> None:
    if label in (INPUT, OUTPUT) or not GRAPH.has(label):
        raise InvalidArchitectureError(
            f"{what} must be 1 to 100 printable characters, and not {INPUT} or {OUTPUT}: "
            f"got {label!r:.120}"
        )


def _setting_name(key: str) -> str:
    name = re.sub(r"\W", "_", key, flags=re.ASCII)
    if name == ROLE:
        name = f"{name}_"

    return (name if name.isidentifier() else f"_{name}")[:100]


def _setting(value: Any) -> Any:
    """Return a setting as an attribute: nested ones are texts."""
    is_plain = isinstance(value, bool | int | float | str)
    is_list = isinstance(value, list) and len({type(item) for item in value}) == 1
    if is_plain or (is_list and isinstance(value[0], bool | int | float | str)):
        return value

    try:
        return json.dumps(value, sort_keys=True)
    except (TypeError, ValueError, RecursionError):
        # A table may be Parquet, and its values times or bytes.
        raise InvalidArchitectureError(
            f"an attribute of a node is a value of JSON, got {brief(value)}"
        ) from None


def _add_edges(nodes: dict[str, _GraphNode], edges: Any) -> None:
    """Add the inputs that are listed as edges, in the order of the list."""
    if not isinstance(edges, Sequence) or isinstance(edges, str):
        raise InvalidArchitectureError(f"the edges must be a list, got {brief(edges)}")

    for edge in edges:
        tail, head = _ends_of(edge)
        if head not in nodes:
            raise InvalidArchitectureError(f"an edge leads to {head!r:.60}, which is no node")

        nodes[head].inputs.append(tail)


def _ends_of(edge: Any) -> tuple[str, str]:
    """Return the names of the nodes that an edge joins."""
    ends = edge
    if isinstance(edge, Mapping):
        ends = [edge.get(key) for key in _EDGE_ENDS]
        for key, value in edge.items():
            # An operation of an edge, which would tell two graphs apart.
            if key not in (*_EDGE_ENDS, *_EDGE_NAMES) and value is not None:
                ends = None

    is_pair = isinstance(ends, Sequence) and not isinstance(ends, str) and len(ends) == 2
    if not is_pair or not all(map(_is_name, ends)):
        raise InvalidArchitectureError(
            f"an edge is a pair of nodes, without further values, got {brief(edge)}"
        )

    return str(ends[0]), str(ends[1])


def _output_names(nodes: Mapping[str, _GraphNode], outputs: Any) -> list[tuple[str, str | None]]:
    """Return the nodes that are outputs, each with the name of the output; None without one.

    A node may be several outputs.
    """
    if outputs is not None:
        if not isinstance(outputs, Sequence) or isinstance(outputs, str) or not outputs:
            raise InvalidArchitectureError(f"outputs must be a list of nodes, got {brief(outputs)}")

        if len(outputs) > MOST_NODES:
            raise InvalidArchitectureError(
                f"a graph has at most {MOST_NODES} outputs, got {len(outputs)}"
            )

        for name in outputs:
            if str(name) not in nodes:
                raise InvalidArchitectureError(f"the output {name!r:.60} is no node")

        return [(str(name), f"output_{number}") for number, name in enumerate(outputs)]

    recurrent = [name for name in nodes if _RECURRENT.fullmatch(name)]
    if recurrent:
        return [(name, name) for name in recurrent]

    used: set[str] = set()
    for node in nodes.values():
        used.update(node.inputs)

    return [(name, None) for name in nodes if name not in used]


def _network(
    nodes: Mapping[str, _GraphNode],
    outputs: Sequence[tuple[str, str | None]],
    commutative: Collection[str],
) -> Architecture:
    number = sum(len(node.inputs) for node in nodes.values())
    if number > MOST_INPUTS:
        raise InvalidArchitectureError(
            f"the nodes of a graph have at most {MOST_INPUTS} inputs, got {number}"
        )

    layers = [Layer(INPUT)]
    positions: dict[str, int] = {}
    for node in nodes.values():
        positions[node.name] = len(layers)
        layers.append(Layer(node.op, attributes=Attributes(node.settings), name=_module(node.name)))

    connections: list[Connection] = []
    for node in nodes.values():
        head = positions[node.name]
        for name in node.inputs:
            if name not in positions:
                _check_label(name, "the name of an input")
                positions[name] = len(layers)
                connections.append((0, positions[name], 0))
                layers.append(Layer(name, attributes=Attributes({ROLE: "input"})))

        connections += _connections_to(node, head, positions, node.op.lower() in commutative)

    last = len(layers) + sum(output is not None for _, output in outputs)
    for name, output in outputs:
        tail = positions[name]
        if output is not None:
            connections.append((tail, len(layers), 0))
            tail = len(layers)
            layers.append(Layer(output, attributes=Attributes({ROLE: "output"})))

        connections.append((tail, last, 0))

    layers.append(Layer(OUTPUT))
    return Architecture(NAME, layers, connections)


def _module(name: str) -> str:
    """Return the name of a node as the name of its layer, which servers store and terminals show."""
    return "".join(letter if letter.isprintable() else "?" for letter in name[:100])


def _connections_to(
    node: _GraphNode, head: int, positions: Mapping[str, int], commutes: bool
) -> list[Connection]:
    """Return the edges to a node; one from the input for a node without inputs."""
    if not node.inputs:
        return [(0, head, 0)]

    arguments: dict[int, list[int]] = {}
    for number, name in enumerate(node.inputs):
        numbers = arguments.setdefault(positions[name], [])
        numbers.append(0 if commutes else number)
        if len(numbers) > MOST_ARGUMENTS:
            raise InvalidArchitectureError(
                f"the node {node.name!r:.60} has the input {name!r:.60} more than "
                f"{MOST_ARGUMENTS} times"
            )

    return [(tail, head, *numbers) for tail, numbers in arguments.items()]

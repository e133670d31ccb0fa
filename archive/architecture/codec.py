"""Codecs of architectures: JSON, NAS-Bench-101 matrices and NAS-Bench-201 strings.

    JSON    {"schema": 1, "space": "cnn",
            "layers": [{"op": "ip"}, {"op": "conv3", "units": 64, "stride": 1}, …],
            "edges": [[0, 1], …]}; an operation without units has no `units`, and a stride of 1 may
            be left out. Layers of the space `torch` have `attributes`, and edges the numbers of
            their head's inputs: [0, 1, 0]; the `name` of the module that a layer comes from is no
            part of its identity

Matrices and strings of the NAS-Bench tables are read in `archive.architecture.nasbench_codec`.

Input may be hostile. For any input, a reader returns an `Architecture` or raises `CodecError` (the
input describes no graph) or `InvalidArchitectureError` (the graph is no network).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from archive.architecture.codec_checks import MOST_ARGUMENTS, built, has_arguments, most_layers
from archive.architecture.graph import Architecture, Connection, Layer
from archive.architecture.layer import NONE, Attributes
from archive.architecture.nasbench_codec import (
    from_nasbench101,
    from_nasbench201,
    to_nasbench101,
    to_nasbench201,
)
from archive.errors import CodecError, InvalidArchitectureError
from archive.values import brief

__all__ = [
    "SCHEMA",
    "from_dict",
    "from_json",
    "from_nasbench101",
    "from_nasbench201",
    "to_dict",
    "to_json",
    "to_nasbench101",
    "to_nasbench201",
]

SCHEMA = 1

# Far above every search space, and low enough that hostile text cannot keep a process busy.
_MOST_EDGES = 40_000
_MOST_NUMBER = 2**31 - 1
_MOST_NAME = 100
_MOST_TEXT = 32_000_000
_MOST_SHARED = 1000


def to_dict(architecture: Architecture) -> dict[str, Any]:
    """Return the JSON object of an architecture, layers and edges as they stand."""
    return {
        "schema": SCHEMA,
        "space": architecture.space,
        "layers": list(map(_layer_to_dict, architecture.layers)),
        "edges": list(map(list, architecture.connections)),
    }


def to_json(architecture: Architecture, *, indent: int | None = None) -> str:
    """Return the JSON text of an architecture."""
    return json.dumps(to_dict(architecture), indent=indent)


def from_dict(data: Mapping[str, Any]) -> Architecture:
    """Return the architecture of a JSON object.

    Raises:
        CodecError: The object does not describe a graph, or its schema is a newer one.
        InvalidArchitectureError: The graph is no network.
    """
    _check_fields(data, "an architecture", required=("schema", "space", "layers", "edges"))
    _check_schema(data["schema"])
    space = _name(data["space"], "space")
    layers = []
    for u, item in enumerate(_list(data["layers"], "layers", most_layers(space))):
        layers.append(_layer_from_dict(item, u))

    arguments = has_arguments(space)
    edges = []
    for item in _list(data["edges"], "edges", _MOST_EDGES):
        edges.append(_edge_from_list(item, arguments))

    return built(space, layers, edges)


def from_json(text: str | bytes, *, within: str | None = None) -> Architecture:
    """Return the architecture of a JSON text.

    Args:
        text: The JSON object of an architecture.
        within: Field of an object without a `schema` that may hold the object of the architecture.

    Raises:
        CodecError: The text is no JSON, does not describe a graph, or its schema is a newer one.
        InvalidArchitectureError: The graph is no network.
    """
    if not isinstance(text, (str, bytes)):
        raise CodecError(f"the text of an architecture must be text, got {brief(text)}")

    if len(text) > _MOST_TEXT:
        raise CodecError(
            f"the text of an architecture has at most {_MOST_TEXT} characters, got {len(text)}"
        )

    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CodecError(f"no JSON text: {error}") from None

    if (
        within is not None
        and isinstance(data, dict)
        and "schema" not in data
        and isinstance(data.get(within), dict)
    ):
        data = data[within]

    return from_dict(data)


def _layer_to_dict(layer: Layer) -> dict[str, Any]:
    data: dict[str, Any] = {"op": layer.op}
    if layer.units is not None:
        data["units"] = layer.units

    if layer.stride != 1:
        data["stride"] = layer.stride

    if layer.attributes:
        data["attributes"] = {name: _as_json(value) for name, value in layer.attributes.items()}

    if layer.name:
        data["name"] = layer.name

    return data


def _as_json(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _check_fields(
    data: Any, what: str, required: tuple[str, ...], optional: tuple[str, ...] = ()
) -> None:
    if not isinstance(data, Mapping):
        raise CodecError(f"{what} is a JSON object, got {brief(data)}")

    for field in required:
        if field not in data:
            raise CodecError(
                f"{what} needs the field {field!r}, got only {brief(sorted(map(str, data)))}"
            )

    for field in data:
        if field not in required + optional:
            raise CodecError(
                f"{what} has no field {brief(field)}; known: {', '.join(required + optional)}"
            )


def _check_schema(schema: Any) -> None:
    if not _is_whole(schema) or schema < 1:
        raise CodecError(f"schema must be a whole number >= 1, got {brief(schema)}")

    if schema > SCHEMA:
        raise CodecError(
            f"schema {brief(schema)} was written by a newer release, this one reads up to {SCHEMA}"
        )


def _list(value: Any, name: str, most: int) -> Sequence[Any]:
    if not isinstance(value, (list, tuple)):
        raise CodecError(f"{name} must be a list, got {brief(value)}")

    if len(value) > most:
        raise CodecError(f"{name} must be at most {most}, got {len(value)}")

    return value


def _layer_from_dict(data: Any, u: int) -> Layer:
    optional = ("units", "stride", "attributes", "name")
    _check_fields(data, f"layer {u}", required=("op",), optional=optional)
    units = data.get("units")
    stride = data.get("stride", 1)
    attributes = data.get("attributes", {})
    if units is not None:
        _check_whole(units, f"the units of layer {u}")

    _check_whole(stride, f"the stride of layer {u}")
    if not isinstance(attributes, Mapping):
        raise CodecError(f"the attributes of layer {u} are a JSON object, got {brief(attributes)}")

    return Layer(
        _name(data["op"], f"the op of layer {u}"),
        units,
        stride,
        _attributes(attributes, u),
        _name(data.get("name", ""), f"the name of layer {u}"),
    )


def _attributes(values: Mapping[str, Any], u: int) -> Attributes:
    if not values:
        return NONE

    text = _text_of(values)
    try:
        # Layers of a network have few different attributes.
        return _shared(text) if 0 < len(text) <= _MOST_SHARED else Attributes(values)
    except InvalidArchitectureError as error:
        raise InvalidArchitectureError(error.reason, u) from None


def _text_of(values: Mapping[str, Any]) -> str:
    """Return a text for each set of values of JSON; empty for other values."""
    if not all(type(name) is str for name in values):
        return ""

    try:
        return json.dumps(values)
    except (TypeError, ValueError, RecursionError):
        return ""


@lru_cache(maxsize=16_384)
def _shared(text: str) -> Attributes:
    return Attributes(json.loads(text))


def _edge_from_list(item: Any, arguments: bool) -> Connection:
    most = 2 + MOST_ARGUMENTS * arguments
    if not isinstance(item, (list, tuple)) or not 2 <= len(item) <= most:
        more = ", then of inputs" if arguments else ""
        raise CodecError(f"an edge is a pair of layer numbers{more}, got {brief(item)}")

    for end in item:
        _check_whole(end, "the end of an edge")

    return tuple(item)


def _name(value: Any, what: str) -> str:
    if not isinstance(value, str) or len(value) > _MOST_NAME:
        raise CodecError(
            f"{what} must be text of at most {_MOST_NAME} characters, got {brief(value)}"
        )

    return value


def _check_whole(value: Any, what: str) -> None:
    if not _is_whole(value) or not 0 <= value <= _MOST_NUMBER:
        raise CodecError(
            f"{what} must be a whole number in [0, {_MOST_NUMBER}], got {brief(value)}"
        )


def _is_whole(value: Any) -> bool:
    # True is an int in Python, and no number of units.
    return isinstance(value, int) and not isinstance(value, bool)

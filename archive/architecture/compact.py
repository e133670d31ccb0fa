"""Compact text of a network: one property of its node, from which whole networks are read.

    [["ip",["conv3",16],["conv3",16,2],"op"],[[0,1],[1,2],[2,3]]]
        layers: op, or op, units and stride; then edges

    [[["ip",null,1,{"input":"8"}],…],[0,1,1,2],["","layer1.0.conv1",0,…],[[0,1,0],…]]
        with attributes: the distinct layers, then the number of each layer; the names of the
        layers' modules, if there are any, 0 for the module of the layer before; edges with arguments

Layers and edges are stored as nodes and relationships as well, for queries. Collecting those took
ArcadeDB 0.2 ms per network; the text takes a tenth of that. Layers are in canonical order.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import count
from typing import Any

from archive.architecture.graph import Architecture, Edge, Layer
from archive.architecture.layer import Attributes
from archive.architecture.operations import vocabulary


def encode(architecture: Architecture) -> str:
    """Return the text of a network in canonical order."""
    # A thousand layers share some dozens of distinct ones.
    distinct = dict(zip(dict.fromkeys(architecture.layers), count()))
    parts: list[Any] = [list(map(_plain, architecture.layers))]
    if architecture.arguments or any(layer.attributes for layer in distinct):
        whole = [
            [layer.op, layer.units, layer.stride, dict(layer.attributes)] for layer in distinct
        ]
        parts = [whole, list(map(distinct.__getitem__, architecture.layers))]
        names = [layer.name for layer in architecture.layers]
        if any(names):
            parts.append(_shorten(names))

    return json.dumps([*parts, architecture.connections], separators=(",", ":"))


def decode(key: str, space: str, functional_key: str, code: str) -> Architecture:
    """Return the network of a text written by `encode`.

    The network is `restore`: the checks, which stored networks have passed, take several times as
    long as the rest.
    """
    layers, *numbers, edges = json.loads(code)
    pairs = tuple([(tail, head) for tail, head, *_ in edges])
    if not numbers:
        plain = []
        for entry in layers:
            plain.append(_layer(entry) if isinstance(entry, str) else _layer(*entry))

        return restore(space, tuple(plain), pairs, key, functional_key)

    distinct = list(map(_layer_with_attributes, layers))
    whole = tuple([distinct[number] for number in numbers[0]])
    if len(numbers) > 1:
        whole = tuple(_with_names(whole, numbers[1]))

    arguments = None
    if vocabulary(space).arguments:
        arguments = tuple([tuple(inputs) for _, _, *inputs in edges])

    return restore(space, whole, pairs, key, functional_key, arguments)


def restore(
    space: str,
    layers: tuple[Layer, ...],
    edges: tuple[Edge, ...],
    key: str,
    functional_key: str,
    arguments: tuple[tuple[int, ...], ...] | None = None,
) -> Architecture:
    """Return a validated architecture from its values, without another validation.

    Args:
        space: Name of the vocabulary.
        layers: The layers in topological order.
        edges: Sorted pairs of positions.
        key: Its `key`, which is not computed again.
        functional_key: Its `functional_key`, likewise.
        arguments: For each edge the numbers of its head's inputs, where the space tells inputs
            apart.
    """
    network = Architecture.__new__(Architecture)
    network.__dict__.update(
        space=space, layers=layers, edges=edges, key=key, functional_key=functional_key
    )
    if arguments is not None:
        network.__dict__["arguments"] = arguments

    return network


def _shorten(names: Iterable[str]) -> list[str | int]:
    """Return names with 0 in place of the same name as before."""
    shortened: list[str | int] = []
    before = None
    for name in names:
        shortened.append(0 if name == before else name)
        before = name

    return shortened


def _with_names(layers: Iterable[Layer], names: Iterable[str | int]) -> Iterator[Layer]:
    """Yield layers with their names, which `_shorten` wrote."""
    current = ""
    for layer, name in zip(layers, names, strict=True):
        current = current if name == 0 else str(name)
        yield replace(layer, name=current)


def _plain(layer: Layer) -> Any:
    if layer.stride != 1:
        return [layer.op, layer.units, layer.stride]

    return layer.op if layer.units is None else [layer.op, layer.units]


def _layer_with_attributes(plain: Any) -> Layer:
    op, units, stride, attributes = plain
    return Layer(op, units, stride, Attributes(attributes))


@lru_cache(maxsize=2**16)
def _layer(op: str, units: int | None = None, stride: int = 1) -> Layer:
    # 100,000 networks share a few hundred distinct layers.
    return Layer(op, units, stride)

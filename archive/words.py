"""Plain words for names of operations and quantities that come from papers.

Pictures, reports and the page show the word; the page has the name and its meaning as a hover
title. Options, JSON and queries keep the names. `docs/glossary.md` lists both.
"""

from __future__ import annotations

import json
from dataclasses import dataclass


@dataclass(frozen=True)
class Word:
    """Word for a name.

    Attributes:
        text: The word.
        title: What the name means, and whose name it is; empty where the word says it.
    """

    text: str
    title: str = ""


OPERATIONS = {
    "inc_single": Word("widen a layer", "NASBOT: 1/8 more units in a layer"),
    "dec_single": Word("narrow a layer", "NASBOT: 1/8 fewer units in a layer"),
    "inc_en_masse": Word("widen several layers", "NASBOT: 1/8 more units in a part of the layers"),
    "dec_en_masse": Word(
        "narrow several layers", "NASBOT: 1/8 fewer units in a part of the layers"
    ),
    "dup_path": Word("duplicate a path", "NASBOT: a copy of the layers of a path beside it"),
    "remove_layer": Word("remove a layer", "NASBOT"),
    "skip": Word("add a skip connection", "NASBOT: an edge past layers"),
    "swap_label": Word("change an operation", "NASBOT: another operation in a layer"),
    "wedge_layer": Word("insert a layer", "NASBOT: a layer between two layers"),
    "swap_input": Word("change an input", "a node of a cell reads another state"),
    "flip_edge": Word("add or remove an edge", "BANANAS"),
    "deepen": Word("insert a layer", "a morphism: the network computes the same at first"),
    "widen": Word("widen a layer", "a morphism: the network computes the same at first"),
    "skip_add": Word(
        "insert a residual block", "a morphism: the network computes the same at first"
    ),
    "skip_concat": Word("connect two layers", "a morphism: the network computes the same at first"),
    "draw": Word("draw at random", "another network of the space, which is no neighbour"),
}
"""Words for the operations that make a child of its parent; other names stay."""

LAYERS = {"ip": Word("input"), "op": Word("output")}
"""Words for the ends of a network; other operations of layers stay."""

PARTS = {
    "layer": Word("layer"),
    "skip": Word("skip", "edge past layers"),
    "break": Word("gap", "adjacent layers of the chain that no edge joins"),
    "block": Word("block", "a mixer and a feed-forward part, with their norms and sums"),
    "stream": Word("width and head", "the stream that the blocks of a decoder add to"),
    "mass": Word("computation", "mass of OTMANN: units times incoming units"),
}
"""Words for the parts of a difference of two networks."""

QUANTITIES = {
    "evaluations": Word("evaluations"),
    "seconds": Word("training time (s)"),
    "epochs": Word("epochs"),
    "params": Word("parameters"),
    "flops": Word("multiply-adds of one input"),
    "latency_ms": Word("latency (ms)"),
    "latency_iqr_ms": Word("interquartile range of the latency (ms)"),
    "latency_prefill_ms": Word("time of reading a sequence (ms)"),
    "latency_decode_ms": Word("time of a next token (ms)"),
    "cache_bytes": Word("cache of a sequence (bytes)"),
    "peak_memory_bytes": Word("peak memory (bytes)"),
    "layers": Word("layers"),
    "depth": Word("layers on the longest path"),
    "edges": Word("edges"),
    "mass": Word("computation (units times incoming units)", "mass of OTMANN"),
}
"""Words for costs and sizes of networks, with units."""

DISTANCES = {
    "profile": Word("operations and pairs", "numbers of operations and of joined pairs of them"),
}
"""Words for distances of a map that are no kernels."""


def operation(name: str) -> str:
    """Return the word for an operation, or its name."""
    word = OPERATIONS.get(name)
    return name if word is None else word.text


def layer(operation: str) -> str:
    """Return the word for the operation of a layer, or its name."""
    word = LAYERS.get(operation)
    return operation if word is None else word.text


def distance(name: str) -> str:
    """Return the words for the distance of a map, or the name of a kernel."""
    word = DISTANCES.get(name)
    return name if word is None else word.text


def for_page() -> str:
    """Return all words as JSON: their text and title by kind and name."""
    kinds = {
        "operations": OPERATIONS,
        "layers": LAYERS,
        "parts": PARTS,
        "quantities": QUANTITIES,
        "distances": DISTANCES,
    }
    return json.dumps(kinds, default=vars)

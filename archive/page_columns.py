"""What a page says of results: columns, each a text of its own, so that a question reads only those that it needs.

    number, agent, architecture, mean, …          of the proposals
    value, seconds, metric_accuracy, …            of the evaluations
    space, network_params, operations, motifs     of the networks
    evaluation, hyperparameters, code             whole evaluations with their networks, as their nodes have them

A column that holds few different values is written as those values and the place of each row's among them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from archive import stored_code
from archive.graph import Architecture
from archive.rows import METRIC

Row = Mapping[str, Any]
Column = list[Any]
Columns = dict[str, Column]

OF_PROPOSALS = ("number", "agent", "architecture", "functional_key", "mean", "std", "based_on")
OF_EVALUATIONS = ("value", "seconds", "epochs", "answered_from")
OF_NETWORKS = ("params", "flops", "mass", "depth", "layers", "edges")
WHOLE = ("evaluation", "hyperparameters", "code")

NETWORK = "network_"
_SEPARATOR = "|"


def names_of(rows: Iterable[Row]) -> list[str]:
    """Return the columns that a page of these results has, whole evaluations left out."""
    metrics = sorted({name for row in rows for name in row["evaluation"] if name.startswith(METRIC)})
    costs = [NETWORK + name for name in OF_NETWORKS]
    return [*OF_PROPOSALS, *OF_EVALUATIONS, *metrics, *costs, "space", "operations", "motifs"]


def columns_of(rows: Sequence[Row], names: Iterable[str]) -> Columns:
    """Return columns of results; None where there is no such thing.

    Args:
        rows: Of n results: what `OF_PROPOSALS` names and `hyperparameters`; `evaluation` and `network`, the properties
            of both nodes.
        names: Of the columns.
    """
    return {name: [_reader(name)(row) for row in rows] for name in names}


def _reader(name: str) -> Callable[[Row], Any]:
    if name in _READERS:
        return _READERS[name]
    if name in OF_PROPOSALS:
        return lambda row: row[name]
    if name.startswith(NETWORK):
        return lambda row: row["network"].get(name.removeprefix(NETWORK))
    return lambda row: row["evaluation"].get(name)


_READERS: dict[str, Callable[[Row], Any]] = {
    "space": lambda row: row["network"]["space"],
    "operations": lambda row: _SEPARATOR.join(operations(network_of(row))),
    "motifs": lambda row: _SEPARATOR.join(motifs(network_of(row))),
    "evaluation": lambda row: row["evaluation"],
    "hyperparameters": lambda row: row["hyperparameters"],
    "code": lambda row: row["network"]["code"],
}


def network_of(row: Row) -> Architecture:
    """Return the network of a row."""
    network = row["network"]
    return stored_code.decode(network["key"], network["space"], network["functional_key"], network["code"])


def operations(network: Architecture) -> list[str]:
    """Return the operations of a network's layers, input and output left out."""
    return sorted({layer.op for layer in network.layers} - {"ip", "op"})


def motifs(network: Architecture) -> list[str]:
    """Return what a network does beside two layers in a row: `one>two>`, or `one>two>past` by a layer of its own.

    An edge from what feeds the two to what they feed has no layer; `past` is the operation of one that is there.
    """
    heads: dict[int, set[int]] = {}
    for tail, head in network.edges:
        heads.setdefault(tail, set()).add(head)
    ops = [layer.op for layer in network.layers]
    found = set()
    for before, feeds in heads.items():
        ways: dict[int, set[str]] = {}
        for skip in feeds:
            for after in heads.get(skip, ()):
                ways.setdefault(after, set()).add(ops[skip])
        for one in feeds:
            for two in heads.get(one, ()):
                for after in heads.get(two, ()):
                    past = ways.get(after, set()) | ({""} if after in heads[before] else set())
                    found |= {f"{ops[one]}>{ops[two]}>{name}" for name in past}
    return sorted(found)


def parts(text: str) -> list[str]:
    """Return what a text of the columns `operations` and `motifs` names."""
    return text.split(_SEPARATOR) if text else []


def to_text(column: Column) -> str:
    """Return a column as it is stored."""
    return json.dumps(_packed(column), separators=(",", ":"))


def from_text(text: str | None, size: int) -> Column:
    """Return a column of so many rows from what is stored, if anything is."""
    return [None] * size if text is None else _unpacked(json.loads(text))


def joined(pages: Iterable[Columns]) -> Columns:
    """Return the columns of pages, all of the same names, one after the other."""
    found: Columns = {}
    for page in pages:
        for name, column in page.items():
            found.setdefault(name, []).extend(column)
    return found


def _packed(column: list[Any]) -> Any:
    if not column or not all(value is None or isinstance(value, str) for value in column):
        return column
    places = {value: at for at, value in enumerate(dict.fromkeys(column))}
    if 2 * len(places) > len(column):
        return column
    return {"of": list(places), "at": [places[value] for value in column]}


def _unpacked(column: Any) -> list[Any]:
    if isinstance(column, list):
        return column
    of = column["of"]
    return [of[at] for at in column["at"]]

"""The forms of tables: which columns describe a cell, and how."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from archive.architecture import codec
from archive.architecture.graph import Architecture
from archive.errors import CodecError
from archive.spaces import nasbench201_cells
from archive.spaces.tables.classes import Described


class Form(NamedTuple):
    """How a kind of table describes cells.

    Attributes:
        space: Name of the vocabulary.
        cell: Columns that describe a cell.
        labels: Other columns that are no numbers.
        read: Makes the architecture of a row out of the former.
        known: Returns, by the texts of a row, what need not be read.
    """

    space: str
    cell: tuple[str, ...]
    labels: tuple[str, ...]
    read: Callable[..., Architecture]
    known: Callable[[], Mapping[tuple[str, ...], Described]] = dict


def _from_matrix(vertices: str, adjacency: str, ops: str) -> Architecture:
    n = int(vertices) if vertices.isdecimal() else 0
    if len(adjacency) != n * n:
        raise CodecError(f"adjacency_rowmajor must have n_vertices² = {n * n} characters, got {len(adjacency)}")
    if set(adjacency) - {"0", "1"}:
        raise CodecError(f"adjacency_rowmajor must hold 0 and 1, got {adjacency!r}")
    entries = [int(character) for character in adjacency]
    return codec.from_nasbench101([entries[at : at + n] for at in range(0, n * n, n)], ops.split("|"))


FORMS = (
    Form("nasbench201", ("arch_str",), ("index",), codec.from_nasbench201, nasbench201_cells.described),
    Form("nasbench101", ("n_vertices", "adjacency_rowmajor", "ops"), ("module_hash",), _from_matrix),
)

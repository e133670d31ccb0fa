"""Forms of tables: the columns that describe a cell, and their parser."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

from archive.architecture import codec
from archive.architecture.genotypes.codec import from_genotype
from archive.architecture.graph import Architecture
from archive.errors import CodecError
from archive.spaces import nasbench201_cells
from archive.spaces.tables.classes import Described


class TableForm(NamedTuple):
    """Columns of one kind of table.

    Attributes:
        space: Name of the vocabulary.
        cell: Columns that describe a cell.
        labels: Other columns of text.
        read: Returns the architecture from the columns of `cell`.
        known: Returns precomputed cells by the columns of `cell`; these are not parsed.
        config: Settings of the space, where the table determines them.
    """

    space: str
    cell: tuple[str, ...]
    labels: tuple[str, ...]
    read: Callable[..., Architecture]
    known: Callable[[], Mapping[tuple[str, ...], Described]] = dict
    config: Mapping[str, Any] = MappingProxyType({})


def _from_matrix(vertices: str, adjacency: str, ops: str) -> Architecture:
    n = int(vertices) if vertices.isdecimal() else 0
    if len(adjacency) != n * n:
        raise CodecError(
            f"adjacency_rowmajor must have n_vertices² = {n * n} characters, got {len(adjacency)}"
        )

    if set(adjacency) - {"0", "1"}:
        raise CodecError(f"adjacency_rowmajor must hold 0 and 1, got {adjacency!r}")

    entries = [int(character) for character in adjacency]
    return codec.from_nasbench101(
        [entries[at : at + n] for at in range(0, n * n, n)], ops.split("|")
    )


FORMS = (
    TableForm(
        "nasbench201",
        ("arch_str",),
        ("index",),
        codec.from_nasbench201,
        nasbench201_cells.described,
    ),
    # Tables of NAS-Bench-Suite-Zero.
    TableForm(
        "nasbench201", ("net_str",), ("net",), codec.from_nasbench201, nasbench201_cells.described
    ),
    TableForm("darts", ("genotype",), (), partial(from_genotype, space="darts")),
    TableForm(
        "nasbench101", ("n_vertices", "adjacency_rowmajor", "ops"), ("module_hash",), _from_matrix
    ),
)

"""All networks of the space `nasbench201`, listed once."""

from __future__ import annotations

from functools import cache
from itertools import product

from archive import cache as kept
from archive import packing
from archive.codec import from_nasbench201
from archive.graph import Architecture
from archive.operations import NASBENCH201

_SPACE = "nasbench201"


@cache
def cells() -> tuple[Architecture, ...]:
    """Return the 8,765 cells without dead edges, one of each network, in the order of their strings.

    The 15,625 strings of the table describe 14,125 networks, and each of these is one of the cells once its dead edges
    are dropped.
    """
    arrays = kept.read("cells", _SPACE)
    if arrays is None:
        arrays = packing.pack(_listed())
        kept.write("cells", _SPACE, arrays)
    return packing.unpack(_SPACE, arrays)


def _listed() -> list[Architecture]:
    found: dict[str, Architecture] = {}
    choices = ("none", *NASBENCH201.of_group("cell"))
    for a, b, c, d, e, f in product(choices, repeat=6):
        cell = from_nasbench201(f"|{a}~0|+|{b}~0|{c}~1|+|{d}~0|{e}~1|{f}~2|")
        if cell.key == cell.functional_key:
            found.setdefault(cell.key, cell)
    return list(found.values())

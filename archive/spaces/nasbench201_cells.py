"""List of all networks of the space `nasbench201`, and the network of each string of the table.

The package contains both as arrays, because their computation takes seconds. The file `CELLS` has
the arrays of `architecture.packing` for the cells, with the keys as bytes and without
`functional_keys`, which equal the keys, and three more:

| array     | content                                                    | shape       | type  |
|-----------|------------------------------------------------------------|-------------|-------|
| `strings` | for each cell, the number of its first string              | (8,765,)    | int16 |
| `classes` | for each string, the number of its cell without dead edges | (15,625,)   | int16 |
| `sizes`   | for each string, layers and edges, dead ones included      | (15,625, 2) | uint8 |

Strings are numbered as `strings` lists them. After a change to the parsing or the keys of networks,
write the file again:

    python -m archive.spaces.nasbench201_cells

If the file is missing or unreadable, or disagrees with the code, the arrays are computed.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from functools import cache, partial
from itertools import count, product
from pathlib import Path

import numpy as np

from archive.architecture import packing
from archive.architecture.graph import Architecture
from archive.architecture.nasbench_codec import from_nasbench201, nasbench201_text
from archive.architecture.operations import NASBENCH201
from archive.cache import Arrays
from archive.spaces.tables.classes import Described

CELLS = Path(__file__).with_suffix(".npz")

_SPACE = "nasbench201"
_KEY_BYTES = 16


@cache
def cells() -> tuple[Architecture, ...]:
    """Return the 8,765 cells without dead edges, one of each network, by their strings.

    The 15,625 strings of the table describe 14,125 networks, and each of these is one of the cells
    after removal of its dead edges.
    """
    return packing.unpack(_SPACE, _arrays())


@cache
def describe_strings() -> Mapping[tuple[str, ...], Described]:
    """Return the network of each string of the table; the key is the tuple of the string."""
    arrays = _arrays()
    keys = packing.texts(_arrays()["keys"])
    first = dict(enumerate(arrays["strings"].tolist()))
    rows = zip(strings(), arrays["classes"].tolist(), arrays["sizes"].tolist(), strict=True)
    described: dict[tuple[str, ...], Described] = {}
    for number, (text, cell, (layers, edges)) in enumerate(rows):
        build = partial(_built, text, cell, first[cell] == number)
        described[text,] = Described(keys[cell], (layers, edges), build)

    return described


def strings() -> list[str]:
    """Return all strings of the table by their operations, the last edge changing fastest."""
    choices = ("none", *NASBENCH201.of_group("cell"))
    return list(map(nasbench201_text, product(choices, repeat=6)))


def list_cells() -> Arrays:
    """Compute the arrays of the file, with the keys as texts and with `functional_keys`."""
    members: dict[str, tuple[int, Architecture]] = {}
    networks = list(map(from_nasbench201, strings()))
    for number, network in enumerate(networks):
        if network.key == network.functional_key:
            members.setdefault(network.key, (number, network))

    position_of = dict(zip(members, count()))
    classes = []
    sizes = []
    for network in networks:
        classes.append(position_of[network.functional_key])
        sizes.append((len(network.layers), len(network.edges)))

    numbers, cells_without_dead_edges = zip(*members.values(), strict=True)
    return {
        **packing.pack(cells_without_dead_edges),
        "strings": np.array(numbers, np.int16),
        "classes": np.array(classes, np.int16),
        "sizes": np.array(sizes, np.uint8),
    }


def write(file: Path = CELLS) -> None:
    """Write the file."""
    arrays = list_cells()
    del arrays["functional_keys"]
    keys = b"".join(map(bytes.fromhex, packing.texts(arrays["keys"])))
    _convert(arrays, np.uint8, np.int32)
    np.savez_compressed(
        file, allow_pickle=False, **{**arrays, "keys": np.frombuffer(keys, np.uint8)}
    )


def read(file: Path = CELLS) -> Arrays | None:
    """Return the arrays of `list_cells` from the file; None if that is broken or out of date."""
    try:
        with file.open("rb") as opened:
            content = np.load(opened, allow_pickle=False)
            arrays: Arrays = dict(content)

        digits = arrays["keys"].tobytes().hex().encode()
        arrays["keys"] = arrays["functional_keys"] = np.frombuffer(digits, f"S{2 * _KEY_BYTES}")
        _convert(arrays, np.int32, np.int64)
        agrees = (
            from_nasbench201(strings()[arrays["strings"][-1]]).key.encode() == arrays["keys"][-1]
        )
    except (OSError, EOFError, ValueError, KeyError, IndexError, zipfile.BadZipFile):
        return None

    return arrays if agrees else None


def _convert(arrays: Arrays, entries: type[np.generic], starts: type[np.generic]) -> None:
    """Give other types to the arrays of layers and edges, and to the arrays of their starts."""
    for name in ("layers", "edges"):
        arrays[name] = arrays[name].astype(entries)
        arrays[f"{name}.starts"] = arrays[f"{name}.starts"].astype(starts)


@cache
def _arrays() -> Arrays:
    arrays = read()
    return list_cells() if arrays is None else arrays


def _built(text: str, cell: int, is_first: bool) -> Architecture:
    """Return the network of a string.

    If it is the cell or a relabelling of it, the key is known.
    """
    same = cells()[cell]
    if is_first:
        return same

    network = from_nasbench201(text)
    network.__dict__["functional_key"] = same.key
    if len(network.layers) == len(same.layers):
        network.__dict__["key"] = same.key

    return network


if __name__ == "__main__":
    write()

"""Tables of architectures with training results: NAS-Bench-201, NAS-Bench-101, CSV files.

    form      columns that describe the cell              every other column
    NB201     `arch_str`, or `net_str`                    one number per row, empty if unknown
    DARTS     `genotype`                                  the same
    NB101     `n_vertices`, `adjacency_rowmajor`, `ops`   likewise
    choices   see `archive.spaces.tables.parser`; they also make       the settings of the space

`adjacency_rowmajor` is a string of n_vertices² characters 0 and 1; `ops` holds the labels,
separated by `|`. Files with the suffix `.gz` are decompressed.

Rows of equal `functional_key` (isomorphic without dead edges) count as one architecture that was
evaluated several
times: the table answers with the mean of each column. A study admits a network once by the same key
(`History.known`), so a search cannot get two answers for one network. The 15,625 rows of
NAS-Bench-201 form 14,125 classes under relabelling alone, and 8,765 without dead edges. Numbers
keep the unit of the file: accuracies are in percent in NAS-Bench-201 and in [0, 1] in
NAS-Bench-101.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import count, product
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Self, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from archive import cache
from archive.architecture import packing
from archive.architecture.graph import Architecture
from archive.cache import Arrays
from archive.errors import (
    InvalidArchitectureError,
    SettingsError,
    UnknownNameError,
    UnusableFileError,
    UsageError,
)
from archive.files import absolute, data_folders
from archive.spaces.tables.costs import SECONDS, ImpossibleCosts
from archive.spaces.tables.parser import NO_OPTIONS, parse

Floats = NDArray[np.float64]
Number = TypeVar("Number", np.float64, np.int64)

MOST_KEPT = 100_000
"""Most architectures of a table that are kept in memory: NAS-Bench-101 would take 0.3
GB."""


class Official(NamedTuple):
    """A table with a built-in name.

    Attributes:
        files: Its possible file names.
        source: Source of its numbers.
        license: Licence of the source; None if it states none.
    """

    files: tuple[str, ...]
    source: str
    license: str | None = None


NAMED = MappingProxyType(
    {
        "nb101": Official(
            ("nb101.csv.gz", "nb101_sample.csv.gz", "nb101.csv"),
            "NAS-Bench-101, https://github.com/google-research/nasbench",
            "Apache-2.0",
        ),
        "nb201": Official(
            ("nb201.csv.gz", "nb201.csv"),
            "NAS-Bench-201, https://github.com/D-X-Y/NAS-Bench-201",
            "MIT",
        ),
        "nbmacro": Official(
            ("nbmacro.csv.gz", "nasbenchmacro_cifar10.csv.gz", "nbmacro.csv"),
            "NAS-Bench-Macro, https://github.com/xiusu/NAS-Bench-Macro",
        ),
        "transnas-micro": Official(
            ("transnas_micro.csv.gz", "transnas_micro_three_tasks.csv.gz", "transnas_micro.csv"),
            "TransNAS-Bench-101, https://github.com/yawen-d/TransNASBench",
        ),
    }
)


@final
class Table:
    """Architectures with columns of numbers, one entry per class of equal `functional_key`.

    Immutable.

    Args:
        content: The rows as grouped by `archive.spaces.tables.classes`.
        origin: Name or path of the table, for messages.
        sha256: SHA-256 of the file's content.

    Attributes:
        space: Name of the vocabulary of its architectures.
        space_config: Settings of the space, where the table determines them.
        origin: Name or path of the table.
        sha256: SHA-256 of the file's content.
        columns: Names of the columns of numbers.
        index: `functional_key` to position in `architectures`.
        rows: (n,) int64, how many rows of the file each class has.
        impossible: Name of each column of costs with entries that are none to these entries.
    """

    def __init__(self, content: Arrays, origin: str, sha256: str) -> None:
        """Keep the content; architectures are unpacked on demand."""
        self.origin = origin
        self.sha256 = sha256
        self._content = content
        about = json.loads(content["about"].tobytes())
        self.space: str = about["space"]
        self.space_config: Mapping[str, Any] = MappingProxyType(about["config"])
        self.columns: tuple[str, ...] = tuple(about["columns"])
        keys = packing.texts(content["functional_keys"])
        self.index: Mapping[str, int] = MappingProxyType(dict(zip(keys, count())))
        self.rows: NDArray[np.int64] = _freeze(content["rows"])
        self._means = dict(zip(self.columns, map(_freeze, content["means"]), strict=True))
        self._unusable: dict[str, str] = about["unusable"]
        # An earlier release may have written the tables in the cache.
        doubtful: Mapping[str, Any] = about.get("doubtful", {})
        self.impossible: dict[str, ImpossibleCosts] = {}
        for name, (first, rows) in doubtful.items():
            self.impossible[name] = ImpossibleCosts(first, tuple(rows))

    @cached_property
    def architectures(self) -> Sequence[Architecture]:
        """One architecture per class, in the order of their first rows.

        It is the member with the fewest layers and edges, hence without dead edges if the table has
        such a member. Of more than `MOST_KEPT`, each is built when it is read.
        """
        packed = packing.PackedArchitectures(self.space, self._content)
        return packed[:] if len(packed) <= MOST_KEPT else packed

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], options: Mapping[str, Sequence[str]] = NO_OPTIONS
    ) -> Table:
        """Read a table; a file that has not changed is read once a process.

        Args:
            path: Its file.
            options: Options by the name of a decision, where a file of choices has one option.

        Raises:
            UsageError: The file cannot be read, or is no such table; the message names the row.
        """
        file = absolute(path)
        try:
            status = file.stat()
            listed_options = tuple((name, tuple(values)) for name, values in options.items())
            return _load(file, status.st_mtime_ns, status.st_size, listed_options)
        except OSError as error:
            raise UsageError(f"cannot read the table {file}: {error.strerror}") from None

    @classmethod
    def named(cls, name: str) -> Table:
        """Return a table by its built-in name (`NAMED`), from `archive.files.data_folders`.

        Raises:
            UnknownNameError: There is none of this name.
            SettingsError: Its file does not exist; the message names its origin.
        """
        return cls.load(find(name))

    @classmethod
    def open(cls, reference: str) -> Table:
        """Return a table by name or path.

        Raises:
            UsageError: It cannot be read.
        """
        return cls.named(reference) if reference in NAMED else cls.load(reference)

    def __len__(self) -> int:
        """Number of architectures."""
        return len(self.index)

    def __repr__(self) -> str:
        """Name origin and size."""
        rows = int(self.rows.sum())
        return f"<Table {self.origin} {len(self)} architectures of {self.space}, {rows} rows>"

    @property
    def provenance(self) -> dict[str, str]:
        """Source of the numbers and its licence; the name of the file for a user's own table."""
        path = Path(self.origin)
        for official in NAMED.values():
            if path.name in official.files and path.parent in data_folders():
                licensed = {} if official.license is None else {"license": official.license}
                return {"source": official.source, **licensed}

        return {"source": path.name}

    def column(self, name: str) -> Floats:
        """Return the mean (n,) float64 of a column over each class, NaN for missing values.

        The unit is the file's.

        Raises:
            UnknownNameError: There is no such column.
            UnusableFileError: The column is not all numbers.
        """
        if name in self._unusable:
            fault = f"the column {name!r} of {self.origin} holds no numbers"
            raise UnusableFileError(fault, f"{fault}: {self._unusable[name]}")

        if name not in self._means:
            raise UnknownNameError(
                f"column of {self.origin}", name, self.columns, "it has no column of numbers"
            )

        return self._means[name]

    def costs(self, name: str) -> Floats:
        """Return a column of costs; NaN also where an entry of the network is no cost."""
        column = self.column(name)
        if name not in self.impossible:
            return column

        possible = column.copy()
        possible[[*self.impossible[name].classes]] = np.nan
        return possible

    @property
    def cost_column(self) -> str | None:
        """Name of the first column that begins with `train_seconds` or `train_time`."""
        return next(filter(SECONDS.match, self.columns), None)

    def cost(self) -> Floats | None:
        """Return the recorded seconds of training, (n,) float64; None if the table records none.

        It is the cost of the training behind the table (200 epochs in NAS-Bench-201, 108 in
        NAS-Bench-101), whatever epoch a column of accuracies was read at.
        """
        return None if self.cost_column is None else self.costs(self.cost_column)

    def position(self, architecture: Architecture) -> int:
        """Return the position of an architecture, or of a relabelling, among the architectures.

        Raises:
            InvalidArchitectureError: The table does not hold it.
        """
        if architecture.space != self.space:
            raise InvalidArchitectureError(
                f"the table {self.origin} holds architectures of space {self.space}, "
                f"got one of {architecture.space}"
            )

        position = self.index.get(architecture.functional_key)
        if position is None:
            raise InvalidArchitectureError(
                f"the table {self.origin} does not hold the architecture {architecture.key[:8]} "
                f"(it has {len(self):,} of {self.space})"
            )

        return position

    def __reduce__(self) -> tuple[Callable[[str], Self], tuple[str]]:
        """Pickle as the call that reads it."""
        return type(self).load, (self.origin,)


def find(name: str) -> Path:
    """Return the path of a table with a built-in name, without reading it.

    Raises:
        UnknownNameError: There is none of this name.
        SettingsError: Its file does not exist; the message names its origin.
    """
    if name not in NAMED:
        raise UnknownNameError("table", name, NAMED)

    folders = data_folders()
    for file, folder in product(NAMED[name].files, folders):
        path = folder / file
        if path.is_file():
            return path

    raise SettingsError(
        f"the table {name} is not found in {' and '.join(map(str, folders))}: "
        f"set ARCHIVE_DATA_DIR to the folder with {NAMED[name].files[0]}, "
        f"or make it by archive table make {name} FILE, from {NAMED[name].source}"
    )


@lru_cache(maxsize=8)
def _load(
    path: Path, _modified: int, _size: int, options: tuple[tuple[str, tuple[str, ...]], ...]
) -> Table:
    content = path.read_bytes()
    sha256 = hashlib.sha256(content).hexdigest()
    identity = f"{sha256} {path.suffix == '.gz'}" + (f" {options}" if options else "")
    kept = cache.read("tables", identity)
    if kept is None:
        kept = parse(path, content, dict(options))
        if kept["rows"].sum() >= cache.WORTH:
            cache.write("tables", identity, kept)

    return Table(kept, str(path), sha256)


def _freeze(values: NDArray[Number]) -> NDArray[Number]:
    values.flags.writeable = False
    return values

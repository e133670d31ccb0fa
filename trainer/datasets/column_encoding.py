"""Encoding of columns as inputs, by scikit-learn's transformers that the training rows alone fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archive.errors import UnusableFileError
from archive.trainer.datasets.targets import Kind
from archive.trainer.datasets.text_columns import MixedColumn
from archive.trainer.datasets.user_readers import (
    FileContent,
    check_content,
)

MOST_TEXTS = 32
"""Most inputs of a text column; the rarer texts share the last one."""
RARE = 2
"""A text with fewer training rows has no input of its own."""
MOST_CELLS = 2**28
"""Most entries of a table, and most numbers of its inputs: 2 GiB in double precision."""
FORMAT = 1
"""Version of the preparation, recorded in protocols."""


@dataclass(frozen=True, slots=True)
class MixedTable:
    """The inputs of a table before they are encoded.

    Attributes:
        path: Path of the file, for messages.
        columns: The columns but the target.
        form: Form of the file, as JSON values.
    """

    path: Path
    columns: tuple[MixedColumn, ...]
    form: Mapping[str, Any] = field(default_factory=dict)

    def describe(self) -> dict[str, Any]:
        """Return the preparation of the inputs as JSON values, for the protocol."""
        return {
            "version": FORMAT,
            **self.form,
            "columns": {column.name: column.kind for column in self.columns},
            "numbers": "median, indicator of gaps",
            "texts": f"most frequent, one-hot of {MOST_TEXTS} with at least {RARE} rows",
            "dates": "days, month, weekday, hour",
        }

    def summary(self) -> str:
        """Return the kinds of the columns in words."""
        counts = []
        for kind in ("number", "text", "date", "empty"):
            count = sum(column.kind == kind for column in self.columns)
            if count:
                counts.append(f"{count} {kind}")

        return f"columns: {', '.join(counts)}"

    def encode(self, train: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return the inputs of all rows, by transformers that are fitted on the training rows.

        Args:
            train: (m,) numbers of the training rows.

        Returns:
            (n, features) float64 without gaps.

        Raises:
            UnusableFileError: There are too many inputs, or none.
        """
        blocks: list[NDArray[np.float64]] = []
        width = 0
        for column in self.columns:
            if column.kind == "empty":
                continue

            block = _encode(column, train)
            width += block.shape[1]
            if len(block) * width > MOST_CELLS:
                raise UnusableFileError(
                    f"{self.path} has too many inputs: {len(block):,} rows with more than {width:,}"
                )

            blocks.append(block)

        if not blocks:
            raise UnusableFileError(f"{self.path} has nothing but gaps beside the target")

        return np.concatenate(blocks, axis=1)


def _encode(column: MixedColumn, train: NDArray[np.intp]) -> NDArray[np.float64]:
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    if column.codes is not None:
        texts = column.codes[:, None]
        encoder = make_pipeline(
            SimpleImputer(missing_values=-1, strategy="most_frequent", keep_empty_features=True),
            OneHotEncoder(
                max_categories=MOST_TEXTS,
                min_frequency=RARE,
                handle_unknown="infrequent_if_exist",
                sparse_output=False,
            ),
        )
        encoded: NDArray[np.float64] = encoder.fit(texts[train]).transform(texts)
        return encoded

    assert column.numbers is not None
    blocks = []
    for index in range(column.numbers.shape[1]):
        numbers = column.numbers[:, index : index + 1]
        # The parts of a date have the gaps of its days.
        imputer = SimpleImputer(
            strategy="median", add_indicator=index == 0, keep_empty_features=True
        )
        blocks.append(imputer.fit(numbers[train]).transform(numbers))

    return np.concatenate(blocks, axis=1)


def check_cells(path: Path, rows: int, columns: int) -> None:
    """Check that a table is not too large.

    Raises:
        UnusableFileError: It has too many entries.
    """
    if rows * columns > MOST_CELLS:
        raise UnusableFileError(
            f"{path} has too many entries: {rows:,} rows of {columns:,}, at most {MOST_CELLS:,}"
        )


def table_content(table: MixedTable, answers: NDArray[Any], kind: Kind, advice: str) -> FileContent:
    """Return the content of a table with its answers, if there is something to learn.

    Args:
        table: The inputs.
        answers: (n,) int64 classes, or float64 values.
        kind: Kind of the answers.
        advice: End of the message on a class with too few rows.

    Raises:
        UnusableFileError: There are too few rows, or the target is the same in all.
    """
    checked = check_content(table.path, np.empty((len(answers), 0)), answers, None, advice)
    assert checked.kind == kind
    return checked.prepared(table.encode, table.describe(), table.summary())

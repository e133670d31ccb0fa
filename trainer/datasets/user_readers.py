"""Readers of users' files: a CSV with a header, or the arrays of a `.npz`.

    CSV     one row per input, numbers in every column but the target's, no gaps; `mixed_tables`
            reads the others
    npz     x, y                                              split by the protocol
            x_train, y_train, x_test, y_test                  the test part is the file's
            … and x_valid, y_valid                            all three parts are the file's

`x` is (n, features) of numbers, or images (n, height, width) or (n, height, width, channels), as
bytes or floats; `y` is (n,): classes or values (`archive.trainer.datasets.targets`). Images with
the channels first are recognised where the shape tells, and turned. Arrays of Python objects are
refused, since reading them runs code from the file.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archive.errors import UnusableFileError
from archive.trainer.datasets import targets
from archive.trainer.datasets.layout import Rows
from archive.trainer.datasets.readers import UNREADABLE
from archive.trainer.datasets.targets import Kind
from archive.values import decimal

LARGEST = float(np.finfo(np.float32).max)
"""Largest finite number in single precision, in which networks compute."""

MOST_CHANNELS = 4
"""Most channels of usual images: grey, colours, and a mask with either."""

FEWEST_ROWS = 10
FEWEST_OF_A_CLASS = 5
"""With these, a split of 60/20/20 leaves no part empty, and has each class in the training part and
one other."""


SEPARATORS = (",", ";", "\t", "|")


@dataclass(frozen=True, slots=True)
class FileContent:
    """The content of a file.

    Attributes:
        rows: Inputs and targets; the parts of a file are concatenated.
        kind: Whether the targets are classes or values.
        classes: Number of classes; 1 for values.
        parts: Number of the file's own rows for training, validation and tests; None if it has no
            parts.
        turned: Whether the file has the channels of images first; the rows have them last.
        encode: Computes the inputs from the numbers of the training rows, where the file has other
            entries than numbers; the inputs of `rows` then are placeholders.
        preparation: What it does, as JSON values for the protocol.
        notes: Further facts for the summary of the task.
    """

    rows: Rows
    kind: Kind
    classes: int
    parts: tuple[int, int, int] | None = None
    turned: bool = False
    encode: Callable[[NDArray[np.intp]], NDArray[Any]] | None = None
    preparation: Mapping[str, Any] = field(default_factory=dict)
    notes: str = ""

    def prepared(
        self,
        encode: Callable[[NDArray[np.intp]], NDArray[Any]],
        preparation: Mapping[str, Any],
        notes: str,
    ) -> FileContent:
        """Return the content with inputs that depend on the training rows."""
        return replace(self, encode=encode, preparation=preparation, notes=notes)


def read_csv(path: Path, content: bytes, target: str, kind: Kind | None) -> FileContent:
    """Return the rows of a CSV.

    Args:
        path: Path of the file, for messages.
        content: Content of the file.
        target: Name of the column to predict; all others are inputs.
        kind: Kind of the target; None infers it.

    Raises:
        UnusableFileError: It is no such file; the message names the row and the column.
    """
    lines = csv_lines(path, content)
    if not lines:
        raise UnusableFileError(f"{path} is no CSV: it is empty")

    head = [name.strip() for name in lines[0]]
    check_head(path, head, target)
    table = lines[1:]
    for number, line in enumerate(table, 1):
        if len(line) != len(head):
            raise UnusableFileError(
                f"row {number} of {path} has {len(line)} entries, the header has {len(head)}"
            )

    target_column = head.index(target)
    inputs = np.empty((len(table), len(head) - 1))
    for column, name in enumerate(head):
        if column != target_column:
            index = column if column < target_column else column - 1
            inputs[:, index] = numbers_of(path, column, name, [line[column] for line in table])

    texts = [line[target_column].strip() for line in table]
    if "" in texts:
        raise UnusableFileError(
            f"row {texts.index('') + 1} of {path} has nothing in the column {target!r}"
        )

    labels = targets.labels_of(texts)
    if (kind or targets.kind_of_labels(labels)) == "values":
        return check_content(path, inputs, numbers_of(path, target_column, target, texts), None)

    advice = ""
    are_numbers = labels is not None and Decimal in map(type, labels.values())
    if are_numbers and not kind:
        advice = ": append :values to the column's name if they are no classes"

    return check_content(path, inputs, targets.classes_of_texts(texts, labels), None, advice)


def decode_text(path: Path, content: bytes) -> str:
    """Return the text of a file in UTF-8.

    Raises:
        UnusableFileError: It is no UTF-8.
    """
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UnusableFileError(f"{path} is no UTF-8 text: save it as UTF-8") from None


def csv_lines(path: Path, content: bytes, separator: str = ",") -> list[list[str]]:
    """Return the lines of a CSV with an entry.

    Raises:
        UnusableFileError: It is no CSV.
    """
    text = decode_text(path, content)
    try:
        lines = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
        # Lines without an entry are no rows.
        return [line for line in lines if "".join(line).strip()]
    except (csv.Error, ValueError) as error:
        raise UnusableFileError(
            f"{path} is no CSV: its rows cannot be told apart", f"{path} is no CSV: {error}"
        ) from None


def separator_of(text: str, target: str = "") -> str:
    """Return the separator of a CSV by its header: with it, the target is a column of several.

    Args:
        text: Content of the file.
        target: Name of the target; empty takes the separator with the most columns, as where no
            separator makes the target a column.
    """
    widths: dict[str, int] = {}
    without: dict[str, int] = {}
    for separator in SEPARATORS:
        try:
            head, _ = split_head(text, separator)
        except csv.Error:
            continue

        if not target or target in head:
            widths[separator] = len(head)
        else:
            without[separator] = len(head)

    # The first of equals: a comma.
    counts = widths or without
    return max(counts, key=lambda separator: counts[separator], default=",")


def split_head(text: str, separator: str) -> tuple[list[str], str]:
    """Return the names in the header of a CSV, and the text after it.

    Raises:
        csv.Error: It is no CSV.
    """
    stream = io.StringIO(text, newline="")
    for row in csv.reader(stream, delimiter=separator, strict=True):
        if "".join(row).strip():
            return [name.strip() for name in row], stream.read()

    return [], ""


def check_head(path: Path, head: Sequence[str], target: str) -> None:
    """Check that the columns have different names, the target once, and that there is an input."""
    if head.count(target) != 1:
        count = "no column" if target not in head else "two columns"
        fault = f"{path} has {count} {target!r} to predict"
        raise UnusableFileError(fault, f"{fault}: it has {', '.join(head[:12])}")

    # One input would count twice, or one of the names is wrong. Columns without a name are no
    # repetition.
    for name in head:
        if name and head.count(name) > 1:
            raise UnusableFileError(
                f"{path} has two columns of one name", f"{path} has two columns {name!r}"
            )

    if len(head) < 2:
        raise UnusableFileError(f"{path} has no column beside {target!r} to predict it from")


def read_npz(path: Path, content: bytes, kind: Kind | None = None) -> FileContent:
    """Return the rows of a `.npz`.

    Args:
        path: Path of the file, for messages.
        content: Content of the file.
        kind: Kind of the targets; None infers it.

    Raises:
        UnusableFileError: It is no such file, has Python objects, or its arrays do not match.
    """
    try:
        loaded = np.load(io.BytesIO(content), allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            raise UnusableFileError(
                f"{path} holds a single array (npy), not the arrays x and y: write them by "
                "numpy.savez"
            )

        arrays: dict[str, NDArray[Any]] = {}
        with loaded as file:
            for name in file.files:
                array = file[name]
                # numpy returns the bytes of a member that is no array.
                if isinstance(array, np.ndarray):
                    arrays[name] = array
    except UNREADABLE as error:
        reason = str(error)
        # numpy takes any unknown format for a pickle, and its message recommends unsafe loading.
        if "allow_pickle" in reason:
            reason = "it is none, or has Python objects, which are not loaded"

        fault = f"{path} is no file of numpy arrays (npz)"
        raise UnusableFileError(fault, f"{fault}: {reason}") from None

    suffixes = _suffixes(path, arrays)
    counts = [_count_rows(path, arrays, suffix) for suffix in suffixes]
    parts: tuple[int, int, int] | None = None
    if len(counts) > 1:
        parts = (counts[0], counts[1] if len(counts) == 3 else 0, counts[-1])

    try:
        x = np.concatenate([arrays[f"x{suffix}"] for suffix in suffixes])
        y = targets.join([arrays[f"y{suffix}"] for suffix in suffixes])
    except ValueError as error:
        fault = f"the parts of {path} do not go together"
        raise UnusableFileError(fault, f"{fault}: {error}") from None

    inputs, turned = _channels_last(_inputs(path, x))
    answers = _answers(path, y, kind, of_images=inputs.ndim == 4)
    numeric = y.dtype.kind in "uifO" and kind is None
    advice = ": append :values to the name of the file if they are no classes" if numeric else ""
    return replace(check_content(path, inputs, answers, parts, advice), turned=turned)


def _suffixes(path: Path, arrays: Mapping[str, NDArray[Any]]) -> tuple[str, ...]:
    """Return the suffixes of the parts in the names of the arrays; one empty suffix without parts.

    Raises:
        UnusableFileError: Arrays are missing.
    """
    for suffixes in (("_train", "_valid", "_test"), ("_train", "_test"), ("",)):
        if arrays.keys() >= set(map("".join, product("xy", suffixes))):
            return suffixes

    fault = f"{path} must have x and y, or x_train, y_train, x_test and y_test"
    raise UnusableFileError(fault, f"{fault}: it has {', '.join(arrays) or 'nothing'}")


def _count_rows(path: Path, arrays: Mapping[str, NDArray[Any]], suffix: str) -> int:
    x = arrays[f"x{suffix}"]
    y = arrays[f"y{suffix}"]
    if x.ndim not in (2, 3, 4) or y.ndim != 1 or len(x) != len(y) or 0 in x.shape:
        raise UnusableFileError(
            f"x{suffix} and y{suffix} of {path} must be (n, features) or images (n, height, "
            f"width[, channels]), and (n,): got {x.shape} and {y.shape}"
        )

    return len(y)


def _inputs(path: Path, x: NDArray[Any]) -> NDArray[Any]:
    if x.dtype.kind not in "uifb":
        raise UnusableFileError(
            f"x of {path} must be numbers", f"x of {path} must be numbers, got {x.dtype}"
        )

    if x.ndim == 3:
        x = x[..., None]

    if x.ndim == 4 and x.dtype == np.uint8:
        return x

    return _finite(path, "x", x.astype(np.float64))


def _channels_last(x: NDArray[Any]) -> tuple[NDArray[Any], bool]:
    """Return images with their channels last, and whether the file has them first.

    The shape (n, a, b, c) tells where only a can be a number of channels, or where b = c and a is
    another number.
    """
    if x.ndim != 4 or x.shape[3] <= MOST_CHANNELS:
        return x, False

    _, first, second, last = x.shape
    turned = first <= MOST_CHANNELS or (second == last != first)
    return (np.ascontiguousarray(np.moveaxis(x, 1, -1)), True) if turned else (x, False)


def _answers(path: Path, y: NDArray[Any], kind: Kind | None, *, of_images: bool) -> NDArray[Any]:
    if y.dtype.kind not in "uifbUO":
        fault = f"y of {path} must be numbers or text"
        raise UnusableFileError(fault, f"{fault}, got {y.dtype}")

    if y.dtype.kind == "U" and kind == "values":
        raise UnusableFileError(
            f"y of {path} must be numbers to be values", f"y of {path} is text: it has no values"
        )

    checked = _finite(path, "y", y.astype(np.float64)) if y.dtype.kind == "f" else y
    if (kind or targets.kind_of_array(checked, of_images=of_images)) == "classes":
        return targets.classes_of_array(checked)

    return _finite(path, "y", checked.astype(np.float64))


def _finite(path: Path, name: str, values: NDArray[np.float64]) -> NDArray[np.float64]:
    holes = np.flatnonzero(~(np.abs(values.reshape(len(values), -1)) <= LARGEST).all(axis=1))
    if len(holes):
        row = holes[0] + 1
        raise UnusableFileError(
            f"row {row} of {name} in {path} has a number that is not finite, or above {LARGEST:.1e}"
        )

    return values


def numbers_of(path: Path, column: int, name: str, texts: Sequence[str]) -> NDArray[np.float64]:
    """Return the numbers in a column.

    Args:
        path: Path of the file, for messages.
        column: Number of the column, from 0.
        name: Its name.
        texts: Its entries.

    Raises:
        UnusableFileError: An entry is no finite number in single precision.
    """
    values = np.empty(len(texts))
    for row, text in enumerate(texts):
        try:
            values[row] = decimal(text)
        except ValueError:
            values[row] = np.nan

        if not abs(values[row]) <= LARGEST:
            limit = f" up to {LARGEST:.1e}" if np.isfinite(values[row]) else ""
            fault = f"row {row + 1} of {path} must have a finite number{limit} in the column"
            raise UnusableFileError(f"{fault} {column + 1}", f"{fault} {name!r}, got {text!r}")

    return values


def check_content(
    path: Path,
    inputs: NDArray[Any],
    answers: NDArray[Any],
    parts: tuple[int, int, int] | None,
    advice: str = "",
) -> FileContent:
    """Return the content of a file, if there is something to learn.

    Args:
        path: Path of the file, for messages.
        inputs: (n, …) inputs.
        answers: (n,) int64 classes, or float64 values.
        parts: Sizes of the file's own parts; None if it has none.
        advice: End of the message on a class with too few rows.

    Raises:
        UnusableFileError: There are too few rows, or the target is the same in all.
    """
    if len(answers) < FEWEST_ROWS:
        raise UnusableFileError(f"{path} must have at least {FEWEST_ROWS} rows, got {len(answers)}")

    rows = Rows(inputs, answers, held_out=parts[2] if parts else 0)
    if answers.dtype != np.int64:
        if np.ptp(answers) == 0:
            raise UnusableFileError(
                f"the target of {path} is the same in every row: there is nothing to learn",
                f"the target of {path} is {answers[0]:g} in every row: there is nothing to learn",
            )

        return FileContent(rows, "values", 1, parts)

    counts = np.bincount(answers)
    if len(counts) < 2:
        raise UnusableFileError(
            f"the target of {path} must have two classes or more, got {len(counts)}"
        )

    if counts.min() < FEWEST_OF_A_CLASS:
        raise UnusableFileError(
            f"each class of {path} must have at least {FEWEST_OF_A_CLASS} rows, the rarest of "
            f"{len(counts)} has {counts.min()}{advice}"
        )

    return FileContent(rows, "classes", len(counts), parts)

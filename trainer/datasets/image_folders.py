"""Folders of images: a folder for each class, or a CSV with a label for each file.

    FOLDER/CLASS/…/FILE                  classes by folders, split by the protocol
    FOLDER/train/CLASS/…, test, valid    the parts are the folder's
    FOLDER/*.csv, FOLDER/…/FILE          a header, then the name of a file and its label in each row

The images become arrays of one size. Grey ones have one channel, colours three; transparency is one
more channel where an image has it. Grey images of 16 bits keep them unless others are coloured.
Orientation follows the EXIF record. Images are decoded twice, one at a time: once to find the bad
ones and the sizes, which is cached below `ARCHIVE_HOME/data/images`, and once for the arrays.
"""

from __future__ import annotations

import os
import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from archive import named_files
from archive.errors import UnusableFileError
from archive.trainer.datasets import targets
from archive.trainer.datasets.image_files import FORMAT, ImageArrays, ImageFacts, facts_of
from archive.trainer.datasets.targets import Kind
from archive.trainer.datasets.user_readers import (
    FileContent,
    check_content,
    csv_lines,
    decode_text,
    numbers_of,
    separator_of,
)

if TYPE_CHECKING:
    pass


LARGEST_SIDE = 512
"""Largest height and width of the arrays."""
DEFAULT_SIDE = 64
"""Larger median sizes are reduced to this longer side, where the task names no size."""
MOST_BYTES = 2**33
"""Most bytes of the arrays in single precision."""
MOST_NAMED = 5
"""Most bad files that a message names."""
PARTS = {
    "train": 0,
    "training": 0,
    "val": 1,
    "valid": 1,
    "validation": 1,
    "test": 2,
    "testing": 2,
}
"""Names of folders that are parts: 0 trains, 1 validates, 2 tests."""


@dataclass(frozen=True, slots=True)
class ImageFile:
    """A file with its label.

    Attributes:
        name: Path relative to the folder, with slashes.
        label: Class or value.
        part: Number of its part (`PARTS`).
    """

    name: str
    label: str
    part: int = 0


def read_folder(
    folder: Path,
    digest: str,
    size: tuple[int, int] | None = None,
    kind: Kind | None = None,
    *,
    skip_bad: bool = False,
) -> FileContent:
    """Return the images and labels of a folder.

    Args:
        folder: The folder.
        digest: Digest of its content.
        size: Height and width of the arrays; None for a size by the median.
        kind: Kind of the labels; None infers it: folders are classes.
        skip_bad: Whether files that cannot be read, and rows of a table without a file, are left
            out.

    Raises:
        UnusableFileError: The folder has no such content, or files that cannot be read.
    """
    real = Path(os.path.realpath(folder))
    files, by_table, missing = _files(folder, real, skip_bad=skip_bad)
    facts = facts_of(real, digest, [file.name for file in files])
    bad = [file.name for file in files if facts[file.name].fault is not None]
    if bad and not skip_bad:
        raise _bad_files(folder, bad, facts)

    good = [file for file in files if facts[file.name].fault is None]
    if not good:
        raise UnusableFileError(f"{folder} has no image that can be read")

    # Rows of one part follow each other.
    good.sort(key=lambda file: file.part)
    seen = [facts[file.name] for file in good]
    colour = any(image.colour for image in seen)
    alpha = any(image.alpha for image in seen)
    deep = any(image.deep for image in seen) and not colour and not alpha
    height, width = size or _default_size(seen)
    names = tuple(file.name for file in good)
    arrays = ImageArrays(real, names, (height, width), colour, alpha, deep)
    _check_size(folder, arrays, named=size is not None)
    answers = _answers(folder, [file.label for file in good], kind, by_table=by_table)
    # The inputs are read when the parts are built: this has the shape, and takes no memory.
    placeholder = np.broadcast_to(np.uint8(0), arrays.shape)
    content = check_content(folder, placeholder, answers, _part_sizes(good))
    preparation = {
        "version": FORMAT,
        "size": [height, width],
        "channels": arrays.shape[3],
        "bits": 16 if deep else 8,
        "resize": "bilinear, both sides to the size",
        "skipped": len(bad) + missing,
    }
    notes = _notes(seen, arrays, size, len(bad) + missing)
    return content.prepared(arrays.read, preparation, notes)


def _notes(
    seen: Sequence[ImageFacts], arrays: ImageArrays, size: tuple[int, int] | None, skipped: int
) -> str:
    height, width = arrays.size
    channels = "colour" if arrays.colour else "grey"
    if arrays.alpha:
        channels += " with transparency"

    if arrays.deep:
        channels += " of 16 bits"

    sizes = {(image.height, image.width) for image in seen}
    if sizes == {arrays.size}:
        note = f"{height}x{width}, {channels}"
    else:
        rule = "" if size else f" by the median of {len(sizes)} sizes"
        note = f"resized to {height}x{width}{rule}, {channels}"

    if skipped:
        note += f"; {skipped} bad {'file' if skipped == 1 else 'files'} left out"

    return note


def _files(folder: Path, real: Path, *, skip_bad: bool) -> tuple[list[ImageFile], bool, int]:
    """Return the files with their labels, whether a table has these, and its rows without a file."""
    try:
        names = named_files.list_folder(real)
    except OSError as error:
        raise UnusableFileError(f"cannot read {folder}: {error.strerror}") from None

    tables = [name for name in names if name.endswith((".csv", ".CSV"))]
    images = [name for name in names if name not in tables]
    if not images:
        raise UnusableFileError(f"{folder} has no images ({', '.join(sorted(named_files.IMAGES))})")

    if len(tables) > 1:
        raise UnusableFileError(f"{folder} must have one CSV with the labels, got {len(tables)}")

    if tables:
        files, missing = _labelled(real / tables[0], images, skip_bad=skip_bad)
        return files, True, missing

    return _in_folders(folder, images), False, 0


def _in_folders(folder: Path, images: Sequence[str]) -> list[ImageFile]:
    tops = {name.split("/")[0] for name in images}
    parts = {PARTS.get(top.lower()) for top in tops}
    has_parts = None not in parts and {0, 2} <= parts
    files = []
    for name in images:
        steps = name.split("/")
        part = PARTS[steps[0].lower()] if has_parts else 0
        if has_parts:
            steps = steps[1:]

        if len(steps) < 2:
            raise UnusableFileError(
                f"{folder} must have a folder for each class, or a CSV with the names of the files "
                "and their labels: an image lies in neither",
                f"{folder} must have a folder for each class, or a CSV with the names of the files "
                f"and their labels: {name} lies in neither",
            )

        files.append(ImageFile(name, steps[0], part))

    return files


def _labelled(table: Path, images: Sequence[str], *, skip_bad: bool) -> tuple[list[ImageFile], int]:
    """Return the files of a table with their labels, and the number of rows without a file."""
    try:
        content = table.read_bytes()
    except OSError as error:
        raise UnusableFileError(f"cannot read {table}: {error.strerror}") from None

    separator = separator_of(decode_text(table, content))
    lines = csv_lines(table, content, separator)
    by_name = {name: name for name in images}
    # Names without their endings, where they are unique.
    stems: dict[str, list[str]] = {}
    for name in images:
        stems.setdefault(name.rpartition(".")[0], []).append(name)

    for stem, whole in stems.items():
        if len(whole) == 1:
            by_name.setdefault(stem, whole[0])

    files: list[ImageFile] = []
    used: set[str] = set()
    missing = 0
    for row, line in enumerate(lines[1:], 1):
        if len(line) != 2:
            raise UnusableFileError(
                f"{table} must have two columns, the name of the file and its label: "
                f"row {row} has {len(line)}"
            )

        entry, label = (text.strip() for text in line)
        image = by_name.get(entry.replace("\\", "/").removeprefix("./"))
        if image is None and skip_bad:
            missing += 1
            continue

        if image is None:
            fault = f"row {row} of {table} names no image of the folder"
            advice = "mend it, or append :skip-bad to the task to leave such rows out"
            raise UnusableFileError(fault, f"{fault}: {entry!r}; {advice}")

        if image in used:
            fault = f"row {row} of {table} names an image for the second time"
            raise UnusableFileError(fault, f"{fault}: {entry!r}")

        if not label:
            raise UnusableFileError(f"row {row} of {table} has no label")

        used.add(image)
        files.append(ImageFile(image, label))

    if not files:
        raise UnusableFileError(f"{table} has no row with the name of a file and its label")

    if separator != "," and all(_NUMBER_WITH_COMMA.fullmatch(file.label) for file in files):
        files = [replace(file, label=file.label.replace(",", ".")) for file in files]

    return sorted(files, key=lambda file: file.name), missing


_NUMBER_WITH_COMMA = re.compile(r"[-+]?\d+(,\d+)?")


def _answers(
    folder: Path, labels: Sequence[str], kind: Kind | None, *, by_table: bool
) -> NDArray[Any]:
    labelled = targets.labels_of(labels)
    inferred: Kind = "classes"
    if by_table and labelled is not None:
        whole = all(
            not isinstance(label, str) and label == label.to_integral_value()
            for label in labelled.values()
        )
        # As for arrays of images: whole numbers are classes.
        if not whole and not any(isinstance(label, str) for label in labelled.values()):
            inferred = "values"

    if (kind or inferred) == "classes":
        return targets.classes_of_texts(labels, labelled)

    return numbers_of(folder, 1, "label", labels)


def _part_sizes(files: Sequence[ImageFile]) -> tuple[int, int, int] | None:
    counts = [sum(file.part == part for file in files) for part in range(3)]
    return (counts[0], counts[1], counts[2]) if counts[2] else None


def _default_size(facts: Sequence[ImageFacts]) -> tuple[int, int]:
    height = statistics.median_low([image.height for image in facts])
    width = statistics.median_low([image.width for image in facts])
    scale = min(1.0, DEFAULT_SIDE / max(height, width))
    return max(1, round(height * scale)), max(1, round(width * scale))


def _check_size(folder: Path, arrays: ImageArrays, *, named: bool) -> None:
    needed = 4 * int(np.prod(arrays.shape, dtype=np.int64))
    if needed > MOST_BYTES:
        height, width = arrays.size
        smaller = max(1, max(height, width) // 2)
        hint = "" if named else " (by the median)"
        raise UnusableFileError(
            f"{len(arrays.names):,} images of {folder} take {needed / 2**30:.0f} GiB at "
            f"{height}x{width}{hint}, of at most {MOST_BYTES / 2**30:.0f}: name a smaller size, "
            f"such as images:{folder}@{smaller}"
        )


def _bad_files(folder: Path, bad: Sequence[str], facts: dict[str, ImageFacts]) -> UnusableFileError:
    count = "1 file" if len(bad) == 1 else f"{len(bad)} files"
    fault = f"{count} of {folder} cannot be read as images"
    named = ", ".join(f"{name} ({facts[name].fault})" for name in bad[:MOST_NAMED])
    if len(bad) > MOST_NAMED:
        named += ", …"

    return UnusableFileError(
        fault, f"{fault}: {named}; mend them, or append :skip-bad to the task to leave them out"
    )

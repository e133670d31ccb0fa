"""Tasks on files of users, with options at the end of their names.

    csv:PATH#TARGET        numbers without gaps: `archive.trainer.datasets.user_readers`;
                           other tables: `archive.trainer.datasets.mixed_tables`
    parquet:PATH#TARGET    `archive.trainer.datasets.mixed_tables`
    npz:PATH               arrays: `archive.trainer.datasets.user_readers`
    images:FOLDER          `archive.trainer.datasets.image_folders`
    images:FOLDER@32       resized to 32 x 32; `@32x48`: height and width

    :classes, :values      kind of the target
    :balanced              the classes weigh the same in the training loss
    :skip-bad              images that cannot be read are left out

The name of the protocol
contains the file's SHA-256, so that evaluations are comparable only if the data are the same. Its
rules depend on the data:

| rows   | rules of                                        |
|--------|-------------------------------------------------|
| images | `fashion-mnist/1`                               |
| < 2000 | `digits/1` for classes, `diabetes/1` for values |
| more   | `naval/1`                                       |

60 % of the rows are for training, 20 % for validation and 20 % for tests, stratified by class;
parts of the file itself are kept. A file with a test part but no validation part gives a fifth of
its training part for validation. The protocol `csv/DIGEST/long` has four times the epochs.
"""

from __future__ import annotations

import hashlib
import logging
import os
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

from archive.errors import TrainingError, UnusableFileError, UsageError
from archive.trainer.protocols.base import TrainingProtocol
from archive.trainer.tasks.base import Task
from archive.trainer.tasks.builtin import DIABETES, DIGITS, FASHION_MNIST, NAVAL
from archive.trainer.tasks.file_access import (
    BALANCED,
    KINDS,
    SKIP_BAD,
    find_path,
    read_file,
    redacted_errors,
    reference_of,
    sha256_of_path,
    split_options,
)

if TYPE_CHECKING:
    from archive.trainer.datasets.layout import Rows
    from archive.trainer.datasets.splits import Scaling, Splits
    from archive.trainer.datasets.targets import Kind
    from archive.trainer.datasets.user_readers import FileContent

PREFIXES = ("csv:", "images:", "npz:", "parquet:")
FORMS = ("csv:PATH#TARGET", "images:FOLDER", "npz:PATH", "parquet:PATH#TARGET")
"""Forms of the names of tasks, for messages."""
FEW = 2000
LONGER = 4
"""Epochs of the protocol `/long`, as a multiple of the first one's."""

log = logging.getLogger(__name__)


class FileTarget(NamedTuple):
    """What a task learns from a file, and how.

    Attributes:
        form: `csv`, `images`, `npz` or `parquet`.
        column: Column of a table; empty for the other forms.
        kind: Kind of the target; None infers it.
        size: Height and width of images; None for a size by the median.
        balanced: Whether the classes weigh the same in the training loss.
        skip_bad: Whether images that cannot be read are left out.
    """

    form: str
    column: str
    kind: Kind | None = None
    size: tuple[int, int] | None = None
    balanced: bool = False
    skip_bad: bool = False

    def reference(self, path: Path | str) -> str:
        """Return the file and the target as in the name of the task."""
        if self.column:
            return f"{path}#{self.text}"

        separator = ":" if self.form == "npz" and self.text else ""
        return f"{path}{separator}{self.text}"

    @property
    def text(self) -> str:
        """The target in names: column or size, then the options."""
        first = self.column
        if self.size is not None:
            height, width = self.size
            first = f"@{height}" if height == width else f"@{height}x{width}"

        options: list[str] = [self.kind] if self.kind else []
        if self.skip_bad:
            options.append(SKIP_BAD)

        if self.balanced:
            options.append(BALANCED)

        joined = ":".join(options)
        if not joined:
            return first

        return joined if self.form == "npz" else f"{first}:{joined}"


def parse(name: str) -> Task:
    """Return the task of a file or a folder of images.

    Args:
        name: `csv:PATH#TARGET`, `parquet:PATH#TARGET`, `npz:PATH` or `images:FOLDER`, perhaps with
            options.

    Raises:
        UsageError: The text or the file cannot be used.
    """
    form = name.partition(":")[0]
    reference, column = reference_of(name) or ("", "")
    if form in TABLES and not (reference and column):
        article = "CSV" if form == "csv" else "Parquet file"
        raise UsageError(f"a {article} is named as {form}:PATH#TARGET, got {name!r}")

    if form == "npz" and not reference:
        raise UsageError(f"a file of arrays is named as npz:PATH, got {name!r}")

    if form == "images" and not reference:
        raise UsageError(f"a folder of images is named as images:FOLDER, got {name!r}")

    target = _target(form, column, name)
    path, status = find_path(reference)
    if form == "images":
        return _folder_task(path, target)

    return _task(path, target, status.st_mtime_ns, status.st_size)


def _folder_task(folder: Path, target: FileTarget) -> Task:
    if not folder.is_dir():
        raise UsageError(f"images:{folder} must name a folder, got a file")

    try:
        digest = sha256_of_path(Path(os.path.realpath(folder)))
    except OSError as error:
        raise UsageError(f"cannot read {folder}: {error.strerror}") from None

    return _images_task(folder, target, digest)


TABLES = ("csv", "parquet")


def _target(form: str, text: str, name: str) -> FileTarget:
    """Return the target by the part of a name behind the path.

    Raises:
        UsageError: Two options contradict each other, or an option is not for the form.
    """
    if form == "npz":
        column = ""
        options = text.split(":") if text else []
    else:
        column, options = split_options(text)

    size = None
    if form == "images" and column:
        sides = [int(side) for side in column.removeprefix("@").split("x")]
        size = sides[0], sides[-1]
        _check_sides(size, name)
        column = ""

    kinds = [option for option in options if option in KINDS]
    if len({*kinds}) > 1 or len({*options}) < len(options):
        raise UsageError(f"the options of a task must be given once, got {name!r}")

    if SKIP_BAD in options and form != "images":
        raise UsageError(f":{SKIP_BAD} is for images, got {name!r}")

    return FileTarget(
        form,
        column,
        cast("Kind", kinds[0]) if kinds else None,
        size,
        BALANCED in options,
        SKIP_BAD in options,
    )


def _check_sides(size: tuple[int, int], name: str) -> None:
    from archive.trainer.datasets.image_folders import LARGEST_SIDE

    if not all(1 <= side <= LARGEST_SIDE for side in size):
        raise UsageError(f"the size of images must be 1 to {LARGEST_SIDE}, got {name!r}")


@lru_cache(maxsize=16)
def _task(path: Path, target: FileTarget, _modified: int, _size: int) -> Task:
    raw = read_file(path)
    return _task_of(path, target, hashlib.sha256(raw).hexdigest(), _content(path, raw, target))


@lru_cache(maxsize=16)
def _images_task(folder: Path, target: FileTarget, digest: str) -> Task:
    return _task_of(folder, target, digest, _images(folder, digest, target))


def _task_of(path: Path, target: FileTarget, sha256: str, content: FileContent) -> Task:
    classes = content.kind == "classes"
    if target.balanced and not classes:
        raise UsageError(f"classes alone can be :{BALANCED}, but {path} has values to predict")

    protocol = _protocol(content, target, sha256)
    inputs = content.rows.inputs
    images = inputs.ndim == 4
    if content.encode is not None and not images:
        # The number of inputs depends on the training part.
        inputs = _encoded(content, protocol).inputs

    longer = replace(
        protocol,
        name=f"{protocol.name}/long",
        epochs=LONGER * protocol.epochs,
        patience=LONGER * protocol.patience,
    )
    features = tuple(inputs.shape[1:])
    summary = f"{content.kind} of {target.reference(path)}, {len(inputs):,} rows"
    if content.notes:
        summary += f", {content.notes}"

    if content.turned:
        height, width, channels = features
        shape = f"{height}x{width} with {channels} channels"
        summary += f", channels first, {shape}"
        log.warning(
            "the images of %s have their channels first, and are read as %s", path.name, shape
        )

    return Task(
        name=f"{target.form}:{target.reference(path)}",
        summary=summary,
        kind="classification" if classes else "regression",
        metric="accuracy" if classes else "mse",
        direction="maximise" if classes else "minimise",
        input_shape=(features[2], *features[:2]) if images else features,
        outputs=content.classes,
        spaces=("cnn", "mlp") if images and classes else ("mlp",),
        protocols=(protocol, longer),
        loader=partial(_load, path, target),
        scaling=partial(_scaling, path, target),
        title=_title(path, target),
    )


def _title(path: Path, target: FileTarget) -> str:
    size = "" if target.size is None else "x".join(map(str, target.size))
    words = [path.stem, target.column, size, target.kind]
    if target.skip_bad:
        words.append(SKIP_BAD)

    if target.balanced:
        words.append(BALANCED)

    return "-".join(word for word in words if word).replace(":", "-")


def _protocol(content: FileContent, target: FileTarget, sha256: str) -> TrainingProtocol:
    n = len(content.rows.targets)
    if content.rows.inputs.ndim == 4:
        rules = FASHION_MNIST
    elif n >= FEW:
        rules = NAVAL
    else:
        rules = DIGITS if content.kind == "classes" else DIABETES

    split: Literal["stratified", "shuffled", "held-out", "given"]
    if content.parts is None:
        valid = n // 5
        split = "stratified" if content.kind == "classes" else "shuffled"
        train = n - 2 * valid
        test = valid
    elif content.parts[1]:
        (train, valid, test), split = content.parts, "given"
    else:
        valid = content.parts[0] // 5
        test = content.parts[2]
        split = "held-out"
        train = content.parts[0] - valid

    if 0 in (train, valid, test):
        raise UsageError(
            f"the file leaves {train} rows to train, {valid} to validate and {test} to test with"
        )

    ours = replace(
        rules.protocol(f"{rules.name}/1"), train=train, valid=valid, test=test, split=split
    )
    return replace(
        ours,
        name=f"{target.form}/{sha256[:12]}",
        data=sha256,
        class_weights="balanced" if target.balanced else "none",
        preparation=content.preparation,
    )


def _load(path: Path, target: FileTarget, protocol: TrainingProtocol) -> Splits:
    from archive.trainer.datasets import cache, layout

    def parts() -> layout.Parts:
        with redacted_errors(path):  # The errors of a trial are recorded in the archive.
            return layout.cut(_rows(path, target, protocol), protocol)

    def target_scaling() -> tuple[float, float] | None:
        with redacted_errors(path):
            return _scaling(path, target, protocol).target

    # The number is the version of the readers: parts of another version are not used.
    column = hashlib.sha256(f"2 {target.form} {target.text}".encode()).hexdigest()[:8]
    return cache.splits(f"user-{protocol.data[:32]}-{column}", protocol, parts, target_scaling)


def _scaling(path: Path, target: FileTarget, protocol: TrainingProtocol) -> Scaling:
    from archive.trainer.datasets import layout

    return layout.scaling(_rows(path, target, protocol), protocol)


def _rows(path: Path, target: FileTarget, protocol: TrainingProtocol) -> Rows:
    changed = f"{path} has changed since the task was named"
    if target.form == "images":
        try:
            digest = sha256_of_path(Path(os.path.realpath(path)))
        except OSError as error:
            raise UsageError(f"cannot read {path}: {error.strerror}") from None

        if digest != protocol.data:
            raise TrainingError(changed)

        return _encoded(_images(path, digest, target), protocol)

    raw = read_file(path)
    if hashlib.sha256(raw).hexdigest() != protocol.data:
        raise TrainingError(changed)

    return _encoded(_content(path, raw, target), protocol)


def _encoded(content: FileContent, protocol: TrainingProtocol) -> Rows:
    """Return the rows of a file, with inputs that are encoded by the training part."""
    from archive.trainer.datasets import layout

    if content.encode is None:
        return content.rows

    train = layout.choose(content.rows, protocol)["train"]
    return replace(content.rows, inputs=content.encode(train))


def _content(path: Path, raw: bytes, target: FileTarget) -> FileContent:
    from archive.trainer.datasets import mixed_tables
    from archive.trainer.datasets.user_readers import read_csv, read_npz

    if target.form == "npz":
        return read_npz(path, raw, target.kind)

    if target.form == "parquet":
        return mixed_tables.read_parquet(path, raw, target.column, target.kind)

    # Numbers without gaps keep their own reader: their rows are the same in all versions.
    with suppress(UnusableFileError):
        return read_csv(path, raw, target.column, target.kind)

    return mixed_tables.read_mixed_csv(path, raw, target.column, target.kind)


def _images(folder: Path, digest: str, target: FileTarget) -> FileContent:
    from archive.trainer.datasets import image_folders

    return image_folders.read_folder(
        folder, digest, target.size, target.kind, skip_bad=target.skip_bad
    )

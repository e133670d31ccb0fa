"""Tasks on files of users: `csv:PATH#TARGET`, `npz:PATH`, and each with `:classes` or `:values`.

`archive.trainer.datasets.user_readers` defines the contents of the files. The name of the protocol
contains the file's SHA-256, so that evaluations are comparable only if the data are the same. Its
rules depend on the data:

| rows   | rules of                                        |
|--------|-------------------------------------------------|
| images | `fashion-mnist/1`                               |
| < 2000 | `digits/1` for classes, `diabetes/1` for values |
| more   | `naval/1`                                       |

60 % of the rows are for training, 20 % for validation and 20 % for tests, stratified by class;
parts of the file itself are kept. A file with a test part but no validation part gives a fifth of
its training part for validation.
"""

from __future__ import annotations

import hashlib
import logging
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

from archive.errors import TrainingError, UsageError
from archive.files import absolute
from archive.trainer.protocols.base import TrainingProtocol
from archive.trainer.tasks.base import Task
from archive.trainer.tasks.builtin import DIABETES, DIGITS, FASHION_MNIST, NAVAL
from archive.trainer.tasks.file_access import KINDS, redacted_errors, reference_of

if TYPE_CHECKING:
    from archive.trainer.datasets.layout import Rows
    from archive.trainer.datasets.splits import Scaling, Splits
    from archive.trainer.datasets.targets import Kind
    from archive.trainer.datasets.user_readers import FileContent

PREFIXES = ("csv:", "npz:")
FORMS = ("csv:PATH#TARGET", "npz:PATH")
"""Forms of the names of tasks, for messages."""
FEW = 2000

log = logging.getLogger(__name__)


class FileTarget(NamedTuple):
    """What a task learns from a file.

    Attributes:
        form: `csv` or `npz`.
        column: Column of a CSV; empty for an `npz`.
        kind: Kind of the target; None infers it.
    """

    form: str
    column: str
    kind: Kind | None = None

    def reference(self, path: Path | str) -> str:
        """Return the file and the target as in the name of the task."""
        return f"{path}#{self.text}" if self.column else f"{path}{self.text}"

    @property
    def text(self) -> str:
        """The target in names: column and kind."""
        return f"{self.column}:{self.kind}" if self.kind else self.column


def parse(name: str) -> Task:
    """Return the task `csv:PATH#TARGET` or `npz:PATH`, perhaps with the kind of the target.

    Raises:
        UsageError: The text or the file cannot be used.
    """
    form = name.partition(":")[0]
    reference, column = reference_of(name) or ("", "")
    if form == "csv" and not (reference and column):
        raise UsageError(f"a CSV is named as csv:PATH#TARGET, got {name!r}")

    if not reference:
        raise UsageError(f"a file of arrays is named as npz:PATH, got {name!r}")

    try:
        path = absolute(reference)
        status = path.stat()
    except OSError as error:
        raise UsageError(f"cannot read {reference}: {error.strerror}") from None
    except ValueError as error:
        # The text cannot be a path.
        raise UsageError(f"cannot read {reference!r}: {error}") from None

    return _task(path, _target(form, column), status.st_mtime_ns, status.st_size)


def _target(form: str, text: str) -> FileTarget:
    if form == "npz":
        return FileTarget(form, "", cast("Kind", text) if text else None)

    column, separator, kind = text.rpartition(":")
    if separator and kind in KINDS:
        return FileTarget(form, column, cast("Kind", kind))

    return FileTarget(form, text)


@lru_cache(maxsize=16)
def _task(path: Path, target: FileTarget, _modified: int, _size: int) -> Task:
    raw = _bytes(path)
    sha256 = hashlib.sha256(raw).hexdigest()
    content = _content(path, raw, target)
    inputs = content.rows.inputs
    images = inputs.ndim == 4
    classes = content.kind == "classes"
    features = tuple(inputs.shape[1:])
    summary = f"{content.kind} of {target.reference(path)}, {len(inputs):,} rows"
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
        protocols=(_protocol(content, target.form, sha256),),
        loader=partial(_load, path, target),
        scaling=partial(_scaling, path, target),
        title="-".join(filter(None, (path.stem, target.column, target.kind))).replace(":", "-"),
    )


def _protocol(content: FileContent, form: str, sha256: str) -> TrainingProtocol:
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
    return replace(ours, name=f"{form}/{sha256[:12]}", data=sha256)


def _load(path: Path, target: FileTarget, protocol: TrainingProtocol) -> Splits:
    from archive.trainer.datasets import cache, layout

    def parts() -> layout.Parts:
        with redacted_errors(path):  # The errors of a trial are recorded in the archive.
            return layout.cut(_rows(path, target, protocol), protocol)

    # The number is the version of the readers: parts of another version are not used.
    column = hashlib.sha256(f"2 {target.form} {target.text}".encode()).hexdigest()[:8]
    return cache.splits(f"user-{protocol.data[:32]}-{column}", protocol, parts)


def _scaling(path: Path, target: FileTarget, protocol: TrainingProtocol) -> Scaling:
    from archive.trainer.datasets import layout

    return layout.scaling(_rows(path, target, protocol), protocol)


def _rows(path: Path, target: FileTarget, protocol: TrainingProtocol) -> Rows:
    raw = _bytes(path)
    if hashlib.sha256(raw).hexdigest() != protocol.data:
        raise TrainingError(f"{path} has changed since the task was named")

    return _content(path, raw, target).rows


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None


def _content(path: Path, raw: bytes, target: FileTarget) -> FileContent:
    from archive.trainer.datasets.user_readers import read_csv, read_npz

    if target.form == "npz":
        return read_npz(path, raw, target.kind)

    return read_csv(path, raw, target.column, target.kind)

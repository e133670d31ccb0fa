"""Tasks on files of users: `csv:PATH#TARGET`, `csv:PATH#TARGET:classes`, `csv:PATH#TARGET:values`, `npz:PATH`.

What the files must hold is said in `archive.trainer.datasets.userfiles`. The protocol's name has the file's SHA-256 in
it, so that evaluations are comparable only where the data are the same. Its rules go by what there is:

| rows   | rules                                                                                    |
|--------|------------------------------------------------------------------------------------------|
| images | those of `fashion-mnist/1`                                                               |
| < 2000 | those of `digits/1` for classes, of `diabetes/1` for values                              |
| more   | those of `naval/1`                                                                       |

60 % of the rows train, 20 % validate and 20 % test, each class in its share; parts that the file has itself are kept. A
file with a test part and none for validation gives a fifth of its training part.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from archive.errors import TrainingError, UsageError
from archive.trainer.tasks.base import Task
from archive.trainer.tasks.builtin import DIABETES, DIGITS, FASHION_MNIST, NAVAL
from archive.trainer.tasks.file_access import discreet, reference_of
from archive.trainer.tasks.protocol import Protocol

if TYPE_CHECKING:
    from archive.trainer.datasets.tensors import Splits
    from archive.trainer.datasets.userfiles import Content, Kind

PREFIXES = ("csv:", "npz:")
FEW = 2000
KINDS = ("classes", "values")


def parse(name: str) -> Task:
    """Return the task that a text `csv:PATH#TARGET` or `npz:PATH` names.

    Raises:
        UsageError: The text or the file cannot be used.
    """
    reference, column = reference_of(name) or ("", "")
    target = column if name.startswith("csv:") else None
    if target is not None and not (reference and target):
        raise UsageError(f"a CSV is named as csv:PATH#TARGET, got {name!r}")
    if not reference:
        raise UsageError(f"a file of arrays is named as npz:PATH, got {name!r}")
    try:
        path = Path(reference).expanduser().absolute()
        status = path.stat()
    except OSError as error:
        raise UsageError(f"cannot read {reference}: {error.strerror}") from None
    except (RuntimeError, ValueError) as error:
        # There is no home of such a user, or the text cannot be a path.
        raise UsageError(f"cannot read {reference!r}: {error}") from None
    return _task(path, target, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=16)
def _task(path: Path, target: str | None, _modified: int, _size: int) -> Task:
    content = _bytes(path)
    sha256 = hashlib.sha256(content).hexdigest()
    found = _content(path, content, target)
    inputs = found.rows.inputs
    images, classes = inputs.ndim == 4, found.kind == "classes"
    of = f"{path}#{target}" if target else str(path)
    features = tuple(inputs.shape[1:])
    return Task(
        name=f"{'csv' if target else 'npz'}:{of}",
        summary=f"{'classes' if classes else 'values'} of {of}, {len(inputs):,} rows",
        kind="classification" if classes else "regression",
        metric="accuracy" if classes else "mse",
        direction="maximise" if classes else "minimise",
        input_shape=(features[2], *features[:2]) if images else features,
        outputs=found.classes,
        spaces=("cnn", "mlp") if images and classes else ("mlp",),
        protocols=(_protocol(found, "csv" if target else "npz", sha256),),
        loader=partial(_load, path, target),
        title=f"{path.stem}-{target}".replace(":", "-") if target else path.stem,
    )


def _protocol(found: Content, form: str, sha256: str) -> Protocol:
    n = len(found.rows.targets)
    if found.rows.inputs.ndim == 4:
        rules = FASHION_MNIST
    elif n >= FEW:
        rules = NAVAL
    else:
        rules = DIGITS if found.kind == "classes" else DIABETES
    split: Literal["stratified", "shuffled", "held-out", "given"]
    if found.parts is None:
        valid, split = n // 5, "stratified" if found.kind == "classes" else "shuffled"
        train, test = n - 2 * valid, valid
    elif found.parts[1]:
        (train, valid, test), split = found.parts, "given"
    else:
        valid, test, split = found.parts[0] // 5, found.parts[2], "held-out"
        train = found.parts[0] - valid
    if 0 in (train, valid, test):
        raise UsageError(f"the file leaves {train} rows to train, {valid} to validate and {test} to test with")
    ours = replace(rules.protocol(f"{rules.name}/1"), train=train, valid=valid, test=test, split=split)
    return replace(ours, name=f"{form}/{sha256[:12]}", data=sha256)


def _load(path: Path, target: str | None, protocol: Protocol) -> Splits:
    from archive.trainer.datasets import cache, layout

    def parts() -> layout.Parts:
        content = _bytes(path)
        if hashlib.sha256(content).hexdigest() != protocol.data:
            raise TrainingError(f"{path} has changed since the task was named")
        with discreet(path):  # What a trial says goes on record.
            return layout.cut(_content(path, content, target).rows, protocol)

    column = hashlib.sha256((target or "").encode()).hexdigest()[:8]
    return cache.splits(f"user-{protocol.data[:32]}-{column}", protocol, parts)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None


def _content(path: Path, content: bytes, target: str | None) -> Content:
    from archive.trainer.datasets.userfiles import read_csv, read_npz

    if target is None:
        return read_npz(path, content)
    column, separator, kind = target.rpartition(":")
    if separator and kind in KINDS:
        return read_csv(path, content, column, cast("Kind", kind))
    return read_csv(path, content, target, None)

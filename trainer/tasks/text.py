"""Tasks on text: the next byte is predicted, and the metric is bits per byte of held-out documents.

    text:PATH           a file of a user (`archive.trainer.datasets.documents` lists the forms)
    pydoc-topics        the reference text inside Python, half a megabyte of English and code

The name of the protocol contains a digest of the text, since results on other texts do not compare:
Python's reference changes with its version. The default protocol trains on a quarter of a million
tokens, a minute for a small network on a CPU; other budgets and optimisers are variants
(`archive.trainer.tasks.text_variants`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from archive.errors import TrainingError, UsageError
from archive.trainer.protocols.base import TrainingProtocol
from archive.trainer.tasks.base import Task
from archive.trainer.tasks.file_access import find_path, read_file, redacted_errors

if TYPE_CHECKING:
    from archive.trainer.datasets.splits import Splits

PREFIX = "text:"
FORM = "text:PATH"
PYDOC = "pydoc-topics"

CONTEXT = 128
BATCH = 16
EPOCHS = 10
STEPS = 12
"""Tokens of a sequence, sequences of a step, epochs, and steps of an epoch in the default protocol:
245,760 tokens."""

_SEED = 0

RULES = TrainingProtocol(
    name="",
    train=0,
    valid=0,
    test=0,
    split="shuffled",
    split_seed=_SEED,
    batch=BATCH,
    epochs=EPOCHS,
    patience=EPOCHS,
    epoch_steps=STEPS,
    optimiser="adamw",
    learning_rate=4e-3,
    warmup=0.1,
    weight_decay=0.1,
    normalisation="none",
    gradient_norm=1.0,
    preparation={"context": CONTEXT},
)


def parse(name: str) -> Task:
    """Return the task of a file of text.

    Args:
        name: `text:PATH`.

    Raises:
        UsageError: The file cannot be used.
    """
    reference = name.removeprefix(PREFIX)
    if not reference:
        raise UsageError(f"a text is named as {FORM}, got {name!r}")

    path, status = find_path(reference)
    if path.is_dir():
        raise UsageError(
            f"text:{reference} must name a file, got a folder: write its texts as lines "
            '{"text": "…"} of a .jsonl file'
        )

    return _file_task(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=16)
def _file_task(path: Path, _modified: int, _size: int) -> Task:
    raw = read_file(path)
    sha256 = hashlib.sha256(raw).hexdigest()
    return _task(
        f"{PREFIX}{path}",
        _documents(path, raw),
        sha256,
        family="text",
        title=path.stem,
        summary=f"next byte of {path}",
        path=path,
    )


def pydoc_topics() -> Task:
    """Return the task on the topics of Python's reference."""
    from archive.trainer.datasets.documents import topics

    documents = topics()
    return _task(
        PYDOC,
        documents,
        hashlib.sha256(b"\0".join(documents)).hexdigest(),
        family=PYDOC,
        title="",
        summary="next byte of Python's reference text (inside Python)",
        path=None,
    )


def _task(
    name: str,
    documents: Sequence[bytes],
    sha256: str,
    *,
    family: str,
    title: str,
    summary: str,
    path: Path | None,
) -> Task:
    from archive.trainer.datasets.documents import BYTES, count_sequences, split

    counts = [count_sequences(part, CONTEXT) for part in split(documents, _SEED)]
    if 0 in counts:
        raise UsageError(
            f"{name} leaves {counts[0]} sequences of {CONTEXT} bytes to train, {counts[1]} to "
            f"validate and {counts[2]} to test with: it needs more text, in several documents"
        )

    train, valid, test = counts
    protocol = replace(
        RULES, name=f"{family}/{sha256[:12]}", data=sha256, train=train, valid=valid, test=test
    )
    size = sum(map(len, documents))
    return Task(
        name=name,
        summary=f"{summary}, {len(documents):,} documents, {size / 1e6:.1f} MB",
        kind="language",
        metric="bits_per_byte",
        direction="minimise",
        input_shape=(CONTEXT,),
        outputs=BYTES,
        spaces=("decoder",),
        protocols=(protocol,),
        loader=partial(_load, path),
        title=title,
    )


def _load(path: Path | None, protocol: TrainingProtocol) -> Splits:
    from archive.trainer.datasets import documents as texts
    from archive.trainer.datasets.splits import DataPart, Splits

    if path is None:
        documents = texts.topics()
    else:
        raw = read_file(path)
        if hashlib.sha256(raw).hexdigest() != protocol.data:
            raise TrainingError(f"{path} has changed since the task was named")

        with redacted_errors(path):  # The errors of a trial are recorded in the archive.
            documents = _documents(path, raw)

    context = int(protocol.preparation["context"])
    parts = texts.split(documents, protocol.split_seed)
    return Splits(
        DataPart(*texts.pack(parts.train, context)),
        DataPart(*texts.pack(parts.valid, context)),
        DataPart(*texts.pack(parts.test, context)),
    )


def _documents(path: Path, raw: bytes) -> list[bytes]:
    from archive.trainer.datasets.documents import read_documents

    return read_documents(path, raw)

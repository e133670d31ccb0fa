"""Published data sets: located, read by one function for each file form, cut and cached.

The rows of a table are sorted by their numbers, so that the order in an edition has no effect.
Files of `numpy` are read without unpickling.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import struct
import tarfile
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from archive.errors import TrainingError
from archive.trainer.datasets import cache, layout, sources
from archive.trainer.datasets.layout import Rows
from archive.trainer.datasets.sources import LocatedFiles

if TYPE_CHECKING:
    from archive.trainer.datasets.splits import Scaling, Splits
    from archive.trainer.protocols.base import TrainingProtocol

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float64]

NAVAL_INPUTS = 16
NAVAL_TARGET = 16
"""Sixteen measurements; then the decay of the compressor, the target, and the decay of the turbine,
which is unused."""

UNREADABLE = (
    OSError,
    EOFError,
    ValueError,
    TypeError,
    AttributeError,
    LookupError,
    ArithmeticError,
    MemoryError,
    RuntimeError,
    SyntaxError,
    tokenize.TokenError,
    struct.error,
    zlib.error,
    tarfile.TarError,
    zipfile.BadZipFile,
)
"""Errors of a reader on a file that was cut off or altered, or has another form."""


def read(name: str, files: LocatedFiles) -> Rows:
    """Return all rows of a data set.

    Raises:
        TrainingError: A file cannot be read, or has other rows than the protocols were made for.
    """
    try:
        rows = READERS[files.form.reader](files.paths)
    except UNREADABLE as error:
        # The recorded reason must not quote the file, and the reader's error may.
        kind = type(error).__name__
        raise TrainingError(f"{files.paths[0]} cannot be read as data of {name} ({kind})") from None

    if not _as_published(files, rows):
        raise TrainingError(
            f"{files.paths[0]} has other data than the protocols of {name} were made for: "
            f"use those of {files.source.origin}"
        )

    return rows


def digest(rows: Rows) -> str:
    """Return the SHA-256 of the rows: the inputs, then the targets."""
    content = hashlib.sha256()
    for part in (rows.inputs, rows.targets):
        content.update(f"{part.dtype.str}{part.shape}".encode())
        content.update(np.ascontiguousarray(part).data)

    return content.hexdigest()


def _as_published(files: LocatedFiles, rows: Rows) -> bool:
    """Whether the rows have the published digest, or, without one, the files have theirs."""
    if files.source.content is not None:
        return digest(rows) == files.source.content

    for path, file in zip(files.paths, files.form.files, strict=True):
        if not _has_hash(path, file.hash):
            return False

    return True


def _has_hash(path: Path, published: str | None) -> bool:
    algorithm, _, value = (published or "").partition(":")
    with path.open("rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest() == value


def _keras_npz(paths: Sequence[Path]) -> Rows:
    arrays = _arrays(paths[0])
    return _images((arrays["x_train"], arrays["y_train"]), (arrays["x_test"], arrays["y_test"]))


def _idx(paths: Sequence[Path]) -> Rows:
    return _images(
        (_idx_array(paths[0]), _idx_array(paths[1])), (_idx_array(paths[2]), _idx_array(paths[3]))
    )


def _idx_array(path: Path) -> Bytes:
    """Read an array of bytes in MNIST's format: zero, zero, 8 for bytes, rank, shape, data."""
    content = gzip.decompress(path.read_bytes())
    rank = content[3]
    shape = np.frombuffer(content, ">u4", rank, offset=4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * rank).reshape(shape)


def _cifar_binary(paths: Sequence[Path]) -> Rows:
    """Read records of 3,073 bytes: the class, then 32 x 32 bytes each of red, green and blue."""
    parts = []
    with tarfile.open(paths[0]) as archive:
        for names in (map("data_batch_{}.bin".format, range(1, 6)), ["test_batch.bin"]):
            content = b""
            for name in names:
                file = archive.extractfile(f"cifar-10-batches-bin/{name}")
                content += b"" if file is None else file.read()

            records = np.frombuffer(content, np.uint8).reshape(-1, 1 + 3 * 32 * 32)
            images = records[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
            parts.append((images, records[:, 0]))

    return _images(*parts)


def _cifar_jpeg(paths: Sequence[Path]) -> Rows:
    """Decode concatenated JPEG images, each from one offset to the next."""
    try:
        from PIL import Image
    except ImportError:
        raise TrainingError(
            "images are decoded by pillow, which is not installed: pip install pillow"
        ) from None

    arrays = _arrays(paths[0])
    parts = []
    for part in ("train", "test"):
        content = arrays[f"{part}_bytes"]
        offsets = arrays[f"{part}_offsets"]
        images: list[NDArray[Any]] = []
        for start, end in pairwise(offsets):
            encoded = io.BytesIO(content[start:end].tobytes())
            images.append(np.asarray(Image.open(encoded)))

        parts.append((np.stack(images), arrays[f"{part}_labels"]))

    return _images(*parts)


def _images(train: tuple[Bytes, Bytes], test: tuple[Bytes, Bytes]) -> Rows:
    """Concatenate parts: images (n, height, width[, channels]) with their classes."""
    pixels, classes = map(np.concatenate, zip(train, test, strict=True))
    if pixels.dtype != np.uint8 or len(pixels) != len(classes):
        raise ValueError(f"{len(pixels)} images of {pixels.dtype} have {len(classes)} classes")

    return Rows(
        pixels.reshape(*pixels.shape[:3], -1), classes.astype(np.int64), held_out=len(test[1])
    )


def _naval(table: Floats) -> Rows:
    return _sort_rows(table[:, :NAVAL_INPUTS], table[:, NAVAL_TARGET])


def _naval_npz(paths: Sequence[Path]) -> Rows:
    return _naval(_arrays(paths[0])["data"])


def _naval_zip(paths: Sequence[Path]) -> Rows:
    with zipfile.ZipFile(paths[0]) as archive:
        return _naval(np.loadtxt(io.BytesIO(archive.read("UCI CBM Dataset/data.txt"))))


def _protein_npz(paths: Sequence[Path]) -> Rows:
    table = _arrays(paths[0])["data"]
    return _sort_rows(table[:, :9], table[:, 9])


def _protein_csv(paths: Sequence[Path]) -> Rows:
    table = np.loadtxt(paths[0], delimiter=",", skiprows=1)
    return _sort_rows(table[:, 1:], table[:, 0])


def _sort_rows(inputs: Floats, targets: Floats) -> Rows:
    order = np.lexsort((targets, *inputs.T))
    return Rows(inputs[order], targets[order])


def _arrays(path: Path) -> dict[str, NDArray[Any]]:
    # numpy does not close a file that it opened and could not read.
    with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


READERS: dict[str, Callable[[Sequence[Path]], Rows]] = {
    "cifar_binary": _cifar_binary,
    "cifar_jpeg": _cifar_jpeg,
    "idx": _idx,
    "keras_npz": _keras_npz,
    "naval_npz": _naval_npz,
    "naval_zip": _naval_zip,
    "protein_csv": _protein_csv,
    "protein_npz": _protein_npz,
}
"""Readers by the names of the forms in `sources`."""


def load(name: str, protocol: TrainingProtocol) -> Splits:
    """Return the parts of a data set under a protocol.

    Raises:
        SettingsError: A file is missing and cannot be fetched.
        TrainingError: A file has other content than the protocol was made for.
    """

    def parts() -> layout.Parts:
        return layout.cut(_rows(name, protocol), protocol)

    def target_scaling() -> tuple[float, float] | None:
        return scaling(name, protocol).target

    return cache.splits(f"{name}-{protocol.data}", protocol, parts, target_scaling)


def scaling(name: str, protocol: TrainingProtocol) -> Scaling:
    """Return the scaling of the parts that `load` returns.

    Raises:
        SettingsError: A file is missing and cannot be fetched.
        TrainingError: A file has other content than the protocol was made for.
    """
    return layout.scaling(_rows(name, protocol), protocol)


def _rows(name: str, protocol: TrainingProtocol) -> layout.Rows:
    return read(name, sources.locate(name, protocol.data))

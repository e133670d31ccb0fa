"""File format of a dump: compressed JSON lines of header, records and trailer with digest.

    line 1      {"dump": "nas-archive", "version": 3, "schema": 8, "release": "0.1.0", "studies": ["one"]}
    line 2 …    {"record": "study", …}                   each kind is described in `archive.exchange.record_schema`
    last line   {"counts": {"study": 1, …}, "sha256": "…"}      of every byte before this line

The same archive gives the same bytes: a file contains neither its date nor its name. A file appears
under its name when it is complete. Reading needs memory for one line, whatever the size of the
file. For any input, even a hostile one, the result is records or one `UsageError`. Numbers that
JSON cannot express are written as `{"float": "nan"}`.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import os
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self

from archive import __version__
from archive.errors import UsageError
from archive.exchange.record_schema import Record, parse_record, text_of
from archive.files import check_regular, partial_path, publish, sync
from archive.store.schema import LATEST
from archive.values import brief

FORMAT = "nas-archive"
VERSION = 3
"""Version of the format that this release writes; it also reads earlier ones
(`archive.exchange.file_format`)."""

MOST_BYTES = 64 * 2**30
"""Default limit of the decompressed size."""
MOST_LINE = 16 * 2**20
"""Maximum length of a line: ten times the largest network, or 500 rows of distances."""
MOST_RATIO = 250
"""Maximum compression ratio.

A dump of repetitive curves has 40; a file with a much larger one is an attack.
"""
_UNSUSPICIOUS = 64 * 2**20


@dataclass(frozen=True)
class Header:
    """First line of a dump.

    Attributes:
        version: Version of the format.
        schema: Version of the schema of the database.
        release: Release of the program that wrote it.
        studies: Names of the requested studies; None for a whole archive.
    """

    version: int
    schema: int
    release: str
    studies: list[str] | None


@dataclass(frozen=True)
class Contents:
    """Content of a complete dump: header, number of records of each kind, digest of the lines."""

    header: Header
    counts: Mapping[str, int]
    sha256: str


class DumpWriter:
    """Writer of a dump: the file gets its name when the `with` block ends without an error.

    Args:
        path: Path of the dump.
        schema: Version of the database's schema.
        studies: Names of the requested studies; None for a whole archive.
        force: Whether to replace an existing file.

    Raises:
        UsageError: The file exists, at the beginning or at the end, cannot be written, or is a
            folder or a device.
    """

    def __init__(
        self, path: Path, schema: int, studies: list[str] | None, *, force: bool = False
    ) -> None:
        """Prepare the header."""
        self._path = path
        self._force = force
        self._head = {
            "dump": FORMAT, "version": VERSION, "schema": schema, "release": __version__, "studies": studies
        }  # fmt: skip
        self._counts: Counter[str] = Counter()
        self._digest = hashlib.sha256()

    def __enter__(self) -> Self:
        """Begin the file."""
        check_regular(self._path)
        if os.path.exists(self._path) and not self._force:
            raise self._exists()

        with _readable_errors(f"cannot write {self._path}"):
            self._part = partial_path(self._path)
            # An ordinary open, so that the permissions follow the umask of this process.
            self._raw = self._part.open("xb")

        self._packed = gzip.GzipFile("", "wb", 6, self._raw, mtime=0)
        self._line(self._head)
        return self

    def write(self, kind: str, record: Mapping[str, Any]) -> None:
        """Add one record.

        Raises:
            UsageError: The disk is full.
        """
        self._line({"record": kind, **record})
        self._counts[kind] += 1

    def __exit__(self, kind: object, *_: object) -> None:
        """Finish the file and give it its name; after an error, remove it."""
        try:
            if kind is None:
                self._line(
                    {
                        "counts": dict(sorted(self._counts.items())),
                        "sha256": self._digest.hexdigest(),
                    }
                )
                with _readable_errors(f"cannot write {self._path}"):
                    self._packed.close()
                    sync(self._raw)
                    self._publish()
        finally:
            for file in (self._packed, self._raw):
                # On a full disk the rest of a buffer cannot be written, and the error of the block
                # stays the first.
                with contextlib.suppress(OSError):
                    file.close()

            self._part.unlink(missing_ok=True)

    @property
    def counts(self) -> dict[str, int]:
        """Number of written records of each kind."""
        return dict(self._counts)

    def _publish(self) -> None:
        try:
            publish(self._part, self._path, replace=self._force)
        except FileExistsError:
            raise self._exists() from None

    def _exists(self) -> UsageError:
        return UsageError(
            f"{self._path} exists: choose another name, or replace it with --force (force=True)"
        )

    def _line(self, record: Mapping[str, Any]) -> None:
        line = text_of(record).encode() + b"\n"
        self._digest.update(line)
        with _readable_errors(f"cannot write {self._path}"):
            self._packed.write(line)


def contents(path: Path, *, most_bytes: int = MOST_BYTES) -> Contents:
    """Read a whole dump, verify it and return its content.

    Raises:
        UsageError: The file is no dump, cut off, altered, of a newer format, or larger than
            allowed.
    """
    reader = DumpReader(path, most_bytes=most_bytes)
    for _ in reader:
        pass

    return reader.contents


class DumpReader:
    """Iterator over the records of a dump, which are verified when it has reached the end.

    Args:
        path: The file.
        most_bytes: Limit of the decompressed size.

    Attributes:
        contents: Content of the dump; exists once the iterator has reached the end.
    """

    contents: Contents

    def __init__(self, path: Path, *, most_bytes: int = MOST_BYTES) -> None:
        """Keep path and limit; the file is opened by the iteration."""
        self.path = path
        self.most_bytes = most_bytes

    def __iter__(self) -> Iterator[tuple[int, str, Record]]:
        """Yield the line number, the kind and the fields of each record.

        Raises:
            UsageError: See `contents`.
        """
        counts: Counter[str] = Counter()
        digest = hashlib.sha256()
        header: Header | None = None
        whole: Contents | None = None
        for number, line in self._lines():
            record = parse_record(self.path, number, line)
            if whole is not None:
                raise UsageError(
                    f"{self.path} is no dump: it has lines after the one with its digest"
                )

            if header is None:
                header = self._header(record)
            elif "record" in record:
                kind = str(record.pop("record"))
                counts[kind] += 1
                yield number, kind, convert(header.schema, kind, record)
            else:
                self._check_end(record, counts, digest.hexdigest())
                # The rest is read as well, because gzip compares its checksum at the end of a file.
                whole = Contents(header, dict(counts), digest.hexdigest())

            digest.update(line)

        if whole is None:
            raise UsageError(f"{self.path} is cut off: it has no last line with its digest")

        self.contents = whole

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        size = 0
        with (
            _readable_errors(f"cannot read {self.path}"),
            self.path.open("rb") as raw,
            gzip.GzipFile(fileobj=raw) as packed,
        ):
            number = 0
            while line := packed.readline(MOST_LINE + 1):
                number += 1
                size += len(line)
                self._check_size(line, number, size, raw)
                yield number, line

    def _check_size(self, line: bytes, number: int, size: int, raw: IO[bytes]) -> None:
        if len(line) > MOST_LINE:
            raise UsageError(
                f"{self.path} is no dump: line {number} has more than {MOST_LINE:,} bytes"
            )

        if size > self.most_bytes:
            raise UsageError(
                f"{self.path} unpacks to more than {self.most_bytes:,} bytes, the limit"
            )

        if size > _UNSUSPICIOUS and size > MOST_RATIO * raw.tell():
            raise UsageError(
                f"{self.path} is no dump: it unpacks to more than {MOST_RATIO} times its size"
            )

        if not line.endswith(b"\n"):
            raise UsageError(f"{self.path} is cut off in line {number}")

    def _header(self, record: Record) -> Header:
        if record.get("dump") != FORMAT:
            raise UsageError(
                f"{self.path} is no dump of an archive: its first line is no header of one"
            )

        version = record.get("version")
        if not isinstance(version, int) or not 1 <= version <= VERSION:
            raise UsageError(
                f"{self.path} has version {brief(version)} of the format, this release "
                f"reads 1 to {VERSION}: upgrade with pip install --upgrade nas-archive"
            )

        studies, schema, release = (record.get(name) for name in ("studies", "schema", "release"))
        named = studies is None or (
            isinstance(studies, list) and all(isinstance(name, str) for name in studies)
        )
        if not named or not isinstance(schema, int) or not isinstance(release, str):
            raise UsageError(
                f"{self.path} is no dump: its first line names no schema, release or studies"
            )

        if isinstance(schema, bool) or schema < 1:
            raise UsageError(
                f"{self.path} is no dump: its first line names the schema {brief(schema)}"
            )

        if schema > LATEST:
            raise UsageError(
                f"{self.path} has schema version {schema}, written by release {release!r:.40}; "
                f"this one knows {LATEST}: upgrade with pip install --upgrade nas-archive"
            )

        return Header(version, schema, release, studies)

    def _check_end(self, record: Record, counts: Mapping[str, int], digest: str) -> None:
        if record.get("sha256") != digest:
            raise UsageError(
                f"{self.path} was altered: its lines do not hash to the digest in its last line"
            )

        if record.get("counts") != dict(counts):
            raise UsageError(
                f"{self.path} was altered: "
                "the numbers of its records are not those in its last line"
            )


@contextlib.contextmanager
def _readable_errors(what: str) -> Iterator[None]:
    """Translate errors of a file into one clear line."""
    try:
        yield
    except EOFError:
        raise UsageError(f"{what}: it is cut off") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise UsageError(f"{what}: it is no valid gzip file ({error})") from None
    except OSError as error:
        raise UsageError(f"{what}: {error.strerror or error}") from None


_WEIGHTS = 7


def convert(schema: int, kind: str, record: Record) -> Record:
    """Return a record as this release would have written it.

    Args:
        schema: Version of the schema, from the header of the dump.
        kind: Kind of the record.
        record: The record; may be changed.
    """
    if schema < _WEIGHTS and kind == "evaluation" and "checkpoint" in record:
        record["weights"] = record.pop("checkpoint")

    return record

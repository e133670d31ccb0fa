"""Dump of an archive, or of some studies, to one file: a backup, or a file to merge.

    dump(connection, Path("mine.jsonl.gz"))                        everything
    dump(connection, Path("one.jsonl.gz"), studies=["one"])        a study with all that it refers to

The dump of a study includes its proposals with results, states and provenance, its agents, workers
and networks, their ancestors, stored distances and zero-cost proxies, and the source studies of its
warm start. Weights are not copied; the dump has their addresses and digests. Memory holds names
only. Equal archives give equal files. `archive.exchange.load` is the inverse.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from archive.database.connection import Connection
from archive.errors import ArchiveError, UsageError, first_line
from archive.exchange import export_queries as reading
from archive.exchange.apply import identity
from archive.exchange.file_format import DumpWriter
from archive.exchange.publication import Publication
from archive.exchange.record_schema import Record, check, references
from archive.server import embedded
from archive.server.dump_schedule import dumps
from archive.server.engine_change import data_bytes
from archive.server.run_file import Folder
from archive.settings import Settings
from archive.store import schema
from archive.store.architectures import batched
from archive.store.properties import read_column

__all__ = ["dump"]

_UNREADABLE = (ArchiveError, ArithmeticError, LookupError, TypeError, ValueError)
"""Errors of the decoding of damaged records."""

Read = Callable[[Iterable[str]], Iterator[tuple[str, Record]]]


def dump(
    connection: Connection,
    path: Path,
    *,
    studies: Sequence[str] | None = None,
    distances: bool = True,
    force: bool = False,
    left_out: list[str] | None = None,
    publication: Publication | None = None,
) -> dict[str, int]:
    """Write an archive, or some of its studies, to one file.

    Other processes may write to the archive meanwhile.

    Args:
        connection: Connection to the archive.
        path: Path of the file, which appears there when it is complete.
        studies: Names of studies; None for everything, results without a study included.
        distances: Whether to write the stored distances, which are many and can be computed again.
        force: Whether to replace an existing file.
        left_out: List that receives a sentence for each record that cannot be dumped and is left
            out, with all that refers to it; None: such a record is an error.
        publication: What is published of each record; None for a whole copy.

    Returns:
        Number of written records of each kind.

    Raises:
        UnknownNameError: There is no study of a name.
        UsageError: The file exists, or cannot be written; or a record refers to another one that
            was deleted.
    """
    names = reading.choose_studies(reading.asking(connection), studies)
    requested = None if studies is None else sorted(set(studies))
    if publication is not None:
        publication.hide(reading.hosts(reading.asking(connection)))

    with DumpWriter(path, schema.version(connection), requested, force=force) as file:
        writing = _Writing(connection, file, left_out, publication)
        writing.studies(names)
        for name in names:
            if name not in writing.without_study:
                writing.proposals(name)

        if studies is None and (publication is None or publication.imported):
            writing.the_rest()

        writing.relations(distances=distances)

    return file.counts


class _Writing:
    """Writer of each record once, after all records that it refers to."""

    def __init__(
        self,
        connection: Connection,
        file: DumpWriter,
        left_out: list[str] | None,
        publication: Publication | None,
    ) -> None:
        self.publication = publication
        self.ask = reading.asking(connection)
        self.file = file
        self.left_out = left_out
        self.without_study: set[str] = set()
        self.read: dict[str, Read] = {
            "agent": partial(reading.agents, self.ask),
            "worker": partial(reading.workers, self.ask),
            "architecture": partial(reading.networks, connection),
            "evaluation": partial(reading.evaluations, self.ask),
        }
        self.written: dict[str, set[str]] = {kind: set() for kind in self.read}

    def studies(self, names: Sequence[str]) -> None:
        for record in reading.studies(self.ask, names):
            self._put("study", record)

        for record in reading.warm_starts(self.ask, names):
            # A study that is created during the dump is not part of it.
            if record["source"] in names and not self.without_study & {
                record["study"],
                record["source"],
            }:
                self._put("warm_start", record)

    def proposals(self, study: str) -> None:
        for page in reading.proposals(self.ask, study):
            self._agents(record["agent"] for record in page if record["agent"])
            self._workers(worker for record in page for worker, _, _ in record["claims"])
            self._architectures(read_column(page, "architecture"))
            self._evaluations(record["result"] for record in page if record["result"])
            for record in page:
                self._put("proposal", record)

    def the_rest(self) -> None:
        """Write the records that belong to no study."""
        for record in reading.tasks(self.ask, reading.every(self.ask, "task")):
            self._put("task", record)

        self._agents(reading.every(self.ask, "agent"))
        self._workers(reading.every(self.ask, "worker"))
        self._architectures(reading.every(self.ask, "architecture"))
        for page in batched(reading.every(self.ask, "evaluation"), reading.PAGE):
            self._evaluations(page)

    def relations(self, *, distances: bool) -> None:
        for record in reading.builds(self.ask, sorted(self.written["architecture"])):
            self._architectures([record["network"]])
            self._put("build", record)

        children = set(self.written["architecture"])
        while children:
            networks = set(self.written["architecture"])
            for page in reading.morphs(self.ask, sorted(children)):
                self._architectures(read_column(page, "parent"))
                for record in page:
                    self._put("morph", record)

            # Parents that no study has may have parents, too.
            children = self.written["architecture"] - networks

        if distances:
            keys = self.written["architecture"]
            for record in reading.distances(self.ask, sorted(keys), keys):
                self._put("distances", record)

        for record in reading.proxies(self.ask, sorted(self.written["architecture"])):
            self._put("proxies", record)

    def _put(self, kind: str, record: Record) -> None:
        try:
            check(kind, record)
            self._check_references(kind, record)
        except UsageError as error:
            # Fail now rather than when the file is loaded.
            key = identity(kind, record)
            name = " ".join(map(str, key)) if isinstance(key, tuple) else key
            if self.left_out is not None:
                self._leave_out(kind, str(name), record, error)
                return

            raise UsageError(
                f"a dump cannot hold the {kind} {name} of this archive: "
                f"{error}; --skip-damaged leaves it out"
            ) from None

        if self.publication is None:
            self.file.write(kind, record)
        elif (published := self.publication.select(kind, record)) is not None:
            self.file.write(kind, published)

    def _leave_out(self, kind: str, name: str, record: Record | None, error: Exception) -> None:
        assert self.left_out is not None
        self.left_out.append(f"{kind} {name}: {first_line(error)}")
        if kind in self.written:
            # Later records must not refer to it.
            self.written[kind].discard(name)

        if kind == "study" and record is not None:
            self.without_study.add(record["name"])

    def _check_references(self, kind: str, record: Record) -> None:
        for named, name in references(kind, record):
            if named in self.written and name not in self.written[named]:
                raise UsageError(
                    f"it refers to the {named} {name}, which was deleted; if its study was "
                    "deleted just now, dump again"
                )

    def _agents(self, ids: Iterable[str]) -> None:
        self._write("agent", ids)

    def _workers(self, ids: Iterable[str]) -> None:
        self._write("worker", ids)

    def _architectures(self, keys: Iterable[str]) -> None:
        self._write("architecture", keys)

    def _evaluations(self, ids: Iterable[str]) -> None:
        new = list(self._new("evaluation", ids))
        self._architectures(read_column(new, "architecture"))
        for record in new:
            self._put("evaluation", record)

    def _write(self, kind: str, ids: Iterable[str]) -> None:
        for record in self._new(kind, ids):
            self._put(kind, record)

    def _new(self, kind: str, ids: Iterable[str]) -> Iterator[Record]:
        for id_, record in self._read(kind, set(ids) - self.written[kind]):
            self.written[kind].add(id_)
            yield record

    def _read(self, kind: str, ids: set[str]) -> Iterator[tuple[str, Record]]:
        """Yield records by their ids; of a page that cannot be read, each record that can."""
        if self.left_out is None:
            yield from self.read[kind](ids)
            return

        for page in batched(sorted(ids), reading.PAGE):
            try:
                rows = list(self.read[kind](page))
            except _UNREADABLE:
                rows = []
                for id_ in page:
                    try:
                        rows += self.read[kind]([id_])
                    except _UNREADABLE as error:
                        self._leave_out(kind, id_, None, error)

            yield from rows


PATIENCE_SECONDS = 10.0
_DATA_PER_DUMP = 10
"""Least ratio of the size of the data to the size of their dump, which is compressed."""


def main(arguments: list[str]) -> int:
    """Make one dump, and return the exit status."""
    home = Path(arguments[0])
    kept = int(arguments[1])
    share = float(arguments[2])
    settings = Settings(home=home, patience=PATIENCE_SECONDS)
    try:
        if embedded.find(settings) is not None:
            _say(make(settings, kept, share))
    except (ArchiveError, OSError) as error:
        _say(f"no automatic dump: {first_line(error)}")
        return 1

    return 0


def make(settings: Settings, kept: int, share: float) -> str:
    """Dump the archive into `HOME/dumps`, delete the oldest dumps, and return a line to log.

    Args:
        settings: Settings of an embedded archive with a running server.
        kept: Number of dumps that are kept.
        share: Share of the free disk that they may take; a dump that would not fit is not made.
    """
    folder = Folder(settings.home)
    folder.dumps.mkdir(mode=0o700, exist_ok=True)
    _remove_parts(folder)
    former = dumps(folder)
    expected = former[0].stat().st_size if former else data_bytes(folder) // _DATA_PER_DUMP
    limit = share * (shutil.disk_usage(folder.dumps).free + _bytes(former))
    if expected * min(kept, len(former) + 1) > limit:
        return (
            "no automatic dump: the disk is short, "
            f"{expected / 2**20:.1f} MiB each of {limit / 2**20:.1f} MiB (dumps_share {share:g})"
        )

    path = folder.dumps / f"automatic-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}.jsonl.gz"
    with Connection.open(settings) as connection:
        if schema.version(connection) == 0:
            return "no automatic dump: the archive is empty"

        dump(connection, path, distances=False, force=True)

    for old in dumps(folder)[kept:]:
        old.unlink()

    return f"automatic dump: {path} ({path.stat().st_size / 2**20:.1f} MiB)"


def _bytes(files: list[Path]) -> int:
    return sum(path.stat().st_size for path in files)


def _remove_parts(folder: Folder) -> None:
    """Remove what a dump left that was ended before it was complete."""
    for part in folder.dumps.glob(".*.part"):
        with contextlib.suppress(OSError):
            part.unlink()


def _say(message: str) -> None:
    print(time.strftime("%Y-%m-%d %H:%M:%S"), message, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

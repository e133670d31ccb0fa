"""Documents of `archive dump`, `archive load`, `archive import` and `archive table`."""

from __future__ import annotations

from archive.cli.documents.base import Document, JsonObject


class DumpDocument(Document):
    """A file that was written.

    Attributes:
        file: The file.
        bytes: Its size.
        records: Number of records of each kind.
        left_out: What `--skip-damaged` left out, a sentence each.
    """

    file: str
    bytes: int
    records: dict[str, int]
    left_out: list[str]


class LoadDocument(Document):
    """A file that was read.

    Attributes:
        file: The file.
        release: The release that wrote it.
        sha256: Checksum of its contents.
        records: Number of records of each kind.
        stored: Number of records that were new or changed something; null with --check.
    """

    file: str
    release: str
    sha256: str
    records: dict[str, int]
    stored: dict[str, int] | None


class ImportDocument(Document):
    """Results that were imported from a table or a benchmark file.

    Attributes:
        task: Name of the task.
        protocol: How it was measured.
        evaluations: Number of results that the file has.
    """

    task: str
    protocol: str
    evaluations: int


class ProxyImport(Document):
    """Zero-cost proxies that were imported from a table.

    Attributes:
        tasks: Names of the tasks.
        proxies: Names of the proxies.
        networks: Number of networks that the file has.
    """

    tasks: list[str]
    proxies: list[str]
    networks: int


class StudyImport(Document):
    """A study that was imported.

    Attributes:
        study: Its name in the archive.
        task: Name of the task.
        protocol: How it was measured.
        evaluated: Trials with a result.
        pruned: Trials that were pruned after they had reported a value.
        failed: Trials without one.
        left_out: Trials that are not finished.
    """

    study: str
    task: str
    protocol: str
    evaluated: int
    pruned: int
    failed: int
    left_out: int


class ModelImport(Document):
    """A model that was imported.

    Attributes:
        key: Key of the architecture.
        space: Name of its space.
        layers: Number of its layers.
        edges: Number of its edges.
        params: Number of trained weights.
        flops: Multiply-adds of one input; null where they are not known.
        task: Name of the task; null without a result.
        protocol: How the result was measured; null without one.
        study: Name of the study; null for none.
        proposal: Id of the proposal in the study.
        evaluation: Id of the result; null where the proposal waits for a trainer.
        notes: What the architecture does otherwise than the model in training.
    """

    key: str
    space: str
    layers: int
    edges: int
    params: int | None
    flops: int | None
    task: str | None
    protocol: str | None
    study: str | None
    proposal: str | None
    evaluation: str | None
    notes: list[str]


class BuiltInTable(JsonObject):
    """A built-in table.

    Attributes:
        table: Its name.
        tasks: Names of the tasks that it answers.
        file: Its file on this machine; null where there is none.
        source: Benchmark and address of the official release.
        releases: Names of the official files that it can be made of.
    """

    table: str
    tasks: list[str]
    file: str | None
    source: str
    releases: list[str]


class BuiltInTables(Document):
    """The built-in tables.

    Attributes:
        tables: By name.
    """

    tables: list[BuiltInTable]


class MadeTable(Document):
    """A table that was made of an official release.

    Attributes:
        table: Its name.
        rows: Number of networks.
        file: The file that was written.
        tasks: Names of the tasks that it answers.
    """

    table: str
    rows: int
    file: str
    tasks: list[str]

"""Documents of `archive db` and `archive doctor`."""

from __future__ import annotations

from typing import Literal

from archive.cli.documents.base import Document, JsonObject


class ServerDocument(Document):
    """The database server; keys of the embedded server alone are null for Neo4j.

    Attributes:
        embedded: Whether the server is the embedded one.
        running: Whether clients can connect.
        server: Its address; null where it does not run.
        database: Name of the database; null for the default one of Neo4j.
        user: User that other clients log in as; it may change everything.
        password_file: File of its password; null where the password comes from the settings.
        reader: User of the embedded server that may only read.
        reader_password_file: File of the password of `reader`.
        folder: The embedded server's folder.
        state: `ready`, `not answering`, `starting`, `stopping`, `stopped`, `failed`, `none` (never
            started) or `foreign` (of another user).
        pid: Process id of the supervisor.
        java_pid: Process id of the database.
        port: Bolt port.
        uptime_seconds: Since the server was started.
        rss_bytes: Resident memory of both processes.
        disk_bytes: Size of the data on disk.
        restarts: How often the database died and was started again.
        error: Why it failed, or why an earlier database died.
    """

    embedded: bool
    running: bool
    server: str | None
    database: str | None
    user: str | None
    password_file: str | None
    reader: str | None
    reader_password_file: str | None
    folder: str | None
    state: str | None
    pid: int | None
    java_pid: int | None
    port: int | None
    uptime_seconds: float | None
    rss_bytes: int | None
    disk_bytes: int | None
    restarts: int | None
    error: str | None


class ServerStop(Document):
    """Whether the embedded server was stopped.

    Attributes:
        stopped: False where it was not running.
    """

    stopped: bool


class HistoryItem(JsonObject):
    """Expired history.

    Attributes:
        workers: Ids of the workers.
        files: Bytes of each file.
    """

    workers: list[str]
    files: dict[str, int]


class CollectionDocument(Document):
    """Weights and history that were removed, or would be.

    Attributes:
        dry_run: Whether nothing was removed.
        freed_bytes: Bytes of all files.
        removed: Bytes of each weights file.
        orphans: Bytes of each file that the archive does not know.
        kept: Number of weights files that were kept, by reason.
        history: Expired workers, logs and states.
    """

    dry_run: bool
    freed_bytes: int
    removed: dict[str, int]
    orphans: dict[str, int]
    kept: dict[str, int]
    history: HistoryItem


class RepairDocument(Document):
    """Repair of an embedded archive.

    Attributes:
        copy: Copy of the damaged database.
        damage: Faults that were found, a sentence each.
        removed: Number of records that were lost, by label or type of relationship.
        without_result: Ids of proposals that have lost their results.
        remaining: Faults that could not be repaired (exit code 1).
        dump: The dump that was compared with, or that replaced the database; null without one.
        recoverable: Ids of records of that dump that the archive lacks, by kind.
        replaced: Whether the dump replaced the database.
    """

    copy: str
    damage: list[str]
    removed: dict[str, int]
    without_result: list[str]
    remaining: list[str]
    dump: str | None
    recoverable: dict[str, list[str]]
    replaced: bool


class CheckItem(JsonObject):
    """One thing that was looked at.

    Attributes:
        name: Subject of the check.
        state: `ok`, `note` (works, but worth knowing) or `bad` (does not work; exit code 1).
        found: Result of the check.
        remedy: What to do; empty where nothing is.
    """

    name: str
    state: Literal["ok", "note", "bad"]
    found: str
    remedy: str


class CheckList(Document):
    """The health of the installation.

    Attributes:
        checks: In the order in which they were made.
    """

    checks: list[CheckItem]

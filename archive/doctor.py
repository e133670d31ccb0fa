"""Checks of `archive doctor`, each with a remedy.

They cover packages, plug-ins, folder, disk, credentials, server and records.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

from archive import runtime
from archive.errors import ArchiveError, DamagedError, SchemaVersionError, SettingsError
from archive.queries.studies import SIZES
from archive.registry import Registry
from archive.server import embedded, engine
from archive.server.dump_schedule import dumps
from archive.server.run_file import Folder
from archive.settings import Settings

PACKAGES = ("neo4j", "neo4j-rust-ext", "torch", "numpy", "scipy", "numba", "scikit-learn", "POT")
OPTIONAL = {"pandas": "pandas", "matplotlib": "bench", "optuna": "bench", "py2neo": "py2neo"}
"""Optional packages, and the extra that installs each."""
LOW_DISK_BYTES = 2 * 2**30

VERSION = "CALL dbms.components() YIELD name, versions RETURN name, versions[0] AS version"


@dataclass(frozen=True)
class Check:
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
    remedy: str = ""


@dataclass(frozen=True)
class CheckList:
    """The health of the installation.

    Attributes:
        checks: In the order in which they were made.
    """

    checks: list[Check]


def examine(settings: Settings) -> Iterator[Check]:
    """Yield the checks of packages, folder, credentials and server.

    The last check starts the embedded server.
    """
    yield Check(
        "python", "ok", f"{platform.python_version()} on {platform.system()} ({sys.executable})"
    )
    yield from _packages()
    yield _engine()
    yield _devices()
    yield _folder(settings.home)
    yield _disk(settings.home)
    yield _address(settings)
    yield from _store(settings)


def plug_ins(registries: Iterable[Registry]) -> Iterator[Check]:
    """Yield the checks of plug-ins: each is imported."""
    for registry in registries:
        for name in registry.plug_ins():
            subject = f"{registry.kind} {name}"
            try:
                registry.load(name)
            except SettingsError as error:
                yield Check(subject, "bad", str(error), "correct or uninstall the package")
            else:
                yield Check(subject, "ok", registry.package(name))

        for sentence in registry.unused():
            yield Check(f"{registry.kind}s", "note", sentence, "give the entry point another name")


def _packages() -> Iterator[Check]:
    for package in PACKAGES:
        try:
            yield Check(package, "ok", version(package))
        except PackageNotFoundError:
            yield Check(package, "bad", "not installed", "pip install nas-archive")

    for package, extra in OPTIONAL.items():
        try:
            yield Check(package, "ok", version(package))
        except PackageNotFoundError:
            yield Check(
                package, "note", "not installed (optional)", f"pip install 'nas-archive[{extra}]'"
            )


def _engine() -> Check:
    try:
        package = engine.installed()
    except engine.StartFailed as error:
        return Check("engine", "bad", str(error), f"pip install '{engine.REQUIREMENT}'")

    return Check("engine", "ok", f"ArcadeDB {package.version} ({package.folder})")


def _devices() -> Check:
    # Looking for the driver's device file costs nothing; asking torch would cost seconds.
    gpus = len(list(Path("/dev").glob("nvidia[0-9]*")))
    return Check(
        "devices",
        "ok",
        f"{runtime.count_cores()} cores, {gpus or 'no'} NVIDIA GPU{'s' if gpus > 1 else ''}",
    )


def _folder(home: Path) -> Check:
    path = _existing(home)
    if not os.access(path, os.W_OK):
        return Check(
            "folder",
            "bad",
            f"{home} is not writable",
            f"chmod u+w {path}, or choose another with --home",
        )

    return Check("folder", "ok", str(home) if home.exists() else f"{home} (not created yet)")


def _disk(home: Path) -> Check:
    path = _existing(home)
    free = shutil.disk_usage(path).free
    free_space = f"{free / 2**30:.1f} GiB free"
    if free < LOW_DISK_BYTES:
        return Check(
            "disk",
            "note",
            free_space,
            f"make room on the disk of {path}: databases and weights grow",
        )

    return Check("disk", "ok", free_space)


def _existing(path: Path) -> Path:
    """Return the nearest existing folder: the path itself, or one above it."""
    return next(folder for folder in (path, *path.parents) if folder.exists())


def _address(settings: Settings) -> Check:
    if settings.embedded:
        return Check("server", "ok", f"embedded, over {settings.home}")

    login = f"user {settings.user or 'neo4j'}, {'a' if settings.password else 'no'} password"
    return Check(
        "server",
        "ok",
        f"Neo4j at {settings.uri}, database {settings.database or '(home)'}, {login}",
    )


def _store(settings: Settings) -> Iterator[Check]:
    from archive.api import connect
    from archive.store import upkeep

    before = embedded.status(settings) if settings.embedded else None
    if before is not None and before.state == "failed":
        yield Check("last start", "note", before.error, "archive db start")

    try:
        with connect(settings) as archive:
            yield Check(
                "connection",
                "ok",
                _version(archive.query(VERSION).rows, archive.connection.address),
            )
            counts = archive.query(SIZES).rows
            faults = upkeep.find_faults(archive.connection) if settings.embedded else []
    except DamagedError as error:
        yield Check("records", "bad", str(error), "archive db repair")
        return
    except ArchiveError as error:
        yield Check("connection", "bad", str(error), _remedy(settings, error))
        return

    if settings.embedded:
        yield _integrity(settings, faults)

    yield Check(
        "archive", "ok", ", ".join(f"{nodes} {label}" for label, nodes in counts) or "empty"
    )
    if settings.embedded:
        now = embedded.status(settings)
        memory = (
            f"{now.rss_bytes / 2**20:.0f} MiB resident, {now.disk_bytes / 2**20:.0f} MiB on disk"
        )
        yield Check(
            "embedded server", "ok", f"pid {now.pid}, up {now.uptime_seconds:.0f} s, {memory}"
        )


def _integrity(settings: Settings, faults: list[str]) -> Check:
    made = dumps(Folder(settings.home))
    last = f"last automatic dump {made[0]}" if made else "no automatic dump yet"
    if faults:
        return Check("records", "bad", "; ".join(faults), f"archive db repair; {last}")

    return Check("records", "ok", f"records, edges, counts and indexes agree; {last}")


def _version(rows: list[tuple[str, str]], address: str) -> str:
    return f"{address}, " + ", ".join(f"{name} {version}" for name, version in rows)


def _remedy(settings: Settings, error: ArchiveError) -> str:
    if isinstance(error, SchemaVersionError):
        return "pip install --upgrade nas-archive"

    if settings.embedded and embedded.status(settings).state == "foreign":
        return "run the command as that user, or choose another folder with --home"

    if settings.embedded:
        return f"archive db stop && archive db start; the server's log is in {settings.home}"

    return (
        "check ARCHIVE_DB, ARCHIVE_USER, "
        "ARCHIVE_PASSWORD or ARCHIVE_PASSWORD_FILE, and that the server runs"
    )

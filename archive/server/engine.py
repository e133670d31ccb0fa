"""Package of the engine: its jars, its Java runtime and its version.

ArcadeDB comes as a wheel with a Java runtime, under one of two names:

| distribution        | module              | releases                          |
|---------------------|---------------------|-----------------------------------|
| `arcadedb-embedded` | `arcadedb_embedded` | up to 26.10; the dependency       |
| `arcadedb-jvm`      | `arcadedb`          | from 26.11; an alternative        |

The distribution `arcadedb` has the module `arcadedb`, too, but neither jars nor a Java runtime. A
later `arcadedb-embedded` will only install that one. The packages are located and never imported.
"""

from __future__ import annotations

import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path

REQUIREMENT = "arcadedb-embedded==26.10.2.post1"
"""The dependency as in `pyproject.toml`."""
MODULES = ("arcadedb_embedded", "arcadedb")
"""Modules of the packages that may hold the engine.

The first one that does is used: the dependency.
"""

_ENGINE_JAR = re.compile(r"arcadedb-engine-(?P<version>\d.*)\.jar")
_SIDE_DOORS = re.compile("mcp|console|studio|graphql|integration|postgresw|redisw|python-bridge")


class StartFailed(Exception):  # noqa: N818 - internal to the supervisor's process
    """The database did not start; the message is the end of its output.

    Attributes:
        status: Exit status of the supervisor.
    """

    status = 1


class StartRefused(StartFailed):
    """The database was not opened, so that nothing is lost; the message is for the user."""

    status = 78  # EX_CONFIG


class DamagedFiles(StartFailed):
    """The files of the database are damaged; it was not opened. The message is for the user."""

    status = 65  # EX_DATAERR


@dataclass(frozen=True)
class Engine:
    """An installed engine.

    Attributes:
        folder: Folder of the package.
        version: Version of ArcadeDB, as `26.10.2` or `26.11.1-SNAPSHOT`.
    """

    folder: Path
    version: str

    @property
    def java(self) -> Path:
        """The executable of its Java runtime."""
        return self.folder / "jre" / "bin" / "java"

    @property
    def jars(self) -> list[Path]:
        """Its jars, without protocols and consoles that the archive does not need."""
        jars = sorted((self.folder / "jars").glob("*.jar"))
        return [jar for jar in jars if not _SIDE_DOORS.search(jar.name)]


def installed() -> Engine:
    """Return the engine of this environment.

    Raises:
        StartFailed: No package with a Java runtime is installed; the message names the one to
            install.
    """
    empty: list[Path] = []
    for module in MODULES:
        spec = importlib.util.find_spec(module)
        if spec is None or spec.origin is None:
            continue

        folder = Path(spec.origin).parent
        version = _version(folder)
        if version is not None and folder.joinpath("jre", "bin", "java").is_file():
            return Engine(folder, version)

        empty.append(folder)

    if empty:
        raise StartFailed(
            f"the package in {empty[0]} has no Java runtime, as the native build of ArcadeDB, "
            "which the archive cannot "
            f"use: pip uninstall arcadedb arcadedb-embedded, then pip install '{REQUIREMENT}'"
        )

    raise StartFailed(f"the database engine is not installed: pip install '{REQUIREMENT}'")


def order(version: str) -> tuple[int, ...]:
    """Return a version in a form that sorts by age: a snapshot comes before its release."""
    numbers = [int(number) for number in re.findall(r"\d+", version.partition("-")[0])]
    final = "SNAPSHOT" not in version.upper()
    return (*numbers, int(final))


def _version(folder: Path) -> str | None:
    for jar in folder.joinpath("jars").glob("arcadedb-engine-*.jar"):
        if match := _ENGINE_JAR.fullmatch(jar.name):
            return match["version"]

    return None

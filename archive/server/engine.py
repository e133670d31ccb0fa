"""ArcadeDB, the engine of the embedded server: its package, command line, log and users.

ArcadeDB comes as a wheel with a Java runtime, under one of two names:

| distribution        | module              | releases                          |
|---------------------|---------------------|-----------------------------------|
| `arcadedb-embedded` | `arcadedb_embedded` | up to 26.10; the dependency       |
| `arcadedb-jvm`      | `arcadedb`          | from 26.11; an alternative        |

The distribution `arcadedb` has the module `arcadedb`, too, but neither jars nor a Java runtime. A
later `arcadedb-embedded` will only install that one. The packages are located and never imported.

The user `root` may do everything, `reader` may read. ArcadeDB reads both from its configuration
folder when it starts, and enforces the permissions for every client. Each has a random password in
a file.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import json
import os
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from archive.files import write_atomically
from archive.server.run_file import DATABASE, HOST, READER, USER, Folder

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
            f"the package in {empty[0]} has no Java runtime, "
            "as the native build of ArcadeDB, which the archive cannot use: "
            f"pip uninstall arcadedb arcadedb-embedded, then pip install '{REQUIREMENT}'"
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


READY_LINE = "ArcadeDB Server started"
"""Line that the database prints as soon as clients can connect."""

_TELLING = re.compile("SEVER|WARN|[Ee]rror|[Ee]xception|Unrecognized|Invalid")
_NO_START = "initialization of VM"
_HEAP_REFUSED = re.compile("Could not reserve enough space|Invalid maximum heap size")


_LOGGING = """\
handlers = java.util.logging.ConsoleHandler, java.util.logging.FileHandler
.level = INFO
io.undertow.level = WARNING
org.xnio.level = WARNING
org.jboss.level = WARNING
java.util.logging.ConsoleHandler.level = INFO
java.util.logging.ConsoleHandler.formatter = com.arcadedb.log.LogFormatter
java.util.logging.FileHandler.level = INFO
java.util.logging.FileHandler.formatter = com.arcadedb.log.LogFormatter
java.util.logging.FileHandler.pattern = ./log/arcadedb.log
java.util.logging.FileHandler.limit = 2000000
java.util.logging.FileHandler.count = 2
"""


def write_configuration(folder: Folder) -> None:
    """Limit the size of the database's logs; the default is a gigabyte."""
    write_atomically(folder.logging, _LOGGING)


def java_command(
    folder: Folder, port: int, heap_mb: int, java_options: Sequence[str] = ()
) -> list[str]:
    """Return the database's command line.

    It contains no secret: ArcadeDB reads the password from its file.

    Only Bolt and the mandatory HTTP listener are open, both on the loopback interface and with the
    password, the latter on a random port. Other protocols, consoles and importers are not on the
    class path. LOAD CSV reads neither files nor URLs.
    """
    package = installed()
    return [
        str(package.java),
        f"-Xmx{heap_mb}m",
        *_JAVA_OPTIONS,
        f"-XX:ErrorFile={folder.log}/crash.log",
        *java_options,
        f"-Djava.util.logging.config.file={folder.logging}",
        *(f"-Darcadedb.{name}={value}" for name, value in _database_options(folder, port).items()),
        "-cp",
        os.pathsep.join(str(jar) for jar in package.jars),
        "com.arcadedb.server.ArcadeDBServer",
    ]


def telling(output: Sequence[str], heap_mb: int, java_options: Sequence[str] = ()) -> list[str]:
    """Return the lines of the output that tell why the database ended.

    They include the setting of a heap that Java refused.
    """
    # Java names the reason in the line after "Error occurred during initialization of VM".
    lines = [
        line for last, line in pairwise(["", *output]) if _TELLING.search(line) or _NO_START in last
    ]
    lines = (lines or list(output))[-8:]
    if any(map(_HEAP_REFUSED.search, output)) and not any(
        option.startswith("-Xmx") for option in java_options
    ):
        lines.append(
            "the heap is too large for this machine: "
            f"set heap_mb (ARCHIVE_HEAP_MB) to less than {heap_mb} MiB"
        )

    return lines


def java_environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of the Java runtime among its supervisor's variables.

    Its locale says which characters a path may have. In the locale C, or without one, Python reads
    paths as UTF-8 all the same, and Java none beyond ASCII.
    """
    passed = {name: variables[name] for name in _VARIABLES if variables.get(name)}
    if next((passed[name] for name in _LOCALE if name in passed), "C") in ("C", "POSIX"):
        passed.pop("LC_ALL", None)
        passed["LC_CTYPE"] = "C.UTF-8"

    return passed


_LOCALE = ("LC_ALL", "LC_CTYPE", "LANG")
"""Variables of the locale of characters, of which the first one that is set counts."""
_VARIABLES = ("PATH", "HOME", "TMPDIR", *_LOCALE)

_JAVA_OPTIONS = (
    "-Xms32m",
    "-XX:+UseSerialGC",
    # The C2 compiler halves the time of a transaction, but is the most expensive part of a start.
    # These thresholds delay it to code that a long-running server has executed many times.
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
    # Statements run through deep chains of small methods. With the default limits of inlining, the
    # compilers took as much processor time as the first 8,000 transactions themselves; with these,
    # half as much, and the compiled code is as fast.
    "-XX:FreqInlineSize=100",
    "-XX:InlineSmallCode=1200",
    "-XX:MaxInlineLevel=9",
    "-XX:+UseCompactObjectHeaders",
    "-XX:-UsePerfData",
    "-XX:+ExitOnOutOfMemoryError",
    "-Djava.awt.headless=true",
    "--add-opens=java.base/java.util.concurrent.atomic=ALL-UNNAMED",
    "--add-opens=java.base/java.nio.channels.spi=ALL-UNNAMED",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--enable-native-access=ALL-UNNAMED",
    "--sun-misc-unsafe-memory-access=allow",
)


def _database_options(folder: Folder, port: int) -> dict[str, object]:
    return {
        "server.rootPath": folder.server,
        "server.configDirectory": folder.config,
        "server.databaseDirectory": folder.database,
        "server.backupDirectory": folder.server / "backups",
        "server.logsDirectory": folder.log,
        "server.rootPasswordPath": folder.password,
        "server.defaultDatabases": f"{DATABASE}[]",
        "server.mode": "development",  # production mode blanks every error message
        "server.plugins": "Bolt:com.arcadedb.bolt.BoltProtocolPlugin",
        "server.httpIncomingHost": HOST,
        "server.httpIncomingPort": 0,
        "bolt.host": HOST,
        "bolt.port": port,
        "bolt.defaultDatabase": DATABASE,
        "txWalFlush": 1,  # fdatasync before a transaction is acknowledged; 2 would be fsync
        "opencypher.loadCsv.allowFileUrls": "false",
        "opencypher.loadCsv.allowRemoteUrls": "false",
        "polyglotEngineEnabled": "false",
        # A transaction copies every page that it changes, and two transactions on one page may
        # conflict: small pages.
        "bucketDefaultPageSize": 32 * 1024,
        "indexDefaultPageSize": 32 * 1024,
        "command.timeout": 600_000,  # backstop, in milliseconds; queries have their own limit
        "serverMetrics": "false",
    }


_ALGORITHM = "PBKDF2WithHmacSHA256"
_ITERATIONS = 65_536
_SALT_BYTES = 32
_HASH_BYTES = 32

_ALL_RECORDS = ["createRecord", "readRecord", "updateRecord", "deleteRecord"]
_WHOLE_DATABASE = ["updateSecurity", "updateSchema", "updateDatabaseSettings"]


def ensure_users(folder: Folder) -> None:
    """Create the passwords, the users and their groups unless they exist.

    A changed password file changes a password.

    Raises:
        OSError: A file cannot be written.
    """
    passwords = {USER: folder.password, READER: folder.reader_password}
    for path in passwords.values():
        if not path.exists():
            write_atomically(path, secrets.token_urlsafe(32))

    changed = max(path.stat().st_mtime for path in passwords.values())
    users = folder.config / "server-users.jsonl"
    if (
        not users.exists()
        or users.stat().st_mtime < changed
        or READER not in users.read_text(encoding="utf-8")
    ):
        groups = {USER: {"*": ["admin"]}, READER: {DATABASE: [READER]}}
        lines = [_user(name, groups[name], path) for name, path in passwords.items()]
        write_atomically(users, "".join(f"{line}\n" for line in lines))

    _ensure_groups(folder.config / "server-groups.json")


def _user(name: str, groups: dict[str, list[str]], password: Path) -> str:
    salt = base64.b64encode(secrets.token_bytes(_SALT_BYTES)).decode()
    secret = password.read_text(encoding="utf-8").strip().encode()
    digest = hashlib.pbkdf2_hmac("sha256", secret, salt.encode(), _ITERATIONS, _HASH_BYTES)
    stored = "$".join([_ALGORITHM, str(_ITERATIONS), salt, base64.b64encode(digest).decode()])
    return json.dumps({"name": name, "databases": groups, "password": stored})


def _ensure_groups(path: Path) -> None:
    """Add the group of readers to the groups of ArcadeDB."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        groups = content["databases"]["*"]["groups"]
    except (OSError, ValueError, KeyError, TypeError):
        # As ArcadeDB itself would create them.
        groups = {"admin": _group(_WHOLE_DATABASE, _ALL_RECORDS), "*": _group([], [])}
        content = {"databases": {"*": {"groups": groups}}, "version": 2}

    reader = _group([], ["readRecord"])
    if groups.get(READER) != reader:
        groups[READER] = reader
        write_atomically(path, json.dumps(content, indent=2))


def _group(database: list[str], records: list[str]) -> dict[str, Any]:
    types = {"*": {"access": records}}
    return {"resultSetLimit": -1, "readTimeout": -1, "access": database, "types": types}

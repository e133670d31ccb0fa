"""How ArcadeDB, the embedded database, is run: from the wheel `arcadedb_embedded`, with its own Java runtime."""

from __future__ import annotations

import importlib.util
import os
import re
from pathlib import Path

from archive.server.run_file import DATABASE, HOST, Folder, write_private

READY_LINE = "ArcadeDB Server started"  # what it prints once clients may come

_SIDE_DOORS = re.compile("mcp|console|graphql|integration|postgresw|redisw|python-bridge")


class StartFailed(Exception):  # noqa: N818 - internal to the supervisor's process
    """The database did not come up; the text is the last of its output."""


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
    """Bound the database's logs: by itself it would keep a gigabyte of them."""
    write_private(folder.logging, _LOGGING)


def java_command(folder: Folder, port: int, heap_mb: int) -> list[str]:
    """The database's command line. It holds no secret: the password is read from its file.

    Every side door is shut: only Bolt and the unavoidable HTTP listener exist, both on the loopback
    interface and behind the password, the latter on a port that nobody is told; other protocols,
    consoles and importers are not even on the class path; LOAD CSV reads neither files nor addresses.
    """
    home = package_folder()
    jars = [str(jar) for jar in sorted((home / "jars").glob("*.jar")) if not _SIDE_DOORS.search(jar.name)]
    options = {
        "server.rootPath": folder.server,
        "server.configDirectory": folder.config,
        "server.databaseDirectory": folder.database,
        "server.backupDirectory": folder.server / "backups",
        "server.logsDirectory": folder.log,
        "server.rootPasswordPath": folder.password,
        "server.defaultDatabases": f"{DATABASE}[]",
        "server.mode": "development",  # production mode replaces every error message by a blank one
        "server.plugins": "Bolt:com.arcadedb.bolt.BoltProtocolPlugin",
        "server.httpIncomingHost": HOST,
        "server.httpIncomingPort": 0,
        "bolt.host": HOST,
        "bolt.port": port,
        "bolt.defaultDatabase": DATABASE,
        "txWalFlush": 1,  # a transaction is on the disk before it counts: fdatasync, where 2 would be fsync
        "opencypher.loadCsv.allowFileUrls": "false",
        "opencypher.loadCsv.allowRemoteUrls": "false",
        "polyglotEngineEnabled": "false",
        # A transaction copies every page that it changes, and two that change one page may collide. Files that an
        # earlier release made keep their larger pages.
        "bucketDefaultPageSize": 32 * 1024,
        "indexDefaultPageSize": 32 * 1024,
        "command.timeout": 600_000,  # backstop, in milliseconds; queries have their own limit
        "serverMetrics": "false",
    }
    return [
        str(home / "jre" / "bin" / "java"),
        f"-Xmx{heap_mb}m",
        "-Xms32m",
        "-XX:+UseSerialGC",
        # The second compiler halves what a transaction takes, and is itself the most costly part of a start: it is to
        # begin late, with what a server that stays has run many times.
        "-XX:Tier4InvocationThreshold=50000",
        "-XX:Tier4MinInvocationThreshold=6000",
        "-XX:Tier4CompileThreshold=150000",
        "-XX:Tier4BackEdgeThreshold=400000",
        "-XX:+UseCompactObjectHeaders",
        "-XX:-UsePerfData",
        "-XX:+ExitOnOutOfMemoryError",
        f"-XX:ErrorFile={folder.log}/crash.log",
        "-Djava.awt.headless=true",
        f"-Djava.util.logging.config.file={folder.logging}",
        "--add-opens=java.base/java.util.concurrent.atomic=ALL-UNNAMED",
        "--add-opens=java.base/java.nio.channels.spi=ALL-UNNAMED",
        "--add-opens=java.base/java.lang=ALL-UNNAMED",
        "--enable-native-access=ALL-UNNAMED",
        "--sun-misc-unsafe-memory-access=allow",
        *(f"-Darcadedb.{name}={value}" for name, value in options.items()),
        "-cp",
        os.pathsep.join(jars),
        "com.arcadedb.server.ArcadeDBServer",
    ]


def package_folder() -> Path:
    """Where the wheel `arcadedb_embedded` keeps its jars and its Java runtime.

    Raises:
        StartFailed: The wheel is not installed.
    """
    found = importlib.util.find_spec("arcadedb_embedded")
    if found is None or found.origin is None or not (folder := Path(found.origin).parent).joinpath("jre").is_dir():
        raise StartFailed("the package arcadedb-embedded is not installed: pip install arcadedb-embedded")
    return folder

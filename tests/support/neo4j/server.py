"""A real Neo4j Community server for the tests, from its Maven artifact.

    with Neo4jServer.start(LTS, folder) as server:
        Settings(home=…, uri=server.uri, user=server.user, password=server.password)

The jars (about 125 MB) are kept in ~/.cache/nas-archive-tests/VERSION (or ARCHIVE_TEST_CACHE) once
fetched. By hand: `python tests/support/neo4j/server.py [lts|current]` runs one until Ctrl-C.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import neo4j
from neo4j.exceptions import DriverError, Neo4jError

POM = Path(__file__).with_name("pom.xml")
READY_SECONDS = 180.0
OPENS = ("java.nio", "java.io", "sun.nio.ch", "java.util.concurrent")


@dataclass(frozen=True)
class Release:
    """A release of Neo4j: its version, the class that starts it, and the Java it needs."""

    version: str
    main: str
    java: int


LTS = Release("5.26.30", "org.neo4j.server.CommunityEntryPoint", 17)
CURRENT = Release("2026.08.1", "org.neo4j.server.Neo4jCommunity", 25)


@dataclass
class Neo4jServer:
    """A running server."""

    release: Release
    folder: Path
    port: int
    user: str = "neo4j"
    password: str = field(default_factory=lambda: secrets.token_urlsafe(16), repr=False)
    process: subprocess.Popen[bytes] | None = None

    @classmethod
    @contextlib.contextmanager
    def start(cls, release: Release, folder: Path) -> Iterator[Neo4jServer]:
        """Run a server over a folder for the time of the block."""
        server = cls(release, folder, _free_port())
        server.configure()
        try:
            server.launch()
            server.set_password()
            yield server
        finally:
            server.end()

    @property
    def uri(self) -> str:
        """Its address, in the form that asks for routing, as a cluster's would."""
        return f"neo4j://127.0.0.1:{self.port}"

    def configure(self) -> None:
        """Write its configuration."""
        conf = self.folder / "conf"
        conf.mkdir(parents=True, exist_ok=True)
        options = {
            "server.bolt.listen_address": f"127.0.0.1:{self.port}",
            "server.bolt.advertised_address": f"127.0.0.1:{self.port}",
            "server.http.enabled": "false",
            "server.memory.heap.max_size": "512m",
            "server.memory.pagecache.size": "128m",
            "dbms.usage_report.enabled": "false",
            # The tests often delete all data, which must not discard the plans of queries.
            "dbms.cypher.min_replan_interval": "1h",
        }
        conf.joinpath("neo4j.conf").write_text(
            "".join(f"{name}={value}\n" for name, value in options.items())
        )

    def launch(self) -> None:
        """Start the process, and wait until it answers over Bolt."""
        # The first compiler only, and early: the second one does not pay off in a server that runs
        # for minutes. Nor does the check of the byte code. All compiled code is kept, for which
        # this compiler alone reserves too little.
        command = [
            *(
                str(java_of(self.release.java)),
                "-Xmx512m",
                "-XX:+UseSerialGC",
                "-XX:TieredStopAtLevel=1",
            ),
            *("-XX:CompileThresholdScaling=0.3", "-XX:ReservedCodeCacheSize=240m"),
            *("-XX:+UnlockDiagnosticVMOptions", "-XX:-BytecodeVerificationRemote"),
            *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENS),
            *("-cp", f"{jars_of(self.release)}/*", self.release.main),
            *(f"--home-dir={self.folder}", f"--config-dir={self.folder / 'conf'}"),
        ]
        with self.folder.joinpath("console.log").open("ab") as console:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=console,
                start_new_session=True,
            )

        deadline = time.monotonic() + READY_SECONDS
        while not _answers(self.port):
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.end()
                raise RuntimeError(
                    "Neo4j did not start: "
                    f"{self.folder.joinpath('console.log').read_text()[-2000:]}"
                )

            time.sleep(0.1)

    def set_password(self) -> None:
        """Change the initial password, as the first login must."""
        deadline = time.monotonic() + READY_SECONDS
        while True:
            try:
                with neo4j.GraphDatabase.driver(
                    f"bolt://127.0.0.1:{self.port}", auth=("neo4j", "neo4j")
                ) as driver:
                    driver.execute_query(
                        "ALTER CURRENT USER SET PASSWORD FROM 'neo4j' TO $p",
                        p=self.password,
                        database_="system",
                    )

                return
            except (DriverError, Neo4jError):
                if time.monotonic() > deadline:
                    raise

                time.sleep(0.2)

    def kill(self) -> None:
        """Kill it, as a power failure would."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def end(self) -> None:
        """Kill it: its data is no longer needed, and a graceful end takes ten seconds."""
        if self.process is not None and self.process.poll() is None:
            self.kill()


def jars_of(release: Release) -> Path:
    """The folder with the release's jars, fetched with Maven when it is not there."""
    cache = Path(
        os.environ.get("ARCHIVE_TEST_CACHE") or Path.home() / ".cache" / "nas-archive-tests"
    )
    cache.mkdir(parents=True, exist_ok=True)
    folder = cache / release.version
    with cache.joinpath(f"{release.version}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if folder.is_dir():
            return folder

        # Into a temporary folder first: an interrupted download must not look complete.
        with tempfile.TemporaryDirectory(dir=cache) as unfinished:
            command = ["mvn", "-q", "-B", "-f", str(POM), f"-Dneo4j.version={release.version}"]
            command += ["dependency:copy-dependencies", "-DincludeScope=runtime"]
            command += [f"-DoutputDirectory={unfinished}/jars"]
            subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
            os.replace(f"{unfinished}/jars", folder)

    return folder


def java_of(version: int) -> Path:
    """A Java runtime of at least this version:

    JAVA_HOME, those below /usr/lib/jvm, or the one on PATH.
    """
    homes = [os.environ.get(f"JAVA_HOME_{version}"), os.environ.get("JAVA_HOME")]
    known = [Path(home) for home in homes if home] + sorted(
        Path("/usr/lib/jvm").glob("*"), reverse=True
    )
    candidates = [home / "bin" / "java" for home in known] + [
        Path(found) for found in [shutil.which("java")] if found
    ]
    exact = [java for java in candidates if java.is_file() and _java_version(java) == version]
    later = [java for java in candidates if java.is_file() and _java_version(java) > version]
    if not exact and not later:
        raise RuntimeError(
            f"the tests' Neo4j needs Java {version}: install it or set JAVA_HOME_{version}"
        )

    return (exact or later)[0]


def _java_version(java: Path) -> int:
    shown = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    number = shown.partition('"')[2].partition('"')[0]
    major = number.removeprefix("1.").partition(".")[0].partition("-")[0]
    return int(major) if major.isdigit() else 0


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1.0) as connection:
            connection.settimeout(2.0)
            connection.sendall(
                bytes.fromhex("6060b017") + bytes.fromhex("00000404 00000304 00000000 00000000")
            )
            return len(connection.recv(4)) == 4
    except OSError:
        return False


def _main() -> None:
    release = CURRENT if "current" in sys.argv[1:] else LTS
    with (
        tempfile.TemporaryDirectory() as folder,
        Neo4jServer.start(release, Path(folder)) as server,
    ):
        secret = Path(folder, "password")
        secret.touch(0o600)
        secret.write_text(server.password)
        print(
            f"export ARCHIVE_DB={server.uri} ARCHIVE_USER={server.user} "
            f"ARCHIVE_PASSWORD_FILE={secret}",
            flush=True,
        )
        with contextlib.suppress(KeyboardInterrupt):
            signal.pause()


if __name__ == "__main__":
    _main()

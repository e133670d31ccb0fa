"""Fixtures of every test: no contact with the user's own archive, and both database servers.

`connection` and `archive` run a test once on each server: the embedded one and a real Neo4j, which
are started when the first test asks for them and hold no data when a test begins. Environment:

    ARCHIVE_TEST_SERVERS=embedded,neo4j   which servers; when set, a server that cannot be had is an error, else a skip
    ARCHIVE_TEST_NEO4J_CURRENT=1          the current Neo4j release too (`neo4j-current`)
    ARCHIVE_TEST_WHOLE=1                  every test on every server and in every space; otherwise as the markers say
    ARCHIVE_TEST_NEO4J_URI, …_USER, …_PASSWORD   use this server for `neo4j`; ITS DATA IS DELETED
    ARCHIVE_TEST_PROFILE                  how hypothesis draws examples: `dev`, `ci` (the same ones in every run, for
                                          builds that never fail by chance) or `thorough` (ten times
                                          as many)
    ARCHIVE_TEST_CACHE                    where the Neo4j jars are kept
    ARCHIVE_JAVA_OPTIONS                  further options of the embedded servers' Java runtime
    ARCHIVE_DATA_DIR                      the reference data
"""

from __future__ import annotations

import atexit
import gc
import itertools
import os
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest

from archive import settings
from archive.database.connection import Connection
from archive.server import embedded
from archive.settings import Settings
from archive.store import schema
from tests.support import WHOLE, data_dir, java_only
from tests.support.neo4j import server

if TYPE_CHECKING:
    from archive.api import Archive

CHOSEN = os.environ.get("ARCHIVE_TEST_SERVERS", "")
SERVERS = [name.strip() for name in CHOSEN.split(",") if name.strip()] or ["embedded", "neo4j"]
if os.environ.get("ARCHIVE_TEST_NEO4J_CURRENT") == "1" and "neo4j-current" not in SERVERS:
    SERVERS.append("neo4j-current")
_SECONDS = 0.1
_NEO4J_SECONDS = 0.4
"""What a test takes that is not marked `lasts`; nothing but the order of the tests depends on
it."""

# No deadline: an example that starts a server or compiles takes as long as the machine is busy.
hypothesis.settings.register_profile("dev", max_examples=40, deadline=None)
hypothesis.settings.register_profile("ci", max_examples=7, deadline=None, derandomize=True)
hypothesis.settings.register_profile("thorough", max_examples=400, deadline=None)
hypothesis.settings.load_profile(os.environ.get("ARCHIVE_TEST_PROFILE", "dev"))


def pytest_configure(config: pytest.Config) -> None:
    """Keep what test modules compute when they are imported away from the user's own cache; collect
    without `gc`."""
    gc.disable()
    home = tempfile.TemporaryDirectory(prefix="archive-tests-")
    os.environ["ARCHIVE_HOME"] = home.name
    config.add_cleanup(home.cleanup)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests that cost much for what they show, and repetitions on further servers and in
    further spaces.

    `ARCHIVE_TEST_WHOLE=1` leaves out none.

    Tests marked `every_server` run on the embedded server and on Neo4j: together they run every
    statement there, and the rules for clients at the same time. Tests marked `dialect` run on the
    current Neo4j release, too. All others run on the embedded server alone. Tests marked `whole`
    run with the whole matrix only.
    """
    if not WHOLE:
        kept = [item for item in items if not _repeats(item)]
        config.hook.pytest_deselected(items=set(items) - set(kept))
        items[:] = kept

    if hasattr(config, "workerinput"):
        _sort_by_length(items)


def pytest_collection_finish() -> None:
    """Keep the collector of garbage away from what was imported and collected: none of it is
    garbage before the end."""
    gc.freeze()
    # Looks at the few objects of a test take a twentieth of all processor time at the usual rate.
    gc.set_threshold(10_000, 20, 50)
    gc.enable()
    # Libraries report objects that outlive them.
    atexit.register(gc.unfreeze)


def _sort_by_length(items: list[pytest.Item]) -> None:
    """Put the longest scopes first: one that begins late keeps a single worker busy after the
    others have ended."""
    seconds: Counter[str] = Counter()
    for item in items:
        scope = _scope(item.nodeid)
        marker = item.get_closest_marker("lasts")
        seconds[scope] += (
            marker.args[0] if marker else _NEO4J_SECONDS if scope.startswith("neo4j") else _SECONDS
        )

    items.sort(key=lambda item: (-seconds[_scope(item.nodeid)], _scope(item.nodeid)))


def _scope(nodeid: str) -> str:
    """Return the name of the tests that one worker runs together: those on a server, or those of a
    file."""
    parameters = nodeid.partition("[")[2]
    found = [name for name in SERVERS if parameters.startswith((name + "]", name + "-"))]
    if not found:
        # A module's fixtures are built once.
        return nodeid.partition("::")[0]

    # A second Neo4j would take a minute of processor time to start and warm up; a second embedded
    # server takes seconds.
    name = max(found, key=len)
    return f"{name} {nodeid.split('/')[1]}" if name == "embedded" else name


def _repeats(item: pytest.Item) -> bool:
    """Whether a test is for the whole matrix, or would show nothing new on this server or in this
    space."""
    if item.get_closest_marker("whole"):
        return True

    parameters = (
        item.callspec.params
        if isinstance(item, pytest.Function) and hasattr(item, "callspec")
        else {}
    )
    elsewhere = parameters.get("space") not in (None, "mlp")
    edge_case = item.get_closest_marker("one_space") is not None
    # A variant shares all code but its kernel, say, with another implementation: edge cases show
    # nothing new of it.
    if (edge_case and elsewhere) or (
        item.get_closest_marker("variant") and (edge_case or elsewhere)
    ):
        return True

    if item.get_closest_marker("dialect"):
        return False

    if "[neo4j-current" in item.name:
        return True

    return (
        "[neo4j" in item.name
        and "embedded" in SERVERS
        and item.get_closest_marker("every_server") is None
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give the tests of a scope to one worker.

    What `--dist loadgroup` is for, which pytest 9.2 leaves without effect (pytest-xdist issue
    1386).
    """
    from xdist.scheduler import LoadScopeScheduling

    class ByScope(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return _scope(nodeid)

    # In the order of the collection, instead of by the number of tests.
    config.option.loadscopereorder = False
    return ByScope(config, log)


@pytest.fixture(scope="session")
def default_homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Names of folders in turn, which exist once a test writes to its own."""
    folder = tmp_path_factory.mktemp("homes")
    return (folder / str(count) for count in itertools.count())


@pytest.fixture(autouse=True)
def own_environment(default_homes: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep a test away from the archive and the credentials of the user who runs it."""
    kept = ("ARCHIVE_DATA_DIR", "ARCHIVE_JAVA_OPTIONS")
    for name in os.environ:
        if (
            name.startswith("ARCHIVE_")
            and not name.startswith("ARCHIVE_TEST_")
            and name not in kept
        ):
            monkeypatch.delenv(name)

    monkeypatch.setenv("ARCHIVE_HOME", str(next(default_homes)))


@pytest.fixture
def official(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The published tables, parsed once for all tests: the cache of this home is theirs
    together."""
    folder = tmp_path_factory.getbasetemp()
    monkeypatch.setenv("ARCHIVE_DATA_DIR", str(data_dir()))
    monkeypatch.setenv(
        "ARCHIVE_HOME",
        str((folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "tables"),
    )


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder with the reference data, `golden/` and `data/`."""
    return data_dir()


@pytest.fixture(scope="session", params=SERVERS)
def store_settings(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Settings]:
    """Settings of a running server, each kind of server in turn."""
    start = {"embedded": _embedded, "neo4j": _neo4j, "neo4j-current": _neo4j_current}[request.param]
    yield from start(tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="session")
def migrated_connection(store_settings: Settings) -> Iterator[Connection]:
    """One connection for all tests on a server; `connection` has no data."""
    with Connection.open(store_settings) as connection:
        schema.migrate(connection)
        yield connection


@pytest.fixture
def connection(migrated_connection: Connection) -> Connection:
    """A connection to a server with the schema and no data, on each server."""
    wipe(migrated_connection)
    return migrated_connection


@pytest.fixture
def archive(connection: Connection) -> Archive:
    """An archive without data, on each server."""
    from archive.api import Archive

    return Archive(connection)


@pytest.fixture
def open_connection(
    connection: Connection, store_settings: Settings
) -> Iterator[Callable[[], Connection]]:
    """Opens further connections to the server of `connection`, as other processes would have."""
    opened: list[Connection] = []

    def another() -> Connection:
        opened.append(Connection.open(store_settings))
        return opened[-1]

    yield another
    for each in opened:
        each.close()


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Settings]:
    """Settings of an embedded server of the test's own, which is not started, and ended after the
    test."""
    own = settings.load(home=tmp_path / "home", patience=30.0)
    yield own
    if own.home.is_dir():
        embedded.stop(own)


def wipe(connection: Connection) -> None:
    """Delete all data, in bites that fit a transaction, and leave the schema."""
    bite = """
        MATCH (n) WHERE NOT n:SchemaMigration WITH n LIMIT $most DETACH DELETE n RETURN count(n) AS deleted
        """
    most = 2000
    while (
        connection.write(
            lambda transaction: transaction.run(bite, most=most).single(strict=True)["deleted"]
        )
        == most
    ):
        pass


def _embedded(folder: Path) -> Iterator[Settings]:
    own = settings.load(home=folder, environment=java_only())
    yield own
    embedded.stop(own)
    # The archive of benchmarks that were run on it.
    if (folder / "bench").is_dir():
        embedded.stop(replace(own, home=folder / "bench"))


def _neo4j(folder: Path) -> Iterator[Settings]:
    uri = os.environ.get("ARCHIVE_TEST_NEO4J_URI")
    if not uri:
        yield from _real(server.LTS, folder)
        return

    user, password = (os.environ.get(f"ARCHIVE_TEST_NEO4J_{name}") for name in ("USER", "PASSWORD"))
    yield settings.load(home=folder, uri=uri, user=user, password=password, environment={})


def _neo4j_current(folder: Path) -> Iterator[Settings]:
    yield from _real(server.CURRENT, folder)


def _real(release: server.Release, folder: Path) -> Iterator[Settings]:
    try:
        server.java_of(release.java)
        server.jars_of(release)
    except (RuntimeError, FileNotFoundError, subprocess.CalledProcessError) as error:
        if CHOSEN:
            raise

        pytest.skip(f"no Neo4j {release.version} here (needs Java {release.java} and mvn): {error}")

    with server.Neo4jServer.start(release, folder / "server") as running:
        yield settings.load(
            home=folder,
            uri=running.uri,
            user=running.user,
            password=running.password,
            environment={},
        )

    shutil.rmtree(folder / "server", ignore_errors=True)

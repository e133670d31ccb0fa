"""Connection to the database: the neo4j driver over Bolt, to the embedded server or to Neo4j.

Concurrency rules of all transactions:

- Work is a function of a managed transaction. It may run more than once (after a conflict, a lost
  connection, or a restart of the server), so it must be idempotent and have no other effect.
- Transactions lock nodes in one order (`archive.database.statements`). Writers of an embedded
  server take turns, which saves time and is not needed for safety (`archive.database.write_lock`).
- Bookmarks are passed on, so that a process reads its own writes on a cluster, too.
- Several threads may share a connection. A forked process may not use its parent's connection.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from itertools import count
from typing import Any, Literal, Self, TypeVar, cast

import neo4j
from neo4j import GraphDatabase
from neo4j.exceptions import ConstraintError, DriverError, Neo4jError, TransientError

from archive.backoff import Backoff
from archive.database import driver_errors
from archive.database.messages import CommittingSession, limited, pipelined
from archive.database.write_lock import WriteLock
from archive.errors import ArchiveError, DamagedError, IncompleteWriteError, StoreUnavailableError
from archive.server import embedded
from archive.server.dump_schedule import dumps
from archive.server.process import Death
from archive.server.run_file import Folder
from archive.settings import Settings

T = TypeVar("T")
Work = Callable[[neo4j.ManagedTransaction], T]
Dialect = Literal["embedded", "neo4j"]

# The driver logs its own retries, which do not concern a user. A program that needs these logs adds
# a handler.
logging.getLogger("neo4j").addHandler(logging.NullHandler())

_CONNECT_SECONDS = 5.0
_LOGIN_SECONDS = 10.0  # the driver tries a login twice
_DRIVER_RETRY_SECONDS = 2.0  # `with_recovery` retries after this
_FIRST_PAUSE_SECONDS = 0.05
_FIRST_CONFLICT_PAUSE_SECONDS = 0.004
_MAX_PAUSE_SECONDS = 1.0
_MAX_COLLISIONS = 10
_MAX_UNREADABLE = 5
"""Number of runs in a row that fail at the same record, after which it is damaged: about a
second."""
_MAX_INCOMPLETE = 3  # the third run has exclusive access to an embedded server


class Connection:
    """A pool of connections to one archive's database.

    Args:
        settings: Location of the archive; without an address, the embedded server is started if it
            is not running.
    """

    def __init__(self, settings: Settings) -> None:
        """Prepare a connection; `open` connects."""
        self.settings = settings
        self._lock = threading.Lock()
        self._driver: neo4j.Driver | None = None
        self._bookmarks = GraphDatabase.bookmark_manager()
        self._login = ("", "", "")
        self._instance = ""  # process of the embedded server that the driver is connected to
        self._database = settings.database
        self._dialect: Dialect = "embedded" if settings.embedded else "neo4j"
        self._closed = False

    @classmethod
    def open(cls, settings: Settings) -> Self:
        """Connect, and check the login.

        Raises:
            StoreError: No server, a refused login or no such database; the message names the cause
                and the way out.
        """
        connection = cls(settings)
        try:
            connection.ping(patience=None if settings.embedded else 0.0)
        except BaseException:
            connection.close()
            raise

        return connection

    @property
    def dialect(self) -> Dialect:
        """Dialect of the server: `embedded` or `neo4j`."""
        return self._dialect

    @property
    def address(self) -> str:
        """Address of the server, without a login."""
        return (
            self._login[0]
            or self.settings.uri
            or (f"the embedded server over {self.settings.home}")
        )

    @property
    def database(self) -> str | None:
        """Name of the database; None for the user's home database."""
        return self._database

    @property
    def login(self) -> tuple[str, str, str]:
        """Address, user and password, for another client of the same server."""
        self._ensure_driver()
        return self._login

    @property
    def instance(self) -> str:
        """Process of the embedded server that answers now; empty for another server."""
        return embedded.instance_of(self.settings) if self.settings.embedded else ""

    def death_of(self, instance: str, *, wait: bool) -> Death | None:
        """Return how an instance of the embedded server died.

        None if it runs, was stopped, or is another server's.

        Args:
            instance: The instance.
            wait: Whether its death may not be noticed yet, as after a lost connection.
        """
        return (
            embedded.death_of(self.settings, instance, wait=wait)
            if self.settings.embedded
            else None
        )

    def read(self, work: Work[T], *, patience: float | None = None, single: bool = False) -> T:
        """Run work in a read transaction; the head of the module states the rules for work.

        Args:
            work: Function of the transaction.
            patience: Maximum duration of an outage in seconds; the settings' by default.
            single: Whether each statement may be a separate transaction, which saves a round
                trip.

        Raises:
            MessageTooLargeError: A statement is larger than an embedded server takes.
            ArchiveError: Raised by `work`, or translated from an error of the driver.
        """
        return self.with_recovery(lambda: self._run("execute_read", work, single), patience)

    def write(
        self,
        work: Work[T],
        *,
        patience: float | None = None,
        alone: bool = False,
        lane: str | None = None,
        single: bool = False,
    ) -> T:
        """Run idempotent work in a write transaction, which is committed when the work returns.

        Args:
            work: Function of the transaction.
            patience: Maximum duration of an outage in seconds; the settings' by default.
            alone: Whether the work is long, and needs exclusive access to an embedded server
                (`archive.database.write_lock`).
            lane: Name of a group of writers that run one after the other on an embedded server.
            single: Whether each statement may be a separate transaction, which is committed in
                its round trip.

        Raises:
            ArchiveError: Raised by `work`, or translated from an error of the driver; an
                IncompleteWriteError only after several runs.
        """
        self.require_space()
        runs = count()

        def attempt() -> T:
            # Work that has failed twice, most likely because of conflicts, gets exclusive access.
            with self.turn(alone=alone or next(runs) > 1, lane=lane):
                return self._run("execute_write", work, single)

        return self.with_recovery(attempt, patience)

    def turn(self, *, alone: bool, lane: str | None = None) -> AbstractContextManager[None]:
        """Hold the write lock of an embedded server for the duration of the block.

        See `archive.database.write_lock`.

        Args:
            alone: Whether the block needs exclusive access.
            lane: Name of a group of writers that run one after the other.
        """
        if not self.settings.embedded:
            return nullcontext()

        return WriteLock(Folder(self.settings.home).server).turn(alone=alone, lane=lane)

    def ping(self, patience: float | None = None) -> None:
        """Check that the server answers and accepts the login.

        Args:
            patience: Maximum duration of an outage in seconds; the settings' by default.

        Raises:
            StoreError: The server does not answer, or refuses the login.
        """
        agent = self.read(
            lambda tx: str(tx.run("RETURN 1").consume().server.agent), patience=patience
        )
        # A remote ArcadeDB server has the embedded server's dialect, too.
        self._dialect = "embedded" if "ArcadeDB" in agent else "neo4j"

    def session(self, *, write: bool, **options: Any) -> neo4j.Session:
        """Return a session for code of this package that manages its own transaction.

        Args:
            write: Whether its transactions write.
            options: Further options of `neo4j.Driver.session`.
        """
        return self._ensure_driver().session(
            database=self._database,
            default_access_mode=neo4j.WRITE_ACCESS if write else neo4j.READ_ACCESS,
            bookmark_manager=self._bookmarks,
            **options,
        )

    def require_space(self) -> None:
        """Refuse writes to an embedded server with a nearly full disk.

        A Neo4j server checks its own disk.

        Raises:
            StoreError: There is too little free space.
        """
        if self.settings.embedded:
            embedded.require_space(self.settings)

    def close(self) -> None:
        """Close every connection; the server keeps running."""
        with self._lock:
            self._closed = True
            self._drop_driver()

    def __enter__(self) -> Self:
        """The connection itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def with_recovery(self, attempt: Callable[[], T], patience: float | None = None) -> T:
        """Call `attempt` until it succeeds, for at most the permitted duration of an outage."""
        deadline = time.monotonic() + (self.settings.patience if patience is None else patience)
        backoffs: dict[bool, Backoff] = {}
        collisions = incomplete = unreadable = 0
        last_record: str | None = None
        while True:
            instance = self._instance
            try:
                return attempt()
            except IncompleteWriteError:
                conflict = True
                incomplete = incomplete + 1
                if incomplete > _MAX_INCOMPLETE:
                    raise
            except (DriverError, Neo4jError) as error:
                conflict = isinstance(error, TransientError)
                if isinstance(error, ConstraintError):
                    # Two transactions that MERGE the same new id may both create it. The server
                    # refuses the second one as not retryable, although a second run would find the
                    # node of the first.
                    collisions += 1
                    conflict = collisions <= _MAX_COLLISIONS

                record = driver_errors.unreadable_record(error)
                unreadable = unreadable + 1 if record is not None and record == last_record else 1
                last_record = record
                if record is not None and (
                    unreadable >= _MAX_UNREADABLE or time.monotonic() > deadline
                ):
                    raise self._damage_error(error) from error

                passing = conflict or driver_errors.is_passing(error) or self._server_left(instance)
                if not passing or time.monotonic() > deadline:
                    death = self.death_of(instance, wait=True) if passing and not conflict else None
                    if death is not None and death.out_of_memory:
                        raise driver_errors.out_of_memory(death.heap) from error

                    raise driver_errors.translate(
                        error, self.address, self._login[1], self._database
                    ) from error

            if conflict not in backoffs:
                first_pause = _FIRST_CONFLICT_PAUSE_SECONDS if conflict else _FIRST_PAUSE_SECONDS
                backoffs[conflict] = Backoff(first_pause, _MAX_PAUSE_SECONDS)

            time.sleep(backoffs[conflict].next_pause())
            if not conflict:
                self._reconnect()

    def _run(
        self, kind: Literal["execute_read", "execute_write"], work: Work[T], single: bool
    ) -> T:
        if self._dialect == "embedded":
            work = limited(work)

        # All rows of a single statement come before the answer to its COMMIT.
        options = {"fetch_size": -1} if single else {}
        with self.session(write=kind == "execute_write", **options) as session:
            if single and (kind == "execute_read" or self._dialect == "neo4j"):
                return work(cast(neo4j.ManagedTransaction, session))

            # ArcadeDB commits an auto-commit statement in parts, some of which are lost beside
            # other writers.
            if single:
                return work(cast(neo4j.ManagedTransaction, CommittingSession(session)))

            with pipelined(session):
                return cast(T, getattr(session, kind)(work))

    def _ensure_driver(self) -> neo4j.Driver:
        with self._lock:
            if self._closed:
                raise StoreUnavailableError(
                    f"the connection to {self.address} is closed", self.address
                )

            if self._driver is None:
                self._connect()

            return cast(neo4j.Driver, self._driver)

    def _connect(self) -> None:
        if self.settings.uri is None:
            server = embedded.ensure_running(self.settings)
            self._login = (server.uri, server.user, server.password)
            self._instance = server.instance
            self._database = server.database
        else:
            self._login = (
                self.settings.uri,
                self.settings.user or "neo4j",
                self.settings.password or "",
            )

        address, user, password = self._login
        self._driver = GraphDatabase.driver(
            address,
            auth=(user, password) if password else None,
            connection_timeout=_CONNECT_SECONDS,
            connection_acquisition_timeout=max(
                _CONNECT_SECONDS, min(_LOGIN_SECONDS, self.settings.patience)
            ),
            # Only `with_recovery` can find, or start, an embedded server after its end.
            max_transaction_retry_time=0.0 if self.settings.embedded else _DRIVER_RETRY_SECONDS,
            initial_retry_delay=0.05,
            notifications_min_severity="OFF",
            telemetry_disabled=True,
            user_agent="nas-archive",
        )

    def _reconnect(self) -> None:
        """Find or start the embedded server after a failure.

        If its address or login has changed, connect again.
        """
        if self.settings.uri is not None:
            return

        try:
            server = embedded.ensure_running(self.settings)
        except DamagedError:
            raise
        except ArchiveError:
            return  # the next attempt fails in the same way, until the patience ends

        with self._lock:
            self._instance = server.instance
            if (server.uri, server.user, server.password) != self._login:
                self._drop_driver()
                # A new server process does not know the bookmarks of the old one.
                self._bookmarks = GraphDatabase.bookmark_manager()

    def _damage_error(self, error: Exception) -> DamagedError:
        reason = driver_errors.line_of(error)
        if self.settings.embedded:
            made = dumps(Folder(self.settings.home))
            last = f"the last automatic dump is {made[0]}" if made else "there is no automatic dump"
            return DamagedError(
                f"the database of {self.settings.home} is damaged ({reason}): "
                f"run archive db repair, which keeps a copy of it; {last}"
            )

        return DamagedError(
            f"the database at {self.address} is damaged ({reason}): repair it on its server"
        )

    def _server_left(self, instance: str) -> bool:
        """Whether the embedded server of an attempt has ended.

        Any error of the attempt may then be a consequence.
        """
        return self.settings.embedded and not embedded.is_running(self.settings, instance)

    def _drop_driver(self) -> None:
        if self._driver is not None:
            driver = self._driver
            self._driver = None
            driver.close()

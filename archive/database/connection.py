"""The one way to the data: the neo4j driver over Bolt, to the embedded server or to Neo4j.

Work is a function of a managed transaction. It may run more than once (a conflict, a lost connection, a server
that was killed and came back), so it must be idempotent and have no other effect. Bookmarks are carried, so that
on a cluster a process reads what it wrote; nothing here assumes a single server.

A connection may be used by several threads at once, not across a fork.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from itertools import count
from typing import Literal, Self, TypeVar, cast

import neo4j
from neo4j import GraphDatabase
from neo4j.exceptions import ConstraintError, DriverError, Neo4jError, TransientError

from archive.database import driver_errors
from archive.database.write_lock import Turns
from archive.errors import ArchiveError, IncompleteWriteError, StoreUnavailableError
from archive.server import embedded
from archive.server.run_file import Folder
from archive.settings import Settings

T = TypeVar("T")
Work = Callable[[neo4j.ManagedTransaction], T]
Dialect = Literal["embedded", "neo4j"]

# What the driver retries by itself is no news to a user; whoever wants to see it adds a handler.
logging.getLogger("neo4j").addHandler(logging.NullHandler())

_CONNECT_SECONDS = 5.0
_DRIVER_RETRY_SECONDS = 2.0  # then the loop here takes over
_FIRST_PAUSE_SECONDS = 0.05
_FIRST_CONFLICT_PAUSE_SECONDS = 0.004
_MAX_PAUSE_SECONDS = 1.0
_MAX_COLLISIONS = 10
_MAX_INCOMPLETE = 3  # the third run has an embedded server alone


class Connection:
    """A pool of connections to one archive's database.

    Args:
        settings: Where the archive is; without an address, the embedded server is started when it is not there.
    """

    def __init__(self, settings: Settings) -> None:
        """Prepare; `open` connects."""
        self.settings = settings
        self._lock = threading.Lock()
        self._driver: neo4j.Driver | None = None
        self._bookmarks = GraphDatabase.bookmark_manager()
        self._login = ("", "", "")
        self._instance = ""  # which process of the embedded server the driver talks to
        self._database = settings.database
        self._dialect: Dialect = "embedded" if settings.embedded else "neo4j"
        self._turns = Turns(Folder(settings.home).server) if settings.embedded else None
        self._closed = False

    @classmethod
    def open(cls, settings: Settings) -> Self:
        """Connect, and see that the server lets us in.

        Raises:
            StoreError: No server, a refused login or no such database; the message says which, and the way out.
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
        """Which server this is: `embedded` or `neo4j`."""
        return self._dialect

    @property
    def address(self) -> str:
        """The server's address, without a login."""
        return self._login[0] or self.settings.uri or f"the embedded server over {self.settings.home}"

    @property
    def database(self) -> str | None:
        """The database's name; None for the user's home database."""
        return self._database

    @property
    def login(self) -> tuple[str, str, str]:
        """Address, user and password, for another client of the same server."""
        self._ensure_driver()
        return self._login

    def read(self, work: Work[T], *, patience: float | None = None) -> T:
        """Run work in a read transaction; see the module for what work must be.

        Args:
            work: Reads through the transaction it is given, and returns what it found.
            patience: Seconds to ride out an outage; the settings' by default.

        Raises:
            ArchiveError: Whatever `work` raises of this family passes unchanged; a driver's error is translated.
        """
        return self.with_recovery(lambda: self._run("execute_read", work), patience)

    def write(self, work: Work[T], *, patience: float | None = None, alone: bool = False, lane: str | None = None) -> T:
        """Run idempotent work in a write transaction, which is committed when the work returns.

        Args:
            work: Reads and writes through the transaction it is given.
            patience: Seconds to ride out an outage; the settings' by default.
            alone: Whether it is long, and on an embedded server keeps other writers waiting
            (`archive.database.write_lock`).
            lane: Name of those who on an embedded server go one after the other.

        Raises:
            ArchiveError: Whatever `work` raises of this family passes unchanged, an IncompleteWriteError once it has
                been run again in vain; a driver's error is translated.
        """
        self.require_space()
        runs = count()

        def attempt() -> T:
            # What has failed twice, because of conflicts most likely, is to have the server alone.
            with self.turn(alone=alone or next(runs) > 1, lane=lane):
                return self._run("execute_write", work)

        return self.with_recovery(attempt, patience)

    def turn(self, *, alone: bool, lane: str | None = None) -> AbstractContextManager[None]:
        """Hold the write lock of an embedded server for the time of the block (`archive.database.write_lock`).

        Args:
            alone: Whether no other writer may have a turn at the same time.
            lane: Name of the writers that go one after the other.
        """
        return self._turns.turn(alone=alone, lane=lane) if self._turns else nullcontext()

    def ping(self, patience: float | None = None) -> None:
        """See that the server answers and lets us in.

        Args:
            patience: Seconds to ride out an outage; the settings' by default.

        Raises:
            StoreError: It does not.
        """
        agent = self.read(_greet, patience=patience)
        # An ArcadeDB server somewhere else speaks the embedded server's dialect too.
        self._dialect = "embedded" if "ArcadeDB" in agent else "neo4j"

    def session(self, *, write: bool) -> neo4j.Session:
        """A session on the archive's database, for code of this package that manages its own transaction."""
        return self._ensure_driver().session(
            database=self._database,
            default_access_mode=neo4j.WRITE_ACCESS if write else neo4j.READ_ACCESS,
            bookmark_manager=self._bookmarks,
        )

    def require_space(self) -> None:
        """Refuse to write to an embedded server whose disk is nearly full; a Neo4j server looks after its own.

        Raises:
            StoreError: There is too little space left.
        """
        if self.settings.embedded:
            embedded.require_space(self.settings)

    def close(self) -> None:
        """Close every connection; the server stays."""
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
        """Call `attempt` until it gets through to the server, for as long as an outage may last."""
        deadline = time.monotonic() + (self.settings.patience if patience is None else patience)
        pauses = {False: _FIRST_PAUSE_SECONDS, True: _FIRST_CONFLICT_PAUSE_SECONDS}
        collisions = incomplete = 0
        while True:
            instance = self._instance
            try:
                return attempt()
            except IncompleteWriteError:
                conflict, incomplete = True, incomplete + 1
                if incomplete > _MAX_INCOMPLETE:
                    raise
            except (DriverError, Neo4jError) as error:
                conflict = isinstance(error, TransientError)
                if isinstance(error, ConstraintError):
                    # Two transactions that MERGE the same new id may both create it; the server then refuses the
                    # second one for good, though run again it would find the first one's node.
                    collisions += 1
                    conflict = collisions <= _MAX_COLLISIONS
                passing = conflict or driver_errors.is_passing(error) or self._server_left(instance)
                if not passing or time.monotonic() > deadline:
                    raise driver_errors.translate(error, self.address, self._login[1], self._database) from error
            time.sleep(pauses[conflict] * random.uniform(0.5, 1.0))
            pauses[conflict] = min(2 * pauses[conflict], _MAX_PAUSE_SECONDS)
            if not conflict:
                self._look_again()

    def _run(self, kind: Literal["execute_read", "execute_write"], work: Work[T]) -> T:
        with self.session(write=kind == "execute_write") as session:
            return cast(T, getattr(session, kind)(work))

    def _ensure_driver(self) -> neo4j.Driver:
        with self._lock:
            if self._closed:
                raise StoreUnavailableError(f"the connection to {self.address} is closed", self.address)
            if self._driver is None:
                self._connect()
            return cast(neo4j.Driver, self._driver)

    def _connect(self) -> None:
        if self.settings.uri is None:
            found = embedded.ensure_running(self.settings)
            self._login, self._instance = (found.uri, found.user, found.password), found.instance
            self._database = found.database
        else:
            self._login = (self.settings.uri, self.settings.user or "neo4j", self.settings.password or "")
        address, user, password = self._login
        self._driver = GraphDatabase.driver(
            address,
            auth=(user, password) if password else None,
            connection_timeout=_CONNECT_SECONDS,
            # The loop here alone can find, or start, an embedded server that is gone.
            max_transaction_retry_time=0.0 if self.settings.embedded else _DRIVER_RETRY_SECONDS,
            initial_retry_delay=0.05,
            notifications_min_severity="OFF",
            telemetry_disabled=True,
            user_agent="nas-archive",
        )

    def _look_again(self) -> None:
        """After a failure: find, or start, the embedded server, and connect anew if it moved."""
        if self.settings.uri is not None:
            return
        try:
            found = embedded.ensure_running(self.settings)
        except ArchiveError:
            return  # the next attempt meets it again, until patience runs out
        with self._lock:
            self._instance = found.instance
            if (found.uri, found.user, found.password) != self._login:
                self._drop_driver()
                # Another server process has no memory of the old one's bookmarks.
                self._bookmarks = GraphDatabase.bookmark_manager()

    def _server_left(self, instance: str) -> bool:
        """Whether the embedded server is not the one any more that was at work: its last words mean nothing.

        While it starts or ends it may say anything: that there is no such database, that the login is not valid.
        """
        if self.settings.uri is not None:
            return False
        found = embedded.find(self.settings)
        return found is None or found.instance != instance

    def _drop_driver(self) -> None:
        if self._driver is not None:
            driver, self._driver = self._driver, None
            driver.close()


def _greet(transaction: neo4j.ManagedTransaction) -> str:
    return str(transaction.run("RETURN 1").consume().server.agent)

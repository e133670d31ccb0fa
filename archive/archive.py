"""The archive as a program sees it: one object, one concern an attribute."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

from archive import schema, settings
from archive.architectures import Architectures
from archive.checkpoints import Checkpoints
from archive.connection import Connection
from archive.distances import Distances
from archive.errors import SettingsError, StoreUnavailableError
from archive.proposals import Proposals
from archive.query import QueryResult
from archive.settings import Settings
from archive.studies import Studies

if TYPE_CHECKING:
    import py2neo


class Archive:
    """A connected archive; close it, or use it in a `with` block.

    Args:
        connection: An open connection to a database that has this release's schema.

    Attributes:
        connection: The way to the database.
        architectures: Architectures with their layers and edges, and how they came from each other.
        studies: Studies and their evaluations.
        proposals: Proposals, leases and results.
        distances: Distances of pairs of architectures.
        checkpoints: Saved weights.
    """

    def __init__(self, connection: Connection) -> None:
        """Put every concern on the one connection."""
        self.connection = connection
        self.architectures = Architectures(connection)
        self.studies = Studies(connection, self.architectures)
        self.proposals = Proposals(connection, self.architectures)
        self.distances = Distances(connection)
        self.checkpoints = Checkpoints(connection)

    def query(
        self,
        cypher: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        write: bool = False,
        limit: int | None = None,
        timeout: float | None = None,
    ) -> QueryResult:
        """Answer a Cypher query, which cannot change anything unless `write` is given; see `Connection.query`."""
        return self.connection.query(cypher, parameters, write=write, limit=limit, timeout=timeout)

    def py2neo(self) -> py2neo.Graph:
        """A connected `py2neo.Graph`, for notebooks that have one; py2neo is at its end of life.

        Raises:
            SettingsError: The optional extra is not installed.
            StoreUnavailableError: py2neo cannot talk to this server.
        """
        try:
            import py2neo
        except ImportError:
            raise SettingsError("py2neo is not installed: pip install 'nas-archive[py2neo]'") from None
        self.connection.ping()
        address, user, password = self.connection.login
        try:
            return py2neo.Graph(address, auth=(user, password), name=self.connection.database)
        except Exception as error:
            raise StoreUnavailableError(f"py2neo cannot use the server at {address}: {error}", address) from error

    def close(self) -> None:
        """Close the connection; the server stays."""
        self.connection.close()

    def __enter__(self) -> Self:
        """The archive itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()


def connect(configuration: Settings | None = None, **overrides: Any) -> Archive:
    """Open the archive, and bring its schema up to date.

    Args:
        configuration: Where it is; from file and environment when not given.
        **overrides: Arguments of `archive.settings.load`, without a configuration.

    Raises:
        SettingsError: A setting cannot be used.
        StoreError: The database cannot be reached or used.
    """
    if configuration is not None and overrides:
        raise TypeError("connect() takes a configuration or overrides, not both")
    connection = Connection.open(configuration if configuration is not None else settings.load(**overrides))
    try:
        schema.migrate(connection)
        return Archive(connection)
    except BaseException:
        connection.close()
        raise

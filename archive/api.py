"""Facade of the archive: `connect()`, and one object with an attribute for each concern."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from archive import settings
from archive.database.connection import Connection
from archive.errors import ArchiveError, SettingsError, StoreUnavailableError, UsageError
from archive.settings import Settings
from archive.store import schema, upkeep

if TYPE_CHECKING:
    import py2neo
    from torch import nn

    from archive.database.user_query import QueryResult
    from archive.queue.proposals import Proposals
    from archive.queue.reuse import ReusedResults
    from archive.store.architectures import Architectures
    from archive.store.distances import Distances
    from archive.store.lineage import Lineage
    from archive.store.proxies import ProxyScores
    from archive.store.studies.builds import Builds
    from archive.store.studies.studies import Studies
    from archive.store.weights import Retention, WeightsLookup

_PARTS: Mapping[str, tuple[str, str, tuple[str, ...]]] = {
    "architectures": ("archive.store.architectures", "Architectures", ()),
    "studies": ("archive.store.studies.studies", "Studies", ("architectures",)),
    "proposals": ("archive.queue.proposals", "Proposals", ("architectures",)),
    "answers": ("archive.queue.reuse", "ReusedResults", ("builds",)),
    "builds": ("archive.store.studies.builds", "Builds", ("architectures",)),
    "distances": ("archive.store.distances", "Distances", ()),
    "proxies": ("archive.store.proxies", "ProxyScores", ("architectures",)),
    "weights": ("archive.store.weights", "WeightsLookup", ()),
    "lineage": ("archive.store.lineage", "Lineage", ("architectures",)),
    "retention": ("archive.store.weights", "Retention", ()),
}
"""Module and class of each part of an archive, and the parts that it is made with; imported at
first use."""


class Archive:
    """A connected archive; close it, or use it in a `with` block.

    Args:
        connection: An open connection to a database that has this release's schema.

    Attributes:
        connection: Connection to the database.
        architectures: Architectures with their layers, edges and morphisms.
        studies: Studies and their evaluations.
        proposals: Proposals, leases and results.
        answers: Known results of architectures that are proposed again.
        builds: Networks that models build of configurations of parameters.
        distances: Distances between pairs of architectures.
        proxies: Zero-cost proxies of architectures.
        weights: Addresses of stored weights.
        lineage: Ancestors of architectures, and the weights to inherit from them.
        retention: Stored weights with the reasons for keeping them.
    """

    connection: Connection
    architectures: Architectures
    studies: Studies
    proposals: Proposals
    answers: ReusedResults
    builds: Builds
    distances: Distances
    proxies: ProxyScores
    weights: WeightsLookup
    lineage: Lineage
    retention: Retention

    def __init__(self, connection: Connection) -> None:
        """Keep the connection.

        The other attributes are made at first use, because a command needs one or two of them.
        """
        self.connection = connection
        self._lock = threading.RLock()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Make an attribute; threads that ask at once get the same one."""
            if name not in _PARTS:
                raise AttributeError(f"an archive has no attribute {name!r}")

            module, kind, needed = _PARTS[name]
            with self._lock:
                if name not in vars(self):
                    parts = [getattr(self, part) for part in needed]
                    vars(self)[name] = getattr(import_module(module), kind)(self.connection, *parts)

                return vars(self)[name]

    def __dir__(self) -> list[str]:
        """List the attributes, made or not."""
        return sorted({*super().__dir__(), *_PARTS})

    def query(
        self,
        cypher: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        write: bool = False,
        limit: int | None = None,
        skip: int = 0,
        timeout: float | None = None,
    ) -> QueryResult:
        """Run a Cypher query, read-only unless `write` is set.

        See `archive.database.user_query.run_query`.
        """
        from archive.database.user_query import run_query

        return run_query(
            self.connection,
            cypher,
            parameters,
            write=write,
            limit=limit,
            skip=skip,
            timeout=timeout,
        )

    def named(self, name: str, **parameters: Any) -> QueryResult:
        """Run a saved query; see `archive.queries.saved`.

        Raises:
            UnknownNameError: There is no such query, study, task or protocol, or the query has no
                such parameter.
            UsageError: A parameter is missing.
        """
        from archive.queries import saved

        return saved.run(self.connection, name, parameters)

    def module(self, evaluation: str, weights_from: Sequence[str | Path] = ()) -> nn.Module:
        """Return the trained network of an evaluation, on the CPU and in evaluation mode.

        Its weights are verified.

        It maps inputs (n, *shape) that are standardised as in training to logits (n, classes), or
        to standardised predictions (n, 1).

        Args:
            evaluation: Id of the evaluation, `STUDY#NUMBER`.
            weights_from: Folders and fsspec URLs whose weights may be read, beside the archive's
                own.

        Raises:
            UnknownNameError: There is no such evaluation.
            UsageError: None of its weights were kept.
            InvalidArchitectureError: Its space has no builder.
            SettingsError: The weights are at a location that may not be read.
            WeightsError: The file is missing, cut off or altered, or does not fit the network.
        """
        # The trainer, which builds networks, is a layer above this one, and is not needed for
        # anything else.
        trained = import_module("archive.trainer.export.trained")
        module: nn.Module = trained.module(self, evaluation, weights_from)
        return module

    def py2neo(self) -> py2neo.Graph:
        """Return a connected `py2neo.Graph`, for existing notebooks; py2neo is at its end of life.

        Raises:
            SettingsError: The optional extra is not installed.
            StoreUnavailableError: py2neo cannot connect to this server.
        """
        try:
            import py2neo
        except ImportError:
            raise SettingsError(
                "py2neo is not installed: pip install 'nas-archive[py2neo]'"
            ) from None

        self.connection.ping()
        address, user, password = self.connection.login
        try:
            return py2neo.Graph(address, auth=(user, password), name=self.connection.database)
        except Exception as error:
            raise StoreUnavailableError(
                f"py2neo cannot use the server at {address}: {error}", address
            ) from error

    def close(self) -> None:
        """Close the connection; the server keeps running.

        Workers of ask and tell that hold no proposal are recorded as ended, or are stale later if
        the server is away.
        """
        if "proposals" in vars(self):
            from archive.queue import workers

            with suppress(ArchiveError):
                workers.leave_idle(self.connection, self.proposals.registered)

            self.proposals.registered.clear()

        self.connection.close()

    def __enter__(self) -> Self:
        """The archive itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()


def connect(configuration: Settings | str | None = None, **overrides: Any) -> Archive:
    """Connect to the archive, and migrate its schema.

    Args:
        configuration: Settings, or the address of a Neo4j server; from file and environment by
            default.
        **overrides: Arguments of `archive.settings.load`, without a configuration.

    Raises:
        SettingsError: A setting is invalid.
        UsageError: The configuration is neither settings nor an address.
        StoreError: The database cannot be reached or used.
    """
    if isinstance(configuration, str) and "uri" not in overrides:
        configuration, overrides = None, {"uri": configuration, **overrides}

    if configuration is not None and overrides:
        raise TypeError("connect() takes a configuration or overrides, not both")

    if not isinstance(configuration, Settings | None):
        raise UsageError(
            "an archive is at an address, 'neo4j://host:7687', in a folder, "
            f"home=FOLDER, or where Settings say, got {configuration!r}"
        )

    connection = Connection.open(
        configuration if configuration is not None else settings.load(**overrides)
    )
    try:
        upkeep.finish_upgrade(connection)
        schema.migrate(connection)
        return Archive(connection)
    except BaseException:
        connection.close()
        raise

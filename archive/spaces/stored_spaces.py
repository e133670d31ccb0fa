"""Spaces of stored studies: their settings come from the database, not from the caller."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from archive import named_files, spaces
from archive.architecture.graph import Architecture
from archive.architecture.layer import BESIDE
from archive.architecture.parameter_operations import join
from archive.errors import UnknownNameError
from archive.spaces.base import Space
from archive.spaces.tables.reader import NAMED
from archive.spaces.tables.space import TableSpace


def of_record(name: str, config: Mapping[str, Any], home: Path | None) -> Space:
    """Return the space of a stored study.

    The table of a space is opened only where this machine allows it.

    Args:
        name: Name of the space.
        config: Its recorded settings.
        home: Folder of the archive, with the record of the files that its user named; None allows
            any table.

    Raises:
        UnknownNameError: No space, or no setting of the space, has this name here.
        SettingsError: Its table may not be opened here, or a setting has an invalid value.
        UsageError: The table cannot be read.
    """
    table = config.get("table")
    if home is not None and isinstance(table, str) and table not in NAMED:
        named_files.check_table(table, home)

    check_known(name)
    return spaces.get(name, **config)


def member_of(
    config: Mapping[str, Any], network: Architecture, hyperparameters: Mapping[str, Any]
) -> Architecture:
    """Return what a stored proposal is of, as agents see it.

    The network with the hyperparameters beside it in a space with parameters
    (`archive.spaces.joint`), else the network.

    Args:
        config: Recorded settings of the space.
        network: The network of the proposal.
        hyperparameters: Its hyperparameters.
    """
    return join(network, hyperparameters) if BESIDE in config else network


def fixed_values(space: Space) -> Mapping[str, Any]:
    """Return the values of the parameters that a part of a space keeps; empty for a whole one."""
    config = space.config
    fixed: Mapping[str, Any] = config.get(BESIDE, config).get("fixed") or {}
    return fixed


def check_known(name: str) -> None:
    """Refuse the space of a stored study that no package here defines.

    Raises:
        UnknownNameError: No space has this name here.
    """
    if name not in spaces.names():
        raise UnknownNameError("space", name, spaces.names(), stored=True)


def name_table(space: Space, home: Path) -> None:
    """Allow later calls on this machine to open the table of a space that the caller opened.

    Args:
        space: A space of the caller; without a table, nothing is done.
        home: Folder of the archive.

    Raises:
        SettingsError: The permission cannot be written.
    """
    table = space.config.get("table")
    if (
        isinstance(space, TableSpace)
        and table not in NAMED
        and (real := named_files.resolved(str(table))) is not None
    ):
        named_files.record(home, real, space.table.sha256)

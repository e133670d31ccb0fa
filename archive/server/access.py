"""Access to an embedded archive: by other users, by other machines, and the limit of open files.

The folder `HOME/server` is accessible to its owner only, and so are the files of a server that
another user started.

The server listens on the loopback interface, and its writers take turns by locks on local files. A
launcher calls `refuse_remote` before it starts anything on another machine.
"""

from __future__ import annotations

import contextlib
import os
import resource
from pathlib import Path
from urllib.parse import urlsplit

from archive.errors import ServerStartError, SettingsError
from archive.files import owner_of, user_name
from archive.server.run_file import SUPERVISOR, Folder
from archive.settings import Settings

LEAST_OPEN_FILES = 256
"""Files that an embedded server needs: about 100 of the database and 60 of Java, and one for each
client."""


def check_access(folder: Folder) -> None:
    """Refuse a folder whose server belongs to another user.

    Raises:
        SettingsError: It does; one line with the owner and the way out.
    """
    fault = access_fault(folder)
    if fault is not None:
        raise SettingsError(fault)


def access_fault(folder: Folder) -> str | None:
    """Return why this user cannot use the server over a folder, with the way out.

    None if it can.
    """
    if not _is_closed(folder):
        return None

    pid, runner = _supervisor(folder)
    owner = owner_of(folder.run)
    owner = owner if owner is not None else owner_of(folder.server)
    names = [user_name(uid) for uid in (owner, runner) if uid is not None]
    name = names[-1] if names else "another user"
    state = f"runs (process {pid}), started by" if pid else "belongs to"
    return (
        f"the server over {folder.home} {state} the user {name}, and {user_name(os.geteuid())} may not use it: "
        f"run the command as {name}, let {name} stop it (archive db stop), or set ARCHIVE_HOME to a folder of your own"
    )


def _is_closed(folder: Folder) -> bool:
    """Whether the server's files belong to another user."""
    try:
        os.stat(folder.lock)
    except PermissionError:
        return True
    except OSError:
        return False  # not there yet, or no folder at all

    return not all(
        os.access(path, os.R_OK | os.W_OK) for path in (folder.lock, folder.run) if path.exists()
    )


def _supervisor(folder: Folder) -> tuple[int, int | None]:
    """Return the process of the server over a folder, and its user; 0 and None if there is none."""
    import psutil

    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            words = process.cmdline()
            if SUPERVISOR in words and str(folder.home) in words:
                return process.pid, process.uids().effective

    return 0, None


def is_stopped(pid: int) -> bool:
    """Whether a process was stopped by a signal, and waits for SIGCONT."""
    import psutil

    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_STOPPED)
    except psutil.Error:
        return False


def require_open_files() -> None:
    """Refuse to start a server that may open too few files.

    Raises:
        ServerStartError: The limit is too low.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < LEAST_OPEN_FILES:
        raise ServerStartError(too_few_files())


def too_few_files() -> str:
    """Return the message about a limit of open files that is too low."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (
        f"a process may open too few files here ({soft}, at most {hard}), and the embedded server needs "
        f"{LEAST_OPEN_FILES}: raise the limit (ulimit -n 4096, or LimitNOFILE=4096 of a service)"
    )


def allow_open_files() -> None:
    """Raise this process's limit of open files as far as it may."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


START_NEO4J = "NEO4J_AUTH=neo4j/PASSWORD docker run -d -p 7687:7687 -e NEO4J_AUTH neo4j:5.26"
"""Command that starts Neo4j; its password is in the environment and in no process list."""

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_FIRST_EPHEMERAL_PORT = 32_768


def refuse_remote(settings: Settings, what: str) -> None:
    """Refuse to serve other machines from the embedded server.

    Args:
        settings: Location of the archive.
        what: What needs other machines, as the beginning of the message, such as `archive launch
            slurm`.

    Raises:
        SettingsError: The archive is in the embedded server; one line with the commands that move
            it to Neo4j.
    """
    if settings.embedded:
        raise SettingsError(
            f"{what} needs a database that other machines reach, and the embedded archive "
            f"over {settings.home} serves one machine: {way_to_neo4j(settings.home)}"
        )


def refuse_address(settings: Settings, dialect: str) -> None:
    """Refuse a trainer that reaches an embedded server by an address.

    An example is a tunnel from another machine.

    Args:
        settings: Location of the archive.
        dialect: Dialect of the server that answers there
            (`archive.database.connection.Connection.dialect`).

    Raises:
        SettingsError: It is an embedded server.
    """
    if settings.uri is not None and dialect == "embedded":
        raise SettingsError(
            f"the server at {settings.uri} is an embedded archive, "
            "which serves trainers of its own machine only, "
            f"by ARCHIVE_HOME in place of ARCHIVE_DB: {way_to_neo4j(Path('HOME'))}"
        )


def way_to_neo4j(home: Path) -> str:
    """Return how to start Neo4j and copy the embedded archive of a home there, as one line."""
    return (
        f"start Neo4j on a machine that all reach ({START_NEO4J}), bring the archive there "
        f"(archive --home {home} dump | ARCHIVE_DB=neo4j://HOST:7687 ARCHIVE_PASSWORD_FILE=FILE "
        "archive load), and set ARCHIVE_DB and ARCHIVE_PASSWORD_FILE on all machines"
    )


def is_loopback(uri: str) -> bool:
    """Whether the address of a server means a different machine on each machine."""
    return (urlsplit(uri).hostname or "") in _LOOPBACK


def hint_for(uri: str) -> str:
    """Return the end of a message about an unreachable address.

    It is empty unless the address may be an embedded server's.
    """
    parts = urlsplit(uri)
    # Neo4j's port is fixed; an embedded server's port is ephemeral.
    if is_loopback(uri) or (parts.port or 0) < _FIRST_EPHEMERAL_PORT:
        return ""

    return f"; an embedded archive serves its own machine only: {way_to_neo4j(Path('HOME'))}"

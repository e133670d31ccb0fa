"""Names as parameters that a shell completes: agents, tasks, spaces, studies and more.

A completion never starts a server, never waits long for one, and never writes an error into the
shell: where a name cannot be looked up, nothing is offered. The commands check the names; these
types accept any text.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import socket
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click
from click.shell_completion import CompletionItem
from click.types import StringParamType

if TYPE_CHECKING:
    from archive.settings import Settings

REACH_SECONDS = 0.5
"""Longest wait for a server that may be away."""
QUERY_SECONDS = 2.0
"""Longest time that the names of studies may take a server."""
MOST_STUDIES = 200
"""Number of studies that are offered at most."""


class Name(StringParamType):
    """A name that a shell completes; the command checks it, and reports an unknown one.

    Args:
        candidates: Returns the names for a command line and the beginning of a name; may raise
            anything.
        separator: What separates several names in one value; None means that a value is one name.
    """

    name = "name"

    def __init__(
        self,
        candidates: Callable[[click.Context, str], Iterable[str]],
        separator: str | None = None,
    ) -> None:
        self.candidates = candidates
        self.separator = separator

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        """Return NAME for an option; None leaves an argument its name."""
        return None if isinstance(param, click.Argument) else "NAME"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the names that begin like the word; none where they cannot be looked up."""
        before, separator, last = (
            incomplete.rpartition(self.separator) if self.separator else ("", "", incomplete)
        )
        previous = before.split(self.separator) if self.separator else []
        names: list[str] = []
        with _silence():
            names = []
            for name in self.candidates(ctx, last):
                if name.startswith(last) and _is_plain(name):
                    names.append(name)

        return [
            CompletionItem(f"{before}{separator}{name}") for name in names if name not in previous
        ]


def _agents(ctx: click.Context, prefix: str) -> Iterable[str]:
    from archive import agents

    return agents.names()


def _tasks(ctx: click.Context, prefix: str) -> Iterable[str]:
    from archive.trainer.tasks import registry

    return registry.names()


def _spaces(ctx: click.Context, prefix: str) -> Iterable[str]:
    from archive import spaces

    return spaces.names()


def _kernels(ctx: click.Context, prefix: str) -> Iterable[str]:
    from archive import kernels

    return kernels.names()


def _observers(ctx: click.Context, prefix: str) -> Iterable[str]:
    from archive.trainer.observers import registry

    return registry.names()


def _protocols(ctx: click.Context, prefix: str) -> Iterable[str]:
    """Return the protocols of the task on the command line, or of all tasks."""
    from archive.trainer.tasks import registry

    task = ctx.params.get("task_name") or ctx.params.get("task")
    tasks = registry.names() if task is None else [task]
    protocols: set[str] = set()
    for name in tasks:
        protocols |= {protocol.name for protocol in registry.get(name).protocols}

    return sorted(protocols)


def _recipes(ctx: click.Context, prefix: str) -> Iterable[str]:
    from archive.trainer.recipes.registry import RecipeAccess

    return RecipeAccess(_load_settings(ctx).home).sources


def _launchers(ctx: click.Context, prefix: str) -> Iterable[str]:
    from archive.launchers import registry

    return registry.names()


def _fleets(ctx: click.Context, prefix: str) -> Iterable[str]:
    from archive.launchers import records

    return [fleet.name for fleet in records.saved(_load_settings(ctx))]


def _queries(ctx: click.Context, prefix: str) -> Iterable[str]:
    from archive.queries import catalogue

    return catalogue.names()


def _plots(ctx: click.Context, prefix: str) -> Iterable[str]:
    from archive.plots import kinds

    return kinds.KINDS


def _distances(ctx: click.Context, prefix: str) -> Iterable[str]:
    """Return the distances of a map: of profiles, and of kernels."""
    from archive.plots.data.network_map import PROFILE

    return (PROFILE, *_kernels(ctx, prefix))


def _studies(ctx: click.Context, prefix: str) -> Iterable[str]:
    """Return the names of studies, if the archive's server is running."""
    reachable = _reachable(_load_settings(ctx))
    if reachable is None:
        return []

    from archive.database.connection import Connection
    from archive.database.user_query import run_query
    from archive.queries.studies import STUDIES_BY_PREFIX

    with Connection.open(reachable) as connection:
        answer = run_query(
            connection,
            STUDIES_BY_PREFIX,
            {"prefix": prefix},
            limit=MOST_STUDIES,
            timeout=QUERY_SECONDS,
        )

    return [str(name) for (name,) in answer.rows]


def _load_settings(ctx: click.Context) -> Settings:
    """Return the settings with the options before the command."""
    from archive import settings

    options: dict[str, Any] = {}
    for name, value in ctx.find_root().params.items():
        # The others are switches of the output.
        if isinstance(value, str):
            options[name] = value

    return settings.load(**options)


def _reachable(settings: Settings) -> Settings | None:
    """Return settings of a running server, which never start one; None without a server."""
    from archive.server import embedded

    if settings.embedded:
        server = embedded.find(settings)
        if server is None:
            return None

        # By its address: a connection that is opened by the folder would start the server if it
        # ended just now.
        login = replace(
            settings, user=server.user, password=server.password, database=server.database
        )
        return replace(login, uri=server.uri, patience=0.0)

    address = urlsplit(str(settings.uri))
    with socket.create_connection((str(address.hostname), address.port or 7687), REACH_SECONDS):
        return replace(settings, patience=0.0)


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Swallow errors, and what libraries would write to the terminal that the user is typing on."""
    with (
        open(os.devnull, "w", encoding="utf-8") as nowhere,
        contextlib.redirect_stderr(nowhere),
        contextlib.suppress(Exception),
    ):
        yield


def _is_plain(name: str) -> bool:
    """Return whether a name is one safe word of a shell; names can come from anyone."""
    return name.isprintable() and shlex.quote(name) == name


AGENT = Name(_agents)
TASK = Name(_tasks)
SPACE = Name(_spaces)
KERNEL = Name(_kernels)
OBSERVER = Name(_observers)
LAUNCHER = Name(_launchers)
FLEET = Name(_fleets)
PROTOCOL = Name(_protocols)
STUDY = Name(_studies)
STUDY_LIST = Name(_studies, separator=",")
QUERY = Name(_queries)
PLOT = Name(_plots)
DISTANCE = Name(_distances)
RECIPE = Name(_recipes)
RECIPE_LIST = Name(_recipes, separator=",")


MOST_BYTES = 200
"""Most bytes of a study's name in the name of a file."""


def as_file(name: str) -> str:
    """Return the name of a study as the beginning of a file's name, within 255 bytes.

    It begins with no dash, which other commands take for an option.
    """
    characters = []
    for character in name:
        characters.append(character if character.isalnum() or character in "-_." else "-")

    shown = "".join(characters).lstrip("-.") or "study"
    if len(shown.encode()) <= MOST_BYTES:
        return shown

    return f"{shown[: MOST_BYTES // 4]}-{sha256(name.encode(errors='replace')).hexdigest()[:8]}"

"""Tool about runs on record: what was tried, before it is tried again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from archive.api import Archive
from archive.mcp.arguments import NetworkArgument, network_of
from archive.mcp.limits import ROWS, largest
from archive.queries.runs import TriedRun, find_runs, runs_of_network


@dataclass(frozen=True)
class TriedAnswer:
    """Runs that hold some words, or that trained a network; the newest of `total`."""

    total: int
    runs: list[TriedRun]
    truncated: bool = False


def tried(
    archive: Archive,
    words: Annotated[
        list[str] | None,
        Field(
            description="Words that a run must hold, all of them, in its motivation, the lines of "
            "its source files that it changes, its arguments, the end of its output or the reason "
            "of its failure."
        ),
    ] = None,
    network: NetworkArgument | None = None,
    study: Annotated[str | None, Field(description="Name of a study, to leave out others.")] = None,
) -> TriedAnswer:
    """Return the runs of programs, and the ideas, that were tried, newest first: what each changed
    of its parent, why, and the gain that it brought (larger is better). Ask before a training.

    With `network`, the runs that trained this network, whatever they called it.
    """
    if network is not None:
        key = network_of(archive, network).functional_key
        of_network = runs_of_network(archive.connection, key)
        listed = [run for run in of_network if study in (None, run.study)]
        total = len(listed)
    else:
        listed, total = find_runs(archive.connection, words or (), study=study, most=ROWS)

    def first(count: int) -> TriedAnswer:
        return TriedAnswer(total, listed[:count], truncated=count < total)

    return largest(first, len(listed))

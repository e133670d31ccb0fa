"""Commands that continue a search, with the options of this one: for users to copy."""

from __future__ import annotations

import shlex
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from archive.searches.request import agent_of

if TYPE_CHECKING:
    from archive.searches.outcome import SearchResult
    from archive.store.records import Study

PASSING = (
    *("batch", "trainers", "engine", "device", "observe", "retrain", "proxies"),
    *("stall_seconds", "trial_seconds", "scratch_bytes", "memory_bytes"),
)
"""Options that no study stores: the command that continues a search repeats them."""


def longer_search(ctx: click.Context, result: SearchResult, study: Study) -> str:
    """Return the command that continues this study; the study supplies task, protocol and space."""
    total = 2 * max(result.budget, result.evaluations)
    parts = [archive_command(ctx), "search --study", shlex.quote(study.name), f"--budget {total}"]
    if result.agent != agent_of(study):
        parts += ["--agent", shlex.quote(result.agent)]

    return _command(" ".join(parts), ctx, PASSING)


def archive_command(ctx: click.Context) -> str:
    """Return the command `archive` with the options that stand before the name of a command."""
    return _command("archive", ctx.find_root())


def _command(name: str, ctx: click.Context, selected: Collection[str] | None = None) -> str:
    """Return a command with its options from the command line, all of them or the selected ones."""
    parts = [name]
    for option in ctx.command.params:
        key = str(option.name)
        if ctx.get_parameter_source(key) is not ParameterSource.COMMANDLINE or (
            selected is not None and key not in selected
        ):
            continue

        value = ctx.params[key]
        for one in value if isinstance(value, tuple) else (value,):
            parts += [option.opts[0], *([] if one is True else [_quoted(one)])]

    return " ".join(parts)


def _quoted(value: Any) -> str:
    return f"{value:.15g}" if isinstance(value, float) else shlex.quote(str(value))

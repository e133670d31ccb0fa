"""Additions of an import to a study: proposals with their outcomes, in batches.

Each has a token of its own, so that an import that is repeated or was interrupted adds the missing
ones alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from archive.errors import UsageError
from archive.queue.admission import Request, SuggestionLike, admit
from archive.store.dump_statements import NUMBERS_OF_IMPORT
from archive.store.records import Result
from archive.store.studies.derivations import link_missing

if TYPE_CHECKING:
    from archive.api import Archive

BATCH = 200
"""Proposals of one transaction."""


class Addition(NamedTuple):
    """A proposal to add, with its outcome: a result, or the reason why there is none."""

    token: str
    suggestion: SuggestionLike
    outcome: Result | str | None


def add_missing(
    archive: Archive,
    study: str,
    agent: str,
    make_additions: Callable[[], Sequence[Addition]],
    noun: str,
) -> int:
    """Add the proposals that a study does not have, in their order, and return their number.

    Args:
        archive: The archive.
        study: Name of the study.
        agent: Id of the agent that makes them.
        make_additions: Returns the proposals. It is called again where another process has added to
            the study: proposals that name each other by number have other numbers then.
        noun: What one of them is called.

    Raises:
        UsageError: The study has no room for them.
    """
    total, additions, left = _find_missing(archive, study, make_additions)
    missing = len(left)
    while left:
        part = left[:BATCH]
        request = Request(
            study,
            agent,
            [addition.suggestion for addition in part],
            budget=None,
            unique=False,
            token="",
            outcomes=[addition.outcome for addition in part],
            after=total,
            tokens=[addition.token for addition in part],
        )
        stored = len(admit(archive.connection, request))
        if stored == len(part):
            total = total + stored
            left = left[stored:]
            continue

        # Another process added to the study, or an acknowledgement was lost.
        before = total
        total, additions, left = _find_missing(archive, study, make_additions)
        if left and total == before:
            raise UsageError(
                f"the study {study!r} has no room for {len(left)} {noun}s: raise its budget"
            )

    # A parent may have been added after its child, also by an import that was interrupted.
    if any(_has_parent(addition.suggestion) for addition in additions):
        link_missing(archive.connection, study)

    return missing


def _has_parent(suggestion: SuggestionLike) -> bool:
    properties = getattr(suggestion, "properties", None) or {}
    return "derived_from" in properties


def _find_missing(
    archive: Archive, study: str, make_additions: Callable[[], Sequence[Addition]]
) -> tuple[int, Sequence[Addition], list[Addition]]:
    """Return the number of a study's proposals, the additions, and those not among the proposals."""
    # The number comes first: what is added to the study after it is refused.
    row = archive.connection.read(
        lambda tx: tx.run(NUMBERS_OF_IMPORT, study=study).single(strict=True)
    )
    tokens = set(row["tokens"])
    additions = make_additions()
    left = [addition for addition in additions if addition.token not in tokens]
    return int(row["total"]), additions, left

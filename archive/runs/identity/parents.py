"""The run that a run is a change of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from archive.architecture.graph import Architecture
from archive.errors import UsageError
from archive.queries.runs import best_and_last
from archive.runs.run_folder import RunFolder, RunRecord, now
from archive.store.properties import proposal_id, whole_id
from archive.store.records import Proposal
from archive.values import whole_number

if TYPE_CHECKING:
    from archive.api import Archive


@dataclass(frozen=True)
class ParentRun:
    """The run that a run is a change of.

    Attributes:
        proposal: Its proposal.
        architecture: What it evaluated: a configuration or a network.
    """

    proposal: Proposal
    architecture: Architecture


def find_parent(archive: Archive, folder: RunFolder, record: RunRecord) -> ParentRun | None:
    """Return the run that a run is a change of; None where it names none, or none that exists."""
    try:
        return require_parent(archive, folder, record)
    except UsageError:
        return None


def require_parent(archive: Archive, folder: RunFolder, record: RunRecord) -> ParentRun | None:
    """Return the run that a run is a change of.

    Returns:
        None where it names none, and for `best` and `last` in a study without a result.

    Raises:
        UsageError: It names one that does not exist.
    """
    if record.parent is None:
        return None

    identifier = _parent_id(archive, folder, record.parent, record)
    if identifier is None:
        return None

    proposal = archive.proposals.get(identifier)
    return ParentRun(proposal, archive.architectures.get(proposal.architecture_key))


def _parent_id(archive: Archive, folder: RunFolder, parent: str, record: RunRecord) -> str | None:
    """Return the id of the proposal that a user names as parent; None where there is none."""
    if parent in ("best", "last"):
        # As it was when the run began: others may have ended before this one is delivered. A run that
        # is told may have begun at any time.
        moment = record.finished if record.is_told else record.started
        direction = archive.studies.get(record.study).direction
        named = best_and_last(archive.connection, record.study, direction, moment or now())
        return None if named is None else named[parent == "last"]

    number = whole_number(parent.lstrip("#"))
    if number is not None:
        return proposal_id(record.study, number)

    # The id of a run, as it is before its delivery.
    if "#" not in parent:
        earlier = RunFolder(folder.path.parent / parent).read()
        return None if earlier is None else earlier.proposal

    return whole_id(parent)

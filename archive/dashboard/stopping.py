"""The end of a study before its budget is spent.

A search in another process refills each place that a cancellation frees while the budget has room.
Therefore the budget is first lowered to the number of evaluated proposals, so that no further
proposal is added. Then waiting proposals are cancelled until none is left: an agent may have added
some just before, and a trainer may have returned one. At last the budget is raised by the number of
running proposals, because their results still count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from archive.errors import ProposalStateError, UnknownNameError
from archive.queue.proposals import Proposals
from archive.store.records import State
from archive.store.studies.studies import Studies

STOPPED = "the study was stopped"
"""Reason of the cancelled proposals."""


@dataclass(frozen=True, slots=True)
class StoppedStudy:
    """What the end of a study changed.

    Attributes:
        cancelled: Number of cancelled proposals.
        budget: The budget: the number of proposals that are evaluated or running.
    """

    cancelled: int
    budget: int


def stop(studies: Studies, proposals: Proposals, name: str) -> StoppedStudy:
    """End a study: cancel waiting proposals, and lower the budget to the number of evaluated and
    running ones.

    Its searches end when the running trials have ended; a larger budget continues it.

    Args:
        studies: The studies of the archive.
        proposals: Its queue.
        name: Name of the study.

    Raises:
        UnknownNameError: There is no study of this name.
    """
    cancelled = 0
    while True:
        # In each round, as another process may have raised it.
        studies.set_budget(name, _evaluated(studies.counts(name)))
        waiting = proposals.list(name, [State.WAITING])
        if not waiting:
            break

        cancelled += sum(_cancelled(proposals, proposal.id) for proposal in waiting)

    counts = studies.counts(name)
    budget = _evaluated(counts) + counts[State.RUNNING]
    studies.set_budget(name, budget)
    return StoppedStudy(cancelled, budget)


def _evaluated(counts: Mapping[State, int]) -> int:
    return sum(count for state, count in counts.items() if state.evaluated)


def _cancelled(proposals: Proposals, id_: str) -> bool:
    try:
        return proposals.cancel(id_, STOPPED)
    except (ProposalStateError, UnknownNameError):
        # It has ended meanwhile, or a user has deleted it.
        return False

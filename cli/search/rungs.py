"""The options --rungs and --reduction of `archive search`, and how rungs are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from archive.errors import UsageError
from archive.queue.successive_halving import REDUCTION, Rungs
from archive.store.records import Study
from archive.store.snapshots import ProposalView

if TYPE_CHECKING:
    from archive.trainer.tasks.registry import Task, TrainingProtocol
    from archive.trainer.tasks.tabular import TabularProtocol, TabularTask


def chosen_rungs(
    text: str | None, reduction: int | None, task: Task | TabularTask, protocol: TrainingProtocol | TabularProtocol
) -> dict[str, Any]:
    """Return the entries that the options add to a study's configuration: none where they were left out.

    Args:
        text: Numbers of epochs, or one number of rungs.
        reduction: One of this many trainings continues at each rung.
        task: The task of the study.
        protocol: Its training protocol, whose epochs are those of the top rung.

    Raises:
        UsageError: The rungs do not fit the protocol, or the task has no trainings to pause.
    """
    from archive.trainer.tasks.registry import TrainingProtocol

    if text is None:
        if reduction is not None:
            raise UsageError(f"--reduction needs --rungs, got --reduction {reduction} alone")
        return {}
    if not isinstance(protocol, TrainingProtocol):
        raise UsageError(f"--rungs pauses trainings, but a table answers the task {task.name!r}, got {text}")
    if protocol.inherited_epochs is not None:
        raise UsageError(
            f"--rungs needs trainings of one length, but those of {protocol.name} inherit weights, got {text}"
        )
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"--rungs takes numbers of epochs (2,6,18) or how many rungs (3), got {text!r}") from None
    factor = REDUCTION if reduction is None else reduction
    if len(numbers) == 1:
        return {"rungs": Rungs.geometric(protocol.epochs, numbers[0], factor).as_config()}
    return {"rungs": Rungs.below(protocol.epochs, numbers, factor).as_config()}


def place(study: Study, view: ProposalView) -> str | None:
    """Return a proposal's rung among those of the study, such as `2/3`; None in a study without rungs."""
    rungs = Rungs.of(study.config)
    return None if rungs is None else f"{view.rung + 1}/{len(rungs.epochs)}"

"""What the options --rungs and --reduction of `archive search` mean, and how rungs are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from archive.errors import UsageError
from archive.queue.successive_halving import REDUCTION, Rungs
from archive.store.records import Study
from archive.store.snapshots import ProposalView

if TYPE_CHECKING:
    from archive.trainer.tasks.registry import Protocol, Task
    from archive.trainer.tasks.tabular import Reading, TabularTask


def chosen_rungs(
    text: str | None, reduction: int | None, task: Task | TabularTask, protocol: Protocol | Reading
) -> dict[str, Any]:
    """Return what the options add to a study's configuration: nothing where they are not given.

    Args:
        text: Numbers of epochs, or one number of rungs.
        reduction: One of so many goes on.
        task: What is learned.
        protocol: How; its epochs are those of the top rung.

    Raises:
        UsageError: They are no rungs of the protocol's, or there is nothing that could pause.
    """
    from archive.trainer.tasks.registry import Protocol

    if text is None:
        if reduction is not None:
            raise UsageError(f"--reduction is about --rungs, which is not given, got {reduction}")
        return {}
    if not isinstance(protocol, Protocol):
        raise UsageError(f"--rungs pauses trainings, and the task {task.name!r} is answered by a table, got {text}")
    if protocol.inherited_epochs is not None:
        raise UsageError(f"--rungs needs trainings of one length, those of {protocol.name} inherit, got {text}")
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"--rungs takes numbers of epochs (2,6,18) or how many rungs (3), got {text!r}") from None
    factor = REDUCTION if reduction is None else reduction
    if len(numbers) == 1:
        return {"rungs": Rungs.geometric(protocol.epochs, numbers[0], factor).as_config()}
    return {"rungs": Rungs.below(protocol.epochs, numbers, factor).as_config()}


def place(study: Study, view: ProposalView) -> str | None:
    """Return a proposal's rung among the study's, `2/3`; None where it has none."""
    rungs = Rungs.of(study.config)
    return None if rungs is None else f"{view.rung + 1}/{len(rungs.epochs)}"

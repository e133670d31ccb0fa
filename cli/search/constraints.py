"""The constraints of a search: `--constraint 'NAME<=NUMBER'`, several times."""

from __future__ import annotations

from typing import TYPE_CHECKING

from archive.cli.search.objectives import quantities
from archive.constraints import parse
from archive.errors import UnknownNameError

if TYPE_CHECKING:
    from archive.cli.search.request import SearchOptions
    from archive.constraints import Constraint
    from archive.store.records import Study
    from archive.trainer.tasks.registry import Task
    from archive.trainer.tasks.tabular import TabularTask


def resolved(options: SearchOptions, task: Task | TabularTask, stored: Study | None) -> tuple[Constraint, ...]:
    """Return the constraints of the options; those of the study where they name none.

    Args:
        options: The options of the command line.
        task: The task of the search.
        stored: The study that the options name, where it exists with this task.

    Raises:
        UnknownNameError: The task has no such quantity.
        UsageError: A constraint is no comparison with a number.
    """
    if not options.constraints:
        return () if stored is None else stored.constraints
    constraints = tuple(map(parse, options.constraints))
    computed, measured, complete = quantities(options, task, stored)
    for each in constraints:
        if complete and each.name not in (*measured, *computed):
            known, owner = [*measured, *computed], f"the task {task.name}"
            raise UnknownNameError("quantity", each.name, known, owner=owner)
    return constraints

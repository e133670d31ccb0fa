"""What is measured for a study: its task and protocol, as scores are stored with them, and a sample
of its space.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from archive.errors import UsageError
from archive.store.protocol_names import ProtocolName
from archive.trainer.proxies.measurement import SEED, check_recipe
from archive.trainer.tasks import registry
from archive.trainer.tasks.base import Task

if TYPE_CHECKING:
    from archive.architecture.graph import Architecture
    from archive.spaces.base import Space
    from archive.store.records import Study
    from archive.trainer.protocols.base import TrainingProtocol
    from archive.trainer.tasks.file_access import FileAccess
    from archive.trainer.tasks.tabular import TabularTask


def subject_of(study: Study, access: FileAccess) -> tuple[Task, TrainingProtocol]:
    """Return the task of a study, and the protocol without what comes after the initialisation of a
    network.

    Inherited weights and objectives do.

    Raises:
        UsageError: The study is on a table, or its protocol has a recipe.
        ArchiveError: The task is not known here, or its file may not be opened or used.
    """
    task = with_inputs(registry.of_study(study, access))
    protocol = task.protocol(
        str(replace(ProtocolName.parse(study.protocol), morph=False, objective=None))
    )
    check_recipe(protocol)
    return task, protocol


def with_inputs(task: Task | TabularTask) -> Task:
    """Return a task whose networks get inputs.

    Raises:
        UsageError: A table answers it.
    """
    if not isinstance(task, Task):
        raise UsageError(
            f"the networks of the table {task.name!r} get no inputs: archive import proxies "
            "reads published scores"
        )

    return task


def sample_of(space: Space, count: int) -> list[Architecture]:
    """Return random networks of a space: everywhere the same ones, and the first ones of any larger
    count.
    """
    import numpy as np

    from archive.spaces.sampling import distinct_sample

    return distinct_sample(space, count, np.random.default_rng(SEED))

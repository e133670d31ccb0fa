"""Messages of `archive search` before it begins: how far the study is, and how its sources are used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from archive.cli.render import print_message
from archive.quantities import counted

if TYPE_CHECKING:
    from archive.agents.base import Agent, SourceStudy
    from archive.store.records import Study


def announce(study: Study, evaluations: int, warm: int) -> None:
    """Report the progress of a resumed study, and the number of observations from others."""
    if evaluations:
        verb = "has" if evaluations >= study.budget else "resumes at"
        progress = f"{evaluations} of {counted(study.budget, 'evaluation')}"
        print_message(f"study {study.name} {verb} {progress} (--budget is the total)")
    if warm:
        print_message(f"{warm} evaluations of other studies are observations: outside of the budget, not retrained")


def announce_more(study: Study, evaluations: int, budget: int | None) -> None:
    """Report that a study has more evaluations than the budget of the command."""
    print_message(
        f"study {study.name} has {counted(evaluations, 'evaluation')} already, more than the {budget} asked for: "
        f"there is nothing to do, and its budget stays {study.budget} (--budget is the total)"
    )


def announce_sources(sources: Sequence[SourceStudy], agent: Agent) -> None:
    """Report how the agent uses the source studies of other tasks."""
    from archive.agents.transfer.source_tasks import of_one_task, too_little

    for source in sources:
        what = f"{len(source.observations)} evaluations of the study {source.study} ({source.task}, {source.space})"
        if not agent.transfers:
            print_message(f"{what} are not used: the agent {agent.kind} learns from its own task alone")
        elif reason := too_little(*of_one_task(source, sources)):
            print_message(f"{what} are not used: {reason}")
        else:
            print_message(f"{what} are weighted by how well they predict this task")

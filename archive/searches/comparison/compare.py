"""A comparison from its plan to its results."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from archive.api import connect
from archive.errors import UsageError
from archive.queue.capabilities import NOISE
from archive.searches.comparison.plan import ComparisonPlan, StudyJob
from archive.searches.comparison.pool import search_unfinished
from archive.searches.comparison.regret import Trace, traces
from archive.searches.comparison.run import register
from archive.searches.comparison.standings import ContestantResult, standings

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.settings import Settings

Runner = Callable[["Settings", Sequence[StudyJob], Sequence[Trace], int], Mapping[str, str]]
"""Runs the unfinished studies, and returns the reasons of failures by study."""

AgentIds = Mapping[tuple[str, str], set[str]]
"""Ids of agents, by the label of the problem and the name of the contestant."""


class Comparison(NamedTuple):
    """Results of a comparison, and the reasons of failed searches by study."""

    results: list[ContestantResult]
    failed: Mapping[str, str]


def compare(
    settings: Settings,
    plan: ComparisonPlan,
    processes: int,
    *,
    proxies: Path | None = None,
    runner: Runner = search_unfinished,
) -> Comparison:
    """Run the unfinished searches of a plan, and return the results of all of them.

    Args:
        settings: Settings of the archive of the studies.
        plan: The comparison.
        processes: Most searches at a time.
        proxies: File of zero-cost proxies of the tasks, which are imported first.
        runner: Runs the searches.

    Raises:
        UsageError: A setting of an agent is invalid, or the run has searches of an agent with other
            settings.
        StoreError: The archive cannot be reached.
        SearchError: A process was killed.
    """
    # Settings that an agent refuses are reported before a server is started.
    agents = list(plan.agents())
    with connect(settings) as archive:
        if proxies is not None:
            _import_proxies(archive, proxies, plan)

        registered: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        for contestant, problem, agent in agents:
            registered[problem.label, contestant.name].add(register(archive, agent))

        recorded = traces(archive, plan.jobs)
        _check_same_agents(plan, recorded, registered)
        failed = runner(settings, plan.jobs, recorded, processes)
        finished = [job for job in plan.jobs if job.study.name not in failed]
        return Comparison(standings(finished, traces(archive, finished)), failed)


def _import_proxies(archive: Archive, file: Path, plan: ComparisonPlan) -> None:
    from archive.exchange.importers.proxies import ProxyTask, import_proxies

    tasks = []
    for problem in plan.problems:
        name = problem.task.partition(NOISE)[0]
        tasks.append(ProxyTask(name, problem.protocol, problem.space_config, [problem.space]))

    import_proxies(archive, file, tasks)


def _check_same_agents(
    plan: ComparisonPlan, recorded: Sequence[Trace], registered: AgentIds
) -> None:
    """Refuse to continue studies of an agent with other settings or of another release."""
    for job, trace in zip(plan.jobs, recorded, strict=True):
        if trace.agents - registered[job.problem.label, job.contestant.name]:
            raise UsageError(
                f"the run {plan.run!r} has searches of {job.contestant.name} on "
                f"{job.problem.label} with other "
                "settings or of another release: name another run with --run"
            )

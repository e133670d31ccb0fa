"""Tools about studies: their list, one study, the best networks of a study or of a task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

from pydantic import Field

from archive.api import Archive
from archive.architecture import texts
from archive.errors import UnknownNameError, UsageError
from archive.mcp import limits
from archive.mcp.arguments import ProtocolName, RowCount, StudyName
from archive.mcp.limits import QUERY_SECONDS, largest, size_of, take_first
from archive.queries.studies import BEST_NETWORKS, PROTOCOLS
from archive.queue import workers
from archive.store.records import State, Study
from archive.store.snapshots import ProposalView
from archive.store.studies.creation import agent_names

MOST_STUDIES = 200
SERVING = ("working", "idle")


@dataclass(frozen=True)
class StudyEntry:
    """A study in a list; `best` is the best value so far."""

    name: str
    task: str
    protocol: str
    space: str
    objective: str
    direction: str
    complete: int
    budget: int
    best: float | None


@dataclass(frozen=True)
class StudyEntries:
    """Studies, the newest first."""

    studies: list[StudyEntry]
    truncated: bool


@dataclass(frozen=True)
class RankedNetwork:
    """A network with one of its results.

    `text` is its NAS-Bench-201 string or genotype, if it has one; `configuration` has the values
    of named decisions and hyperparameters.
    """

    architecture: str
    text: str | None
    value: float | None
    evaluation: str
    epochs: int | None
    seconds: float | None
    configuration: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class StudyProgress:
    """A study and its progress; `trainers` is the number of trainers at work that serve it.

    `best` meets all `constraints`. `truncated` says whether `space_config` was left out, or
    sources, for their size.
    """

    name: str
    task: str
    protocol: str
    space: str
    space_config: dict[str, Any]
    objective: str
    direction: str
    budget: int
    seed: int
    agent: str | None
    waiting: int
    running: int
    complete: int
    pruned: int
    failed: int
    warm_started_from: list[str]
    trainers: int
    best: RankedNetwork | None
    constraints: list[str]
    truncated: bool = False


@dataclass(frozen=True)
class Ranking:
    """The best networks, the best first, with what their values mean."""

    task: str
    protocol: str
    direction: Literal["maximise", "minimise"]
    objective: str | None
    networks: list[RankedNetwork]
    truncated: bool


def studies(archive: Archive) -> StudyEntries:
    """List the studies of the archive, the newest first, with task, space, progress and best
    value.
    """
    newest = archive.studies.list()[::-1]
    entries = []
    for summary in newest[:MOST_STUDIES]:
        record = summary.study
        entries.append(
            StudyEntry(
                record.name,
                record.task,
                record.protocol,
                record.space,
                record.objective,
                record.direction,
                summary.counts.get(State.COMPLETE, 0),
                record.budget,
                summary.best,
            )
        )

    return largest(lambda count: StudyEntries(entries[:count], len(newest) > count), len(entries))


def study(archive: Archive, study: StudyName) -> StudyProgress:
    """Show one study: task, space with its limits, budget, proposals in each state, best network,
    trainers at work.
    """
    snapshot = archive.studies.snapshot(study)
    record = snapshot.study
    best = snapshot.incumbent
    agents = agent_names(record, (view.agent for view in snapshot.proposals))
    trainers = 0
    for worker in workers.statuses(archive.connection):
        if worker.state in SERVING and worker.trainer:
            trainers += worker.study in (None, study)

    sources = archive.studies.sources(study)
    progress = StudyProgress(
        record.name,
        record.task,
        record.protocol,
        record.space,
        dict(record.space_config),
        record.objective,
        record.direction,
        record.budget,
        record.seed,
        ", ".join(agents) or None,
        snapshot.counts[State.WAITING],
        snapshot.counts[State.RUNNING],
        snapshot.counts[State.COMPLETE],
        snapshot.counts[State.PRUNED],
        snapshot.counts[State.FAILED],
        warm_started_from=sources,
        trainers=trainers,
        best=None if best is None else _proposed(archive, [best])[0],
        constraints=[str(constraint) for constraint in record.constraints],
    )
    if size_of(progress) <= limits.MOST_BYTES:
        return progress

    # The settings of a space of choices may be as long as all the rest.
    short = replace(progress, space_config={}, truncated=True)
    return largest(
        lambda count: replace(short, warm_started_from=take_first(count, sources)[0]), len(sources)
    )


def top(
    archive: Archive,
    study: Annotated[str | None, Field(description="Name of a study; or give a task.")] = None,
    task: Annotated[
        str | None, Field(description="Name of a task, for results of all studies and imports.")
    ] = None,
    protocol: ProtocolName = None,
    k: RowCount = 10,
) -> Ranking:
    """List the best results of a study, or of a task over all studies and imported tables, the best
    first.

    Values of one protocol are comparable, others are not. For the frontier of value and cost: the
    saved query `frontier`.
    """
    if (study is None) == (task is None):
        raise UsageError("give either a study or a task")

    if task is not None:
        return _of_task(archive, task, protocol, k)

    snapshot = archive.studies.snapshot(study or "")
    return _ranking(snapshot.study, _proposed(archive, snapshot.best(k)))


def _ranking(study: Study, networks: list[RankedNetwork]) -> Ranking:
    def best(count: int) -> Ranking:
        about = (study.task, study.protocol, study.direction, study.objective)
        return Ranking(*about, networks[:count], count < len(networks))

    return largest(best, len(networks))


def _of_task(archive: Archive, task: str, protocol: str | None, k: int) -> Ranking:
    of_task = [row for row in archive.query(PROTOCOLS).rows if row[0] == task]
    if not of_task:
        known = {row[0] for row in archive.query(PROTOCOLS).rows}
        raise UnknownNameError("task", task, known, "the archive has results of none yet")

    names = sorted(row[1] for row in of_task)
    if protocol is None and len(names) > 1:
        raise UsageError(
            f"values of different protocols are not comparable: give one of {', '.join(names)}"
        )

    if protocol not in (None, *names):
        raise UnknownNameError(f"protocol of the task {task!r}", str(protocol), names)

    chosen = next(row for row in of_task if protocol in (None, row[1]))
    minimise = chosen[3] == ["minimise"] if chosen[3] else chosen[2] == "minimise"
    values = {"task": task, "protocol": chosen[1], "minimise": minimise, "k": k}
    rows = archive.query(BEST_NETWORKS, values, timeout=QUERY_SECONDS).rows
    described = _texts(archive, [row[0] for row in rows])
    networks = [RankedNetwork(key, described[key], *rest) for key, *rest in rows]
    direction: Literal["maximise", "minimise"] = "minimise" if minimise else "maximise"

    def best(count: int) -> Ranking:
        return Ranking(task, chosen[1], direction, None, networks[:count], count < len(networks))

    return largest(best, len(networks))


def _proposed(archive: Archive, views: list[ProposalView]) -> list[RankedNetwork]:
    described = _texts(archive, [view.architecture_key for view in views])
    networks = []
    for view in views:
        key = view.architecture_key
        networks.append(
            RankedNetwork(
                key,
                described[key],
                view.value,
                view.id,
                view.epochs or None,
                view.seconds,
                view.configuration,
            )
        )

    return networks


def _texts(archive: Archive, keys: list[str]) -> dict[str, str | None]:
    networks = archive.architectures.get_many(keys)
    return dict(zip(networks, map(texts.to_text, networks.values()), strict=True))

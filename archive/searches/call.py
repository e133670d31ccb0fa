"""`archive.search`: a search as one call of the library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from archive.errors import UsageError
from archive.searches.events import Listener, ignore
from archive.searches.request import SearchOptions
from archive.searches.running import RunOptions, Search
from archive.searches.trainers import LIMIT_OPTIONS

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.searches.outcome import SearchResult
    from archive.settings import Settings
    from archive.store.records import Direction


def search(
    agent: str | None = None,
    task: str | None = None,
    space: str | None = None,
    *,
    study: str | None = None,
    protocol: str | None = None,
    recipe: str | None = None,
    objectives: str | Sequence[str] = (),
    constraints: str | Sequence[str] = (),
    direction: Direction | None = None,
    budget: int | None = None,
    seed: int | None = None,
    warm_start: Sequence[str] | Literal["all"] = (),
    batch: int | None = None,
    trainers: int = 1,
    on: str = "local",
    device: str | None = None,
    stall_seconds: float | None = 1800.0,
    trial_seconds: float | None = None,
    scratch_bytes: int | None = 20_000_000_000,
    memory_bytes: int | None = None,
    observe: str | Sequence[str] = (),
    proxies: int | None = None,
    rungs: str | int | Sequence[int] | None = None,
    reduction: int | None = None,
    retrain: bool = False,
    archive: Archive | None = None,
    settings: Settings | None = None,
    progress: Listener = ignore,
    archive_command: str = "archive",
) -> SearchResult:
    """Search for architectures: an agent proposes, trainers train, the archive stores every result.

    The same call again resumes the study, and so does `study=NAME` alone. Arguments that are left
    out take the study's values. Ctrl-C ends the search when the trainers have returned their
    unfinished proposals.

    Args:
        agent: Search agent, with its settings after a colon: `tw:preset=paper`. The default is the
            study's, else `nasbot`; with several objectives `portfolio`.
        task: Task: a name, `csv:PATH#TARGET`, `npz:PATH` or `table:PATH#COLUMN`; the study's, else
            `digits`.
        space: Search space; the study's, else the task's first.
        study: Name of the study; `AGENT-SPACE-TASK` by default.
        protocol: Training protocol of the task; the study's, else the task's first.
        recipe: Recipe that trains the networks; the study's, else `default`.
        objectives: Metrics to optimise, `METRIC[:minimise|maximise]`; the study's, else the task's.
        constraints: Bounds on metrics and costs, `"params<=0.3M"`.
        direction: Direction of the only objective, where its name does not tell.
        budget: Total number of evaluations, also of earlier calls; the study's, else 20.
        seed: Random seed; the study's, else 0.
        warm_start: Studies to start warm from, or `"all"`.
        batch: Largest number of pending proposals; one for each trainer by default.
        trainers: Number of trainers to start, which end with the search. With 0, others serve the
            study.
        on: Engine that runs the trainers, with its options: `"slurm:partition=gpu"`.
        device: Device of the trainers: `"cpu"`, `"cuda:1"`; they choose by default.
        stall_seconds: A trial that has reported no progress for this long ends; None for no limit.
        trial_seconds: A trial that takes longer ends, and its proposal fails.
        scratch_bytes: A trial with larger temporary files ends, and its proposal fails.
        memory_bytes: A trial with processes of more memory ends, and its proposal fails.
        observe: Observers of the trials: `"tensorboard"`, `"mlflow:experiment=mine"`.
        proxies: Number of random networks of which the trainers measure zero-cost proxies first.
        rungs: Epochs at which trainings pause, or a number of rungs: only the best at each rung
            continue.
        reduction: At each rung, one of so many trainings continues; 3 by default.
        retrain: Whether networks are trained again that another study has evaluated.
        archive: An open archive; it stays open. By default one is opened, and closed at the end.
        settings: Settings of the archive to open; from `config.toml` and the environment by
            default.
        progress: Receives the events of `archive.searches.events` while the search runs.
        archive_command: How messages call the command line.

    Returns:
        The outcome: the best network, the gain, the Pareto set.

    Raises:
        UnknownNameError: There is no such agent, task, protocol, space, recipe, metric or study.
        UsageError: Arguments contradict each other, or a value cannot be used.
        StudyConflictError: An argument contradicts the study of this name.
        SettingsError: Data, a package or a device is missing, or trainers cannot reach the archive.
        InfeasibleError: No network of the space meets the constraints.
        SearchError: Proposals keep failing, or the trainings do not report what the search needs.
        StoreError: The database does not answer within the patience.
        KeyboardInterrupt: Ctrl-C or SIGTERM.
    """
    if archive is not None and settings is not None:
        raise UsageError("a search takes an open archive or settings, not both")

    options = SearchOptions(
        agent=agent,
        task=task,
        protocol=protocol,
        space=space,
        study=study,
        recipe=recipe,
        direction=direction,
        rungs=_rungs_text(rungs),
        reduction=reduction,
        objectives=_texts(objectives),
        constraints=_texts(constraints),
    )
    limits = (stall_seconds, trial_seconds, scratch_bytes, memory_bytes)
    run = RunOptions(
        budget=budget,
        seed=seed,
        sources=warm_start if warm_start == "all" else _texts(warm_start),
        batch=batch,
        trainers=trainers,
        engine=on,
        device=device,
        limits=dict(zip(LIMIT_OPTIONS, limits, strict=True)),
        observe=_texts(observe),
        proxies=proxies,
        retrain=retrain,
        archive_command=archive_command,
    )
    return Search(options, run, progress).result(archive, settings)


def _texts(value: str | Sequence[str]) -> tuple[str, ...]:
    """Return one text or several as a tuple."""
    return (value,) if isinstance(value, str) else tuple(value)


def _rungs_text(rungs: str | int | Sequence[int] | None) -> str | None:
    """Return rungs in the form of the option `--rungs`."""
    if rungs is None or isinstance(rungs, str):
        return rungs

    if isinstance(rungs, int):
        return str(rungs)

    return ",".join(str(epochs) for epochs in rungs)

"""Benchmark of the first command: gain of searches with real training over their initial networks,
on several seeds.

    best of the initial networks ──> best of all       a row for each seed, and the medians

Each search is a study of an archive with its own seed: after an interruption, the same run
continues. Proposals and seeds of trainings are those of `archive search` with one trainer. A trial
of that command has one thread for each core; here it has one thread, so that values may differ in
the last bits, and later proposals with them.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from archive.agents.initial_design import gain
from archive.searches.comparison.plan import Contestant, Problem, StudyJob
from archive.store.records import Result

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.store.records import Study


@dataclass(frozen=True)
class SeedGain:
    """Gain of one search.

    Attributes:
        seed: Seed of the study.
        initial: Number of initial networks that were evaluated.
        initial_best: The best value among them.
        best: The best value of all.
        gain: Difference of the two, positive where the last is better.
        found_at: Position of the best among all evaluations, from 1.
        evaluations: Number of evaluations.
        seconds: Wall-clock time of all trainings.
    """

    seed: int
    initial: int
    initial_best: float
    best: float
    gain: float
    found_at: int
    evaluations: int
    seconds: float

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return asdict(self)


@dataclass(frozen=True)
class Medians:
    """Medians over the seeds, and the number of seeds with a gain.

    Attributes:
        seeds: Number of seeds.
        better: Number of seeds with a network better than all initial ones.
        initial_best: Median of the best of the initial networks.
        best: Median of the best of all.
        gain: Median of the gains.
    """

    seeds: int
    better: int
    initial_best: float
    best: float
    gain: float

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return asdict(self)


def jobs(
    contestant: Contestant,
    study: Study,
    answer: Callable[..., Result],
    *,
    seeds: int,
    budget: int,
    run: str,
) -> list[StudyJob]:
    """Return a search for each seed.

    Args:
        contestant: The agent of all searches.
        study: Task, protocol, space, objective and direction of all searches.
        answer: Evaluation of a network, from its architecture and the study's seed as `seed`; it
            can be pickled.
        seeds: Number of seeds.
        budget: Evaluations of each search.
        run: Name of the run.
    """
    return [
        StudyJob(
            contestant,
            _problem(study, partial(answer, seed=seed)),
            seed,
            budget,
            batch=1,
            starts=0,
            run=run,
        )
        for seed in range(seeds)
    ]


def rows(archive: Archive, jobs: Sequence[StudyJob]) -> list[SeedGain]:
    """Return the gains of the searches; those without a recorded gain are left out."""
    return [row for job in jobs if (row := _row(archive, job)) is not None]


def medians(rows: Sequence[SeedGain]) -> Medians:
    """Return the medians of at least one row."""
    return Medians(
        len(rows),
        sum(row.gain > 0 for row in rows),
        *(
            statistics.median(getattr(row, name) for row in rows)
            for name in ("initial_best", "best", "gain")
        ),
    )


def _problem(study: Study, answer: Callable[..., Result]) -> Problem:
    # The best value of a trained task and the number of networks in its space are unknown, and not
    # used here.
    return Problem(
        label=study.task,
        task=study.task,
        protocol=study.protocol,
        space=study.space,
        space_config=study.space_config,
        objective=study.objective,
        direction=study.direction,
        best=math.nan,
        size=0,
        points=1.0,
        unit=study.objective,
        answer=answer,
    )


def _row(archive: Archive, job: StudyJob) -> SeedGain | None:
    snapshot = archive.studies.snapshot(job.study.name)
    own = gain(archive, snapshot)
    if own is None:
        return None

    evaluated = [view for view in snapshot.proposals if view.state.evaluated]
    return SeedGain(
        seed=job.seed,
        initial=own.initial,
        initial_best=own.initial_best,
        best=own.best,
        gain=own.gain,
        found_at=own.found_at,
        evaluations=len(evaluated),
        seconds=sum(view.seconds or 0.0 for view in evaluated),
    )

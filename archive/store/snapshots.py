"""Snapshots of a study for live views, read without the whole curves of finished trials.

`archive.store.snapshot_follower` reads snapshots of one study repeatedly, at the cost of what has
changed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from archive.constraints import violation
from archive.errors import UnknownNameError
from archive.objectives import sign
from archive.store.properties import CURVE, EPOCH, METRIC, from_json, latest, with_prefix
from archive.store.records import State, Study, is_cancelled
from archive.store.studies.configurations import complete_views, merge_values
from archive.store.studies.rows import ALL, SOME, Row, read_rows

if TYPE_CHECKING:
    from neo4j import ManagedTransaction

    from archive.database.connection import Connection

COLUMNS = (
    "proposal",
    "number",
    "settled_state",
    "architecture",
    "functional_key",
    "agent",
    "hyperparameters",
    "configuration",
    "acquisition",
    "mean",
    "std",
    "attempts",
    "rung",
    "worker",
    "reason",
    "started",
    "finished",
    "value",
    "epochs",
    "seconds",
    "metrics",
    "curve",
)
"""Columns of a view (`archive.store.studies.rows`)."""


@dataclass(frozen=True)
class ProposalView:
    """One proposal in a live view.

    Attributes:
        id: Id of the proposal.
        number: Number in the study.
        state: State of the proposal.
        architecture_key: Key of the architecture.
        functional_key: Its functional key.
        agent: Id of the agent that made it.
        acquisition: Acquisition value.
        mean: Score that the surrogate predicts, larger is better.
        std: Standard deviation of the prediction.
        epochs: Epochs trained so far; of a finished trial, the epochs of its result. None if no
            epochs are on record.
        metrics: Metrics of the result; before the first one, of the last epoch.
        latest: Metrics of the last epoch while it runs, also to a later rung; otherwise equal to
            `metrics`.
        value: Objective, once it is known.
        seconds: Wall-clock time of the training, once it is known.
        attempts: Number of attempts that workers have lost.
        rung: Index of the rung that it has reached, or is training to
            (`archive.queue.successive_halving`).
        worker: Id of the worker that holds it, or held it last.
        reason: Reason of the failure, or of the next attempt.
        started: Time of the last claim.
        finished: Time of the result or failure.
        hyperparameters: Training settings that belong to this proposal.
        configuration: Values of the space's named decisions, then the hyperparameters, by name.
    """

    id: str
    number: int
    state: State
    architecture_key: str
    functional_key: str
    agent: str | None = None
    acquisition: float | None = None
    mean: float | None = None
    std: float | None = None
    epochs: int | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    latest: Mapping[str, float] = field(default_factory=dict)
    value: float | None = None
    seconds: float | None = None
    attempts: int = 0
    rung: int = 0
    worker: str | None = None
    reason: str | None = None
    started: int | None = None
    finished: int | None = None
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)
    configuration: Mapping[str, Any] = field(default_factory=dict)

    @property
    def cancelled(self) -> bool:
        """Whether it was cancelled, rather than failed or pruned."""
        return is_cancelled(self.state, self.reason)


@dataclass(frozen=True)
class Snapshot:
    """A study with its proposals by number, their count in each state, and the incumbent.

    The incumbent is the best result that meets the study's constraints; None before the first such
    result. With several objectives, it is the best in the first objective among the results with a
    value of each.

    Attributes:
        study: The study.
        proposals: Its proposals.
        counts: Number of proposals in each state.
        incumbent: The incumbent.
        changed: Proposals that are new, or differ from the last snapshot of the same follower
            (`archive.store.snapshot_follower`); None for a snapshot by itself.
        whole: Whether all proposals were read for this snapshot.
    """

    study: Study
    proposals: tuple[ProposalView, ...]
    counts: Mapping[State, int]
    incumbent: ProposalView | None
    changed: tuple[ProposalView, ...] | None = field(default=None, compare=False, repr=False)
    whole: bool = field(default=True, compare=False, repr=False)

    @property
    def news(self) -> tuple[ProposalView, ...]:
        """The proposals that may differ from the last snapshot of the same follower.

        All proposals, for a snapshot by itself.
        """
        return self.proposals if self.changed is None else self.changed

    @property
    def open(self) -> list[ProposalView]:
        """The waiting and running proposals, by number."""
        count = self.counts[State.WAITING] + self.counts[State.RUNNING]
        latest = islice((view for view in reversed(self.proposals) if view.state.is_open), count)
        return sorted(latest, key=lambda view: view.number)

    def best(self, count: int) -> list[ProposalView]:
        """Return the best evaluated proposals, in the order of `ranked`.

        Results that do not meet the study's constraints are left out.
        """
        return ranked(self.study, _comparable(self.study, self.proposals))[:count]

    @property
    def nearest(self) -> ProposalView | None:
        """The first result with the smallest violation of the constraints; None without results."""
        best = None
        smallest = math.inf
        for view in self.proposals:
            if view.value is None:
                continue

            size = violation_of(self.study, view)
            if size < smallest:
                best = view
                smallest = size

        return best


def read_view(connection: Connection, id_: str, study: Study | None = None) -> ProposalView:
    """Return the current view of one proposal.

    Args:
        connection: Connection to the archive.
        id_: Id of the proposal.
        study: Its study, which names the values of proposals of an earlier release.

    Raises:
        UnknownNameError: There is no such proposal.
    """
    views = connection.read(lambda tx: read_views(tx, SOME, ids=[id_]))
    if not views:
        raise UnknownNameError("proposal", id_, (), "archive study show lists those of a study")

    return views[0] if study is None else complete_views(connection, study, views)[0]


def read_snapshot(connection: Connection, study: Study) -> Snapshot:
    """Read the proposals of a study in one query."""
    views = connection.read(lambda tx: read_views(tx, study=study.name))
    return snapshot_of(study, complete_views(connection, study, views))


def snapshot_within(tx: ManagedTransaction, study: Study) -> Snapshot:
    """Read the proposals of a study within a transaction."""
    return snapshot_of(study, read_views(tx, study=study.name))


def read_views(tx: ManagedTransaction, choice: str = ALL, **parameters: Any) -> list[ProposalView]:
    """Return the views of proposals by number; arguments as in `read_rows`."""
    views = map(view_of, read_rows(tx, COLUMNS, choice, **parameters))
    return sorted(views, key=lambda view: view.number)


def snapshot_of(study: Study, proposals: Iterable[ProposalView]) -> Snapshot:
    """Return the snapshot of a study with these proposals, which are sorted by number."""
    views = tuple(proposals)
    counts = Counter(view.state for view in views)
    return Snapshot(
        study, views, {state: counts[state] for state in State}, incumbent_of(study, views)
    )


_AS_READ = (
    "number",
    "agent",
    "acquisition",
    "mean",
    "std",
    "value",
    "seconds",
    "attempts",
    "worker",
    "reason",
    "started",
    "finished",
)


def view_of(values: Row) -> ProposalView:
    """Return the view of a proposal from a row of `COLUMNS`."""
    row = dict(zip(COLUMNS, values, strict=True))
    curve = with_prefix(CURVE, dict(row["curve"]))
    epochs = curve.pop(EPOCH, [])
    state = State(row["settled_state"])
    last = latest(curve)
    has_result = row["value"] is not None

    metrics = with_prefix(METRIC, dict(row["metrics"] or []))
    if last and not has_result:
        metrics = last

    newest = metrics
    if last and state is State.RUNNING:
        newest = last

    counts = []
    if row["epochs"] is not None:
        counts.append(row["epochs"])

    # A promoted trial that failed keeps the result of the rung before. Its curve is longer than
    # this result.
    ended = has_result and state.evaluated
    if epochs and not ended:
        counts.append(epochs[-1])

    hyperparameters = from_json(row["hyperparameters"])
    return ProposalView(
        **{name: row[name] for name in _AS_READ},
        id=row["proposal"],
        state=state,
        rung=row["rung"] or 0,
        hyperparameters=hyperparameters,
        configuration=merge_values(from_json(row["configuration"]), hyperparameters),
        architecture_key=row["architecture"],
        functional_key=row["functional_key"] or row["architecture"],
        epochs=max(counts, default=None),
        metrics=metrics,
        latest=newest,
    )


def incumbent_of(study: Study, views: Sequence[ProposalView]) -> ProposalView | None:
    """Return the best of these results, as `Snapshot.incumbent` is of all."""
    return min(_comparable(study, views), key=partial(_rank, study), default=None)


def ranked(study: Study, views: Iterable[ProposalView]) -> list[ProposalView]:
    """Return the results that are finite numbers, the best first.

    The order is by violation of the constraints, then whole trainings before partial ones, then
    results with a value of each objective before others, then by value in the first objective.
    """
    return sorted(_with_number(views), key=partial(_rank, study))


def _with_number(views: Iterable[ProposalView]) -> list[ProposalView]:
    numbered = []
    for view in views:
        if view.value is not None and math.isfinite(view.value):
            numbered.append(view)

    return numbered


def _rank(study: Study, view: ProposalView) -> tuple[float, bool, bool, float, int]:
    # Of equal values the earlier one comes first, because the later one is no improvement.
    score = sign(study.direction) * (view.value or 0.0)
    partial = view.state is not State.COMPLETE
    return violation_of(study, view), partial, lacks_objective(study, view), -score, view.number


def _comparable(study: Study, views: Sequence[ProposalView]) -> list[ProposalView]:
    """Return the proposals with a value that meet the constraints.

    Partial results are included only if there are no whole ones, with which they are not
    comparable.
    """
    met = []
    for view in _with_number(views):
        if not violation_of(study, view):
            met.append(view)

    return [view for view in met if view.state is State.COMPLETE] or met


def lacks_objective(study: Study, view: ProposalView) -> bool:
    """Return whether a result lacks a finite value of a further objective.

    Such a result is not in the Pareto set.
    """
    return not all(
        math.isfinite(view.metrics.get(objective.name, math.nan)) for objective in study.further
    )


def violation_of(study: Study, view: ProposalView) -> float:
    """Return the violation of the constraints by a result; 0 if it meets all constraints.

    Its definition is in `archive.constraints`.
    """
    if not study.constraints:
        # Saves time in long histories.
        return 0.0

    return violation(study.constraints, {study.objective: view.value, **view.metrics})

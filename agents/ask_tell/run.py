"""A whole search in one process, with an objective function instead of a trainer.

A result has values of the study's objectives and of its constrained quantities. A quantity with a
known cost is a function of the network: the caller need not tell it, and a told value must agree
with the function. Where the function returns NaN, the told value counts.
"""

from __future__ import annotations

import inspect
import logging
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from archive.agents import loop
from archive.agents.ask_tell.types import LeasedProposal, Told, numbers_of, real, values_of
from archive.agents.base import Agent
from archive.agents.distance_sync import DistanceSync
from archive.agents.study_setup import set_budget
from archive.architecture.graph import Architecture
from archive.constraints import KnownCosts, compute_cost
from archive.errors import ArchiveError, LeaseLostError, StoreError, UsageError, with_line
from archive.spaces.stored_spaces import member_of
from archive.store.records import State
from archive.store.studies.studies import UNBOUNDED

if TYPE_CHECKING:
    from archive.agents.ask_tell.study import AskTellStudy
    from archive.store.records import Study
    from archive.store.snapshots import Snapshot

LEASE_SECONDS = 15.0
"""Lease of a running evaluation, renewed by a thread; after a crash the proposal is soon free
again."""

QUIET_SECONDS = 2 * LEASE_SECONDS
"""Wait for proposals of other workers after which a line says so; leases of a killed `run` have
ended by then."""

MOST_NAMED = 3
"""Most proposals that the line names."""

_log = logging.getLogger(__name__)

Evaluate = Callable[[Architecture], Told]


def run(study: AskTellStudy, objective: Evaluate, budget: int | None, agent: str | Agent) -> None:
    """Evaluate an agent's proposals until the budget is spent; see `AskTellStudy.run`."""
    _set_budget(study, budget)
    look = study.archive.studies.follow(study.name)
    snapshot = look()
    limit = loop.FailureLimit(snapshot)
    idle = _IdleTime(study)
    while not _is_done(snapshot):
        limit.check(snapshot)
        asked = study.ask(agent, lease_seconds=LEASE_SECONDS)
        if asked:
            _evaluate(study, objective, asked[0])

        before = snapshot
        snapshot = look()
        if asked or snapshot.counts != before.counts:
            idle.end()
            continue

        if not snapshot.counts[State.RUNNING] + snapshot.counts[State.WAITING]:
            # No proposal, nothing running, and no change since the last snapshot: the space is
            # exhausted.
            break

        # Other workers hold the last proposals, and may lose their leases.
        idle.observe()
        time.sleep(loop.PAUSE)

    evaluations = study.evaluations()
    DistanceSync(study.archive).keep(
        {evaluation.architecture.key: evaluation.architecture for evaluation in evaluations}
    )


class _IdleTime:
    """The time in which a run waits for proposals that others hold; a long one is logged once."""

    def __init__(self, study: AskTellStudy) -> None:
        self._study = study
        self._since: float | None = None
        self._logged = False

    def end(self) -> None:
        """Begin again: there was something to do."""
        self._since = None
        self._logged = False

    def observe(self) -> None:
        """Log the proposals that are waited for, once the wait is long."""
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        if self._logged or now - self._since < QUIET_SECONDS:
            return

        self._logged = True
        leased = self._study.archive.proposals.list(self._study.name, [State.RUNNING])
        if not leased:
            return

        ids = []
        leases = []
        for proposal in leased[:MOST_NAMED]:
            ids.append(proposal.id)
            until = _clock(proposal.lease_until)
            leases.append(f"{proposal.id} of {proposal.worker} until {until}")

        _log.warning(
            "the study %r waits for %d leased proposal%s (%s%s); if a process that holds one was "
            "killed, the search "
            "continues with another network after: archive proposal cancel %s",
            self._study.name,
            len(leased),
            "" if len(leased) == 1 else "s",
            ", ".join(leases),
            ", …" if len(leased) > MOST_NAMED else "",
            " ".join(ids),
        )


def _clock(milliseconds: int | None) -> str:
    return (
        "?"
        if milliseconds is None
        else time.strftime("%H:%M:%S", time.localtime(milliseconds / 1000))
    )


def _is_done(snapshot: Snapshot) -> bool:
    return snapshot.counts[State.COMPLETE] + snapshot.counts[State.PRUNED] >= snapshot.study.budget


def _set_budget(study: AskTellStudy, budget: int | None) -> None:
    if budget is not None and budget < 1:
        raise UsageError(f"budget must be at least 1 evaluation, got {budget}")

    if budget is not None:
        set_budget(study.archive, study.name, budget)
    elif study.record.budget >= UNBOUNDED:
        raise UsageError(
            f"the study {study.name!r} has no budget: run(objective, budget=...) needs one"
        )


def _evaluate(study: AskTellStudy, objective: Evaluate, asked: LeasedProposal) -> None:
    begin = time.perf_counter()
    # After a lost lease the result is ignored: the worker that holds the proposal reports its own.
    with suppress(LeaseLostError):
        try:
            with _kept(study, asked):
                hyperparameters = asked.proposal.hyperparameters
                member = member_of(study.space.config, asked.architecture, hyperparameters)
                result = objective(member)
                check_result(study.record, result, {}, lambda: asked.architecture, study.costs)
        except Exception as error:
            code = getattr(inspect.unwrap(objective), "__code__", None)
            study.fail(asked, with_line(error, file=getattr(code, "co_filename", None)))
        except BaseException:
            with suppress(ArchiveError):
                study.archive.proposals.release(asked.id, asked.token)

            raise
        else:
            study.tell(asked, result, seconds=time.perf_counter() - begin)


@contextmanager
def _kept(study: AskTellStudy, asked: LeasedProposal) -> Iterator[None]:
    """Renew a lease while the block runs."""
    done = threading.Event()

    def renew() -> None:
        while not done.wait(LEASE_SECONDS / 3):
            try:
                study.archive.proposals.heartbeat(asked.id, asked.token, LEASE_SECONDS)
            except StoreError:
                continue
            except ArchiveError:
                return

    thread = threading.Thread(target=renew, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


TOLERANCE = 1e-6
"""Relative difference of a told value from a known cost that counts as rounding, such as to
float32."""


def check_result(
    record: Study,
    result: Told,
    metrics: Mapping[str, float],
    network: Callable[[], Architecture],
    costs: KnownCosts,
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the values of a study's objectives by name, and all metrics of the result.

    Where a told objective is not finite, there is no result: other objectives and constrained
    metrics may be missing.

    Args:
        record: The study.
        result: Values, as in `archive.agents.ask_tell.study.AskTellStudy.tell`.
        metrics: Further metrics that were told.
        network: Returns the network; called where a quantity of the study has a known cost.
        costs: Known costs.

    Raises:
        UsageError: An objective or a constrained metric has no value although the objectives told
            are finite, a value is not a number or contradicts a known cost, or a name is neither;
            or a known cost is not one number for each network.
    """
    objectives = [objective.name for objective in record.objectives]
    constrained = [constraint.name for constraint in record.constraints]
    constrained = [name for name in constrained if name not in objectives]
    known_costs = _compute_costs([*objectives, *constrained], network, costs)
    further = numbers_of(metrics)
    if isinstance(result, Mapping):
        further |= {name: real(result[name], name) for name in constrained if name in result}
        result = {name: value for name, value in result.items() if name not in constrained}

    of_objectives = {}
    for name in objectives:
        if not math.isnan(known_costs.get(name, math.nan)):
            of_objectives[name] = known_costs[name]

    values = values_of(result, record.objectives, {**of_objectives, **further})
    further |= values
    for name in constrained:
        if (
            name not in further
            and name not in known_costs
            and all(map(math.isfinite, values.values()))
        ):
            raise UsageError(
                f"a result needs a value of each constrained metric; there is none of {name}"
            )

    for name, cost in known_costs.items():
        further[name] = _agree(name, further.get(name), cost)

    return {name: further[name] for name in values}, further


def _compute_costs(
    names: Sequence[str], network: Callable[[], Architecture], costs: KnownCosts
) -> dict[str, float]:
    """Return the known costs of the network among these names."""
    computable = dict.fromkeys(name for name in names if name in costs)
    networks = [network()] if computable else []
    return {name: float(compute_cost(costs, name, networks)[0]) for name in computable}


def _agree(name: str, value: float | None, cost: float) -> float:
    """Return a known cost, which must agree with a told number.

    Where one of the two is no number, the other is returned.
    """
    if value is None:
        return cost

    if math.isnan(cost) or not math.isfinite(value):
        return value

    if not math.isclose(value, cost, rel_tol=TOLERANCE):
        raise UsageError(f"{name} is a known cost, {cost:.12g} for this network, got {value:.12g}")

    return cost

"""Initial designs: proposals before an agent's first model, and the gain of later ones.

An agent with an initial design proposes its first networks without a model, up to the number of its
setting `n_initial` (`n_design` of some). Every proposal records its agent and the history of the
call (`archive.agents.provenance`), from which follows how many networks the design had left at that
call:

    left = n_initial - evaluations known - proposals pending        the first `left` proposals of the call are initial

Failed proposals do not count, so that a design with a failure is one network longer, as
`first_of_pool` makes it. Where no evaluation is known, no model can be fitted: all proposals of the
call are initial.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from archive.agents.provenance import count_in
from archive.agents.proxies.study_scores import LEAST, N_DESIGN
from archive.queries.proposals import AGENTS, CALLS_OF_AGENTS
from archive.store.properties import from_json
from archive.store.records import State
from archive.store.snapshots import lacks_objective, violation_of

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.store.snapshots import ProposalView, Snapshot

SETTINGS = ("n_initial", "n_design")
"""Settings of agents that are the size of an initial design."""

_FIRST = 10
"""Number of proposals that tell whether a study began warm."""


@dataclass(frozen=True)
class Gain:
    """Gain of a study: the incumbent compared with the best network of the initial design.

    Attributes:
        initial: Number of initial networks that were evaluated.
        initial_best: The best value among them, in the task's own unit.
        best: The incumbent's value.
        gain: Difference of the two, positive where the incumbent is better; 0 where it is an
            initial network.
        found_at: Position of the incumbent among the study's evaluations in the order of their
            proposals, from 1.
    """

    initial: int
    initial_best: float
    best: float
    gain: float
    found_at: int


def gain(archive: Archive, snapshot: Snapshot) -> Gain | None:
    """Return the gain of a study over its initial design.

    Only evaluations of whole trainings count: values at a rung are not comparable with them.

    Args:
        archive: The archive of the study.
        snapshot: The current state of the study.

    Returns:
        None where no gain is defined: the study started warm, so that results of other studies
        replaced a part of the design; no agent of it has an initial design; or none of the initial
        networks has a value.
    """
    study = snapshot.study
    best = snapshot.incumbent
    if (
        best is None
        or best.value is None
        or best.state is not State.COMPLETE
        or _began_warm(archive, study.name)
    ):
        return None

    initial = initial_numbers(archive, snapshot)
    values: list[float] = []
    for view in _complete(snapshot):
        if view.number in initial and view.value is not None:
            values.append(view.value)

    if not values:
        return None

    sign = 1.0 if study.direction == "maximise" else -1.0
    first = sign * max(sign * value for value in values)
    evaluated = sorted(view.number for view in snapshot.proposals if view.state.evaluated)
    return Gain(
        len(values),
        first,
        best.value,
        sign * (best.value - first),
        evaluated.index(best.number) + 1,
    )


def initial_numbers(archive: Archive, snapshot: Snapshot) -> frozenset[int]:
    """Return the numbers of the proposals of an initial design, failed ones included."""
    sizes = _sizes(archive, {view.agent for view in snapshot.proposals if view.agent is not None})
    if not sizes:
        return frozenset()

    rows = _first_calls(
        archive, snapshot, max(map(max, sizes.values())) + snapshot.counts[State.FAILED]
    )
    initial: set[int] = set()
    # Additions to a study are serialised: the proposals of one call have consecutive numbers.
    for (_, agent), of_call in groupby(rows, lambda row: (row[2], row[1])):
        numbers, bases = zip(*((row[0], row[3]) for row in of_call), strict=True)
        basis = from_json(bases[0])
        known_sizes = _read_sizes(basis)
        if agent in sizes and known_sizes is not None:
            evaluated, pending = known_sizes
            left = max(sizes[agent][_with_proxies(basis)] - evaluated - pending, 0)
            initial.update(numbers[:left] if evaluated else numbers)

    return frozenset(initial)


def _began_warm(archive: Archive, study: str) -> bool:
    """Whether a study has or had sources: its first proposals read other studies."""
    if archive.studies.sources(study):
        return True

    rows = archive.query(
        CALLS_OF_AGENTS, {"study": study, "begin": 0, "end": _FIRST}, limit=_FIRST
    ).rows
    for *_, basis in rows:
        observed = (from_json(basis) or {}).get("observations")
        if isinstance(observed, Mapping) and observed.keys() - {study}:
            return True

    return False


def _first_calls(archive: Archive, snapshot: Snapshot, most: int) -> list[tuple[Any, ...]]:
    """Return the rows of the calls that may have initial proposals.

    These are the first `most`, and later ones without evaluations.
    """
    rows: list[tuple[Any, ...]] = []
    begin = 0
    end = most
    last = max((view.number for view in snapshot.proposals), default=-1)
    while begin <= last and (not rows or _without_evaluations(rows[-1][3])):
        parameters = {"study": snapshot.study.name, "begin": begin, "end": end}
        rows += archive.query(CALLS_OF_AGENTS, parameters, limit=end - begin).rows
        begin = end
        end = 2 * end

    return rows


def _without_evaluations(basis: str | None) -> bool:
    sizes = _read_sizes(from_json(basis))
    return sizes is not None and not sizes[0]


def _complete(snapshot: Snapshot) -> Iterator[ProposalView]:
    """Yield the results of whole trainings that are comparable with the incumbent, a whole one.

    They meet the constraints, and have a value of each objective if the incumbent has.
    """
    study = snapshot.study
    best = snapshot.incumbent
    lacking = best is not None and lacks_objective(study, best)
    for view in snapshot.proposals:
        if (
            view.state is State.COMPLETE
            and not violation_of(study, view)
            and lacks_objective(study, view) == lacking
        ):
            yield view


def _sizes(archive: Archive, agents: Iterable[str]) -> Mapping[str, tuple[int, int]]:
    """Return the design sizes by agent id: without and with zero-cost proxies."""
    by_agent: dict[str, tuple[int, int]] = {}
    for id_, config in archive.query(AGENTS, {"ids": sorted(agents)}).rows:
        settings: Mapping[str, Any] = from_json(config) or {}
        for size in map(settings.get, SETTINGS):
            if isinstance(size, int):
                by_agent[id_] = (size, min(size, N_DESIGN) if settings.get("proxies") else size)
                break

    return by_agent


def _with_proxies(basis: Mapping[str, Any] | None) -> bool:
    """Return whether enough proxies were known to the agent of a call."""
    return bool(((basis or {}).get("proxies") or {}).get("networks", 0) >= LEAST)


def _read_sizes(basis: Mapping[str, Any] | None) -> tuple[int, int] | None:
    """Return the numbers of evaluations and of pending proposals in the history of a call.

    None if not on record.
    """
    observed = (basis or {}).get("observations")
    pending = (basis or {}).get("pending")
    if not isinstance(observed, Mapping) or not isinstance(pending, str):
        return None

    return sum(map(count_in, observed.values())), count_in(pending)

"""Shared parts of the store's contract tests: networks, suggestions, results, unreliable
connections."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from archive.architecture import codec
from archive.architecture.graph import Architecture
from archive.database.user_query import run_query
from archive.store.records import Result, Study

OPERATIONS = ("nor_conv_3x3", "nor_conv_1x1", "skip_connect", "avg_pool_3x3", "none")

# Proposals whose property `open` contradicts their state.
STRAYS = (
    "(p:Proposal) WHERE coalesce(p.open, '') <> CASE WHEN p.state IN ['WAITING', 'RUNNING'] THEN "
    "p.study ELSE '' END"
)


@functools.cache
def cells(count: int) -> tuple[Architecture, ...]:
    """Return that many cells with different functional keys."""
    found: dict[str, Architecture] = {}
    for ops in itertools.product(OPERATIONS, repeat=6):
        a, b, c, d, e, f = ops
        cell = codec.from_nasbench201(f"|{a}~0|+|{b}~0|{c}~1|+|{d}~0|{e}~1|{f}~2|")
        found.setdefault(cell.functional_key, cell)
        if len(found) == count:
            break

    return tuple(found.values())


@dataclass(frozen=True)
class Suggestion:
    """An agent's suggestion, as the store sees it."""

    architecture: Architecture
    acquisition: float | None = None
    mean: float | None = None
    std: float | None = None
    parent: Architecture | None = None
    operations: tuple[str, ...] = ()
    hyperparameters: dict[str, Any] = field(default_factory=dict)
    priority: float = 0.0


class Repeat(Suggestion):
    """Another evaluation of a known network."""

    repeat = True


def suggest(architectures: Iterable[Architecture], **settings: Any) -> list[Suggestion]:
    return [Suggestion(architecture, **settings) for architecture in architectures]


def study(name: str = "study", **settings: Any) -> Study:
    given = {
        "task": "digits",
        "protocol": "digits/1",
        "space": "nasbench201",
        "budget": 1000,
        **settings,
    }
    return Study(name, **given)


def answer(archive, study: str, agent: str, answered, **settings: Any) -> list[str]:
    """Add suggestions together with their results or reasons, and return the ids of the
    proposals."""
    suggestions = [suggestion for suggestion, _ in answered]
    outcomes = [outcome for _, outcome in answered]
    made = archive.proposals.create(study, agent, suggestions, outcomes=outcomes, **settings)
    assert all(archive.proposals.get(one.id) == one for one in made[:2])
    return [one.id for one in made]


def propose(archive, architectures: Iterable[Architecture], name: str = "study", **settings: Any):
    """Create the study unless it exists, and propose these networks in it."""
    archive.studies.create(study(name, **settings))
    agent = archive.proposals.register_agent("random", {}, "1")
    return archive.proposals.create(name, agent, suggest(architectures))


def evaluate(archive, values: Iterable[float], name: str = "study", **settings: Any):
    """Propose one cell for each value, and complete it with that value."""
    values = list(values)
    proposals = propose(archive, cells(len(values)), name, **settings)
    for value in values:
        claim = archive.proposals.claim("trainer", study=name)
        archive.proposals.complete(claim.id, claim.token, Result(value, {"accuracy": value}))

    return proposals


def everywhere(work: Callable[[int], Any], threads: int = 8) -> list[Any]:
    """Run work(0), work(1), … at the same time, and return what they returned."""
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, range(threads)))


def count(connection, pattern: str) -> int:
    """Count the matches of a pattern."""
    ((found,),) = run_query(connection, f"MATCH {pattern} RETURN count(*) AS found").rows
    return int(found)


class Forgetful:
    """A connection that loses every acknowledgement: each work is committed, then run again."""

    def __init__(self, connection) -> None:
        self._connection = connection
        self.read = connection.read
        self.settings = connection.settings

    def write(self, work, **how):
        self._connection.write(work, **how)
        return self._connection.write(work, **how)


def known(archive):
    """Return the addresses of all weights in the archive."""
    return {uri for (uri,) in archive.query("MATCH (w:Weights) RETURN w.uri").rows}

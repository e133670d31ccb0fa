"""The contract of a search agent: the recorded history in, suggestions out.

A history holds what is finished, what is on its way and what failed. Scores are maximised; the store flips the sign
of a task whose metric is minimised, once, before an agent sees anything.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from archive.agents.recorded import Recorded, arguments
from archive.architecture.graph import Architecture
from archive.errors import UsageError
from archive.spaces.base import Space

if TYPE_CHECKING:
    from archive.kernels.gram import Gram


@dataclass(frozen=True, slots=True)
class Observation:
    """One finished evaluation.

    Attributes:
        architecture: The network that was evaluated.
        score: Its value, larger is better.
        id: The evaluation's id in the archive.
        agent: The agent that proposed it, if one did.
        hyperparameters: How it was trained where that differs from the protocol; empty for most agents' proposals.
    """

    architecture: Architecture
    score: float
    id: str
    agent: str | None = None
    hyperparameters: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Pending:
    """One proposal that waits for a trainer or is being trained; `hyperparameters` are those of an observation."""

    architecture: Architecture
    hyperparameters: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class SourceStudy:
    """What a study of another task, protocol or space found: no observations, but perhaps worth knowing.

    Attributes:
        study: Its name.
        task: What it was about.
        protocol: How that was measured.
        space: Of its networks.
        observations: Finished evaluations, larger scores better; their unit is the source's own.
    """

    study: str
    task: str
    protocol: str
    space: str
    observations: tuple[Observation, ...]


@dataclass(frozen=True)
class History:
    """Everything an agent may learn from, in the order in which it was recorded.

    Attributes:
        observations: Finished evaluations, those of warm-start sources of the same task, protocol and space included.
            A repeat of an architecture is one more observation.
        pending: Proposals without a result yet.
        failed: Architectures whose evaluation failed: nothing is learnt from them, they are not proposed again.
        sources: All other warm-start sources; agents that cannot transfer leave them alone.
    """

    observations: tuple[Observation, ...] = ()
    pending: tuple[Pending, ...] = ()
    failed: tuple[Architecture, ...] = ()
    sources: tuple[SourceStudy, ...] = ()

    @cached_property
    def usable(self) -> tuple[Observation, ...]:
        """The observations with a finite score; a NaN or an infinity counts as a failure."""
        return tuple(seen for seen in self.observations if math.isfinite(seen.score))

    @cached_property
    def known(self) -> Mapping[str, Architecture]:
        """Every architecture that must not be proposed again, by `functional_key`."""
        architectures = [
            *(seen.architecture for seen in self.observations),
            *(pending.architecture for pending in self.pending),
            *self.failed,
        ]
        return {architecture.functional_key: architecture for architecture in architectures}

    def with_pending(self, suggestions: Sequence[Suggestion]) -> History:
        """Return the history in which these suggestions are on their way."""
        if not suggestions:
            return self
        return replace(self, pending=(*self.pending, *(Pending(one.architecture) for one in suggestions)))


@dataclass(frozen=True)
class Suggestion:
    """One architecture to evaluate next, and why.

    Attributes:
        architecture: The network.
        acquisition: Value of the acquisition function, if one chose it, of what the surrogate learns: where scores are
            transformed first, it is in units of the transform.
        mean: The score that the surrogate expects, in score units: the median of its prediction.
        std: The surrogate's standard deviation of the noise-free score, in score units: half the width of the central
            68 % of its prediction. Where the surrogate learns transformed scores, both are of the prediction with the
            transform undone (`surrogates.base.Posterior.in_scores`); averaged over models or hyperparameter samples,
            the variance includes how far they differ.
        parent: The network it was made from by mutation.
        operations: What was done to the parent, in order.
        hyperparameters: How to train it, where the agent decides that.
        coupling: How far the agent takes the task to follow each source, in [-1, 1], by study; empty without sources,
            and before anything has been learnt from them.
    """

    architecture: Architecture
    acquisition: float | None = None
    mean: float | None = None
    std: float | None = None
    parent: Architecture | None = None
    operations: tuple[str, ...] = ()
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)
    coupling: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class AgentInfo:
    """What to know of an agent before choosing it; `archive agents` shows it. n is the number of observations.

    Attributes:
        summary: What it does by default; then, where it has a preset `paper`, what that is.
        paper: Where it is from.
        cost: What a proposal costs.
        when: When to choose it.
        transfers: Whether it learns from studies of other tasks, where it is given them to start warm from.
        spaces: Names of the only spaces that it searches; empty where it is bound to none.
    """

    summary: str
    paper: str = ""
    cost: str = ""
    when: str = ""
    transfers: bool = False
    spaces: tuple[str, ...] = ()


class Agent(Recorded, ABC):
    """A search method over one space.

    A subclass takes the space first, then its settings by name, each of them something that JSON has: they are
    recorded with a study, which makes the agent again from them. It keeps them as it likes.

    Args:
        space: Where to search.

    Attributes:
        kind: Name in the registry.
        info: What to know of it before choosing it; None for the first line of its docstring.
        space: As given.
    """

    kind: ClassVar[str]
    info: ClassVar[AgentInfo | None] = None

    def __init__(self, space: Space) -> None:
        """Keep the space."""
        self.space = space

    @property
    def config(self) -> dict[str, Any]:
        """What the agent was made with besides the space, JSON-able; `agents.get(kind, space, **config)` remakes it.

        Raises:
            UsageError: A setting is nothing that JSON has.
        """
        return arguments(self, f"agent {getattr(self, 'kind', type(self).__name__)}")

    @property
    def transfers(self) -> bool:
        """Whether the sources of a history change what it suggests."""
        return False

    @property
    def grams(self) -> tuple[Gram[Any], ...]:
        """Memories of distances that a loop may fill from the archive: they speed up, and change no suggestion."""
        return ()

    @abstractmethod
    def propose(self, history: History, n: int, rng: np.random.Generator) -> list[Suggestion]:
        """Return what to evaluate next.

        A pure function of its arguments: the same history and an equal generator give the same suggestions, and
        nothing but the generator's own state is changed. It may be called at any moment, with proposals pending.

        Args:
            history: All that is known; empty at the start of a study.
            n: How many architectures to suggest, at least 1.
            rng: The one source of randomness.

        Returns:
            `n` suggestions, all members of the space, no two of equal `functional_key`, none in `history.known`.
            Fewer only when the space has no more to offer: none at all says that the search is over.

        Raises:
            UsageError: `n` is less than 1.
        """


def check_count(n: int) -> None:
    """Refuse a number of suggestions that is less than 1."""
    if n < 1:
        raise UsageError(f"an agent suggests at least one architecture, got n = {n}")


def first_of_pool(space: Space, history: History, n_initial: int, n: int, rng: np.random.Generator) -> list[Suggestion]:
    """Return what is still to be suggested of a study's initial networks, at most `n`.

    The first `n_initial` evaluations of a study are initial networks: finished, pending and warm-start evaluations
    count, failed ones do not. Where the pool is larger than `n_initial`, networks at equal steps of it come first,
    since neighbours in a pool are often variants of each other; the others stand in for networks that are known.

    A pool of random networks is drawn at each call. Networks of one call are independent of those of another, so a
    study that is begun one by one, by several askers or again after an interruption has as good a design as any.
    """
    wanted = min(n_initial - len(history.usable) - len(history.pending), n)
    fresh: list[Architecture] = []
    while len(fresh) < wanted:
        pool = space.initial_pool(rng)
        steps = np.linspace(0, len(pool) - 1, min(n_initial, len(pool))).round().astype(int)
        order = [*steps, *(at for at in range(len(pool)) if at not in steps)]
        taken = {*history.known, *(architecture.functional_key for architecture in fresh)}
        new = distinct((pool[at] for at in order), taken)
        if not new:
            break
        fresh += new
    return [Suggestion(architecture) for architecture in fresh[: max(wanted, 0)]]


def distinct(architectures: Iterable[Architecture], taken: Collection[str] = ()) -> list[Architecture]:
    """Return the architectures whose functional key is neither taken nor that of an earlier one, in order."""
    found: dict[str, Architecture] = {}
    for architecture in architectures:
        if architecture.functional_key not in taken:
            found.setdefault(architecture.functional_key, architecture)
    return list(found.values())


def draw_new(make: Callable[[], Suggestion | None], n: int, taken: Iterable[str]) -> list[Suggestion]:
    """Draw until `n` suggestions are new, or the space seems exhausted.

    Args:
        make: Draws one suggestion; None is a draw that came to nothing.
        n: How many to return.
        taken: Functional keys that are not to be suggested.
    """
    seen = set(taken)
    found: list[Suggestion] = []
    # A random draw from a space of N networks of which k are left misses them all for m draws with probability
    # (1 - k/N)^m. 200 misses in a row mean that less than 5 % of the space is left, with 99.99 % certainty.
    misses = 0
    while len(found) < n and misses < 200:
        suggestion = make()
        if suggestion is None or suggestion.architecture.functional_key in seen:
            misses += 1
            continue
        misses = 0
        seen.add(suggestion.architecture.functional_key)
        found.append(suggestion)
    return found

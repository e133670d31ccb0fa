"""The contract of a search agent: a function of the recorded history that returns suggestions.

A history has finished, pending and failed evaluations. Agents maximise scores. The store negates
the values of a minimised metric, once, before agents read them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from archive.agents.constructor_arguments import Recreatable, arguments
from archive.agents.observations import Observation as Observation
from archive.agents.observations import Pending as Pending
from archive.agents.observations import SourceStudy as SourceStudy
from archive.agents.observations import is_noisy, is_score, scores_of
from archive.agents.registry import AgentInfo as AgentInfo
from archive.architecture.graph import Architecture
from archive.architecture.networks import HasArchitecture, architectures_of, functional_forms
from archive.errors import UsageError
from archive.spaces.base import Space, draw_distinct

if TYPE_CHECKING:
    from archive.agents.constraints.slacks import StudyConstraints
    from archive.agents.objectives.goals import Goals
    from archive.kernels.gram import Gram
    from archive.store.proxies import ProxyTable


Entry = TypeVar("Entry", Observation, Pending)

OF_OBSERVATIONS = ("usable", "scores", "noisy", "variances", "_evaluated")
"""Cached properties of a history that depend on its observations alone."""


@dataclass(frozen=True)
class History:
    """All data that an agent may learn from, in the order of recording.

    Attributes:
        observations: Finished evaluations, also of warm-start sources of the same task, protocol
            and space. Replicates of a network are separate observations. A result that the
            archive reused counts once.
        pending: Proposals without a result yet.
        failed: Architectures with a failed evaluation: excluded from learning and from further
            proposals.
        sources: All other warm-start sources; agents without transfer ignore them.
        goals: The objectives of a study with several; None for a study with one objective, the
            score.
        constraints: The constraints of the study; None for a study without constraints. All
            networks of the agent's space meet the constraints on known quantities; observed
            networks need not.
        proxies: Zero-cost proxies of the task's networks; None where the archive has none.
    """

    observations: tuple[Observation, ...] = ()
    pending: tuple[Pending, ...] = ()
    failed: tuple[Architecture, ...] = ()
    sources: tuple[SourceStudy, ...] = ()
    goals: Goals | None = None
    constraints: StudyConstraints | None = None
    proxies: ProxyTable | None = None

    @cached_property
    def usable(self) -> tuple[Observation, ...]:
        """The observations with a score that models can use: finite, at most `LARGEST`."""
        return tuple(
            observation for observation in self.observations if is_score(observation.score)
        )

    @cached_property
    def scores(self) -> NDArray[np.float64]:
        """The scores of the usable observations, (n,) float64; read-only."""
        scores = scores_of(self.usable)
        scores.flags.writeable = False
        return scores

    @property
    def inputs(self) -> list[Architecture]:
        """The networks of the usable observations as surrogates see them, without dead layers."""
        return functional_forms(architectures_of(self.usable))

    @property
    def met(self) -> NDArray[np.bool_]:
        """Whether each usable observation meets the constraints, (n,)."""
        if self.constraints is None:
            return np.ones(len(self.usable), np.bool_)

        return self.constraints.met(self.usable)

    @cached_property
    def noisy(self) -> bool:
        """Whether the scores have noise (`archive.agents.observations`)."""
        return is_noisy(self.usable)

    @cached_property
    def variances(self) -> NDArray[np.float64] | None:
        """The variances of the usable observations, (n,) float64; None where all are 0."""
        variances = np.array([observation.variance for observation in self.usable], np.float64)
        return variances if variances.any() else None

    @cached_property
    def known(self) -> Mapping[str, Architecture]:
        """All architectures of the history by `functional_key`.

        Only a `Suggestion.repeat` may propose one again.
        """
        others = [*architectures_of(self.pending), *self.failed]
        return {**self._evaluated, **by_key(others)}

    @property
    def observed_or_pending(self) -> list[Architecture]:
        """The networks with a usable score or a pending proposal, each once."""
        entries: tuple[Observation | Pending, ...] = (*self.usable, *self.pending)
        return list(by_key(architectures_of(entries)).values())

    def seen_from(self, space: Space) -> History:
        """Return the history as agents of a space see it (`Space.adopt`)."""
        if not space.adopts:
            return self

        return replace(
            self,
            observations=tuple(_adopted(space, self.observations)),
            pending=tuple(_adopted(space, self.pending)),
            failed=tuple(filter(None, map(space.adopt, self.failed))),
        )

    def with_pending(self, suggestions: Sequence[Suggestion]) -> History:
        """Return the history with these suggestions as pending proposals."""
        if not suggestions:
            return self

        further = [Pending(suggestion.architecture) for suggestion in suggestions]
        extended = replace(self, pending=(*self.pending, *further))
        # A pending proposal changes no observation, and a pass over a hundred thousand of them
        # takes long.
        for name in OF_OBSERVATIONS:
            if name in vars(self):
                extended.__dict__[name] = vars(self)[name]

        return extended

    @cached_property
    def _evaluated(self) -> dict[str, Architecture]:
        return by_key(architectures_of(self.observations))


@dataclass(frozen=True)
class Suggestion:
    """One architecture to evaluate next, with the prediction and the origin of the suggestion.

    Attributes:
        architecture: The network.
        acquisition: Value of the acquisition function that selected it; None where none did. With
            an outcome transform, in units of the transformed scores.
        mean: Predicted score, in score units: the median of the prediction.
        std: Predicted standard deviation of the noise-free score, in score units: half the width of
            the central 68 % of the prediction. With an outcome transform, mean and std are of
            the prediction after the inverse transform (`surrogates.base.Posterior.in_scores`). For
            a mixture of models or of hyperparameter samples, the variance includes the differences
            between its members.
        parent: The network that it is a mutation of.
        operations: Operations applied to the parent, in order.
        hyperparameters: Training hyperparameters, where the agent chooses them.
        task_correlations: Estimated correlation of the task with each source, in [-1, 1], by study;
            empty before a fit.
        repeat: Whether it is another evaluation, with another seed, of a network that has a result.
    """

    architecture: Architecture
    acquisition: float | None = None
    mean: float | None = None
    std: float | None = None
    parent: Architecture | None = None
    operations: tuple[str, ...] = ()
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)
    task_correlations: Mapping[str, float] = field(default_factory=dict)
    repeat: bool = False


class Agent(Recreatable, ABC):
    """A search method over one space.

    The constructor of a subclass takes the space first, then settings by name. Every setting is a
    JSON value: settings are recorded with a study, which reconstructs the agent from them.
    Attributes may have any names.

    Args:
        space: The search space.

    Attributes:
        kind: Name in the registry.
        info: Metadata; None for the first line of the docstring.
        several_objectives: Whether it searches for all objectives of `History.goals`; false for the
            score alone.
        uses_constraints: Whether it uses `History.constraints`. An agent that does not gets
            penalised scores (`archive.agents.constraints.slacks`).
        uses_proxies: Whether it uses `History.proxies`.
        knows_values: Whether it searches a space of parameters (`archive.spaces.parameters`): its
            model knows their values, or it has none. A distance of graphs does not.
        joint: Whether it searches parameters beside networks (`archive.spaces.joint`): its model
            knows them, or it has none.
        space: The search space.
    """

    kind: ClassVar[str]
    info: ClassVar[AgentInfo | None] = None
    several_objectives: ClassVar[bool] = False
    uses_constraints: ClassVar[bool] = False
    uses_proxies: ClassVar[bool] = False
    knows_values: ClassVar[bool] = True
    joint: ClassVar[bool] = False

    def __init__(self, space: Space) -> None:
        """Keep the space."""
        self.space = space

    @property
    def config(self) -> dict[str, Any]:
        """Settings as JSON values; `agents.get(kind, space, **config)` returns an equal agent.

        Raises:
            UsageError: A setting is no JSON value.
        """
        return arguments(self, f"agent {getattr(self, 'kind', type(self).__name__)}")

    @property
    def transfers(self) -> bool:
        """Whether the sources of a history change its suggestions."""
        return False

    @property
    def grams(self) -> tuple[Gram[Any], ...]:
        """Caches of distances that a loop may fill from the archive; no suggestion changes."""
        return ()

    @abstractmethod
    def propose(self, history: History, n: int, rng: np.random.Generator) -> list[Suggestion]:
        """Return the architectures to evaluate next.

        A pure function of its arguments: the same history and an equal generator give the same
        suggestions, and only the generator's state changes. It may be called at any time, also with
        pending proposals.

        Args:
            history: All recorded data; empty at the start of a study.
            n: Number of architectures to suggest, at least 1.
            rng: The only source of randomness.

        Returns:
            `n` suggestions, all members of the space, no two of equal `functional_key`. Their
            networks are not in `history.known`, except a `repeat`, which has a result.
            There are fewer than `n` only where the space is exhausted; an empty list ends the
            search.

        Raises:
            UsageError: `n` is less than 1.
        """


def check_count(n: int) -> None:
    """Raise an error for a number of suggestions that is below 1 or not whole."""
    if not hasattr(n, "__index__") or n < 1:
        raise UsageError(
            f"an agent suggests a whole number of architectures, at least one, got n = {n!r}"
        )


def first_of_pool(
    space: Space, history: History, n_initial: int, n: int, rng: np.random.Generator
) -> list[Suggestion]:
    """Return the next suggestions of a study's initial design, at most `n`.

    The first `n_initial` evaluations of a study are initial networks: finished, pending and
    warm-start evaluations count, failed ones do not. From a pool larger than `n_initial`, networks
    at equal steps come first, since neighbours in a pool are often variants of each other; the
    others replace networks that are already known.

    A pool of random networks is drawn at each call. Networks of different calls are independent, so
    that the design has the same quality when its networks are requested one by one, by several
    processes, or after an interruption.
    """
    count = min(n_initial - len(history.usable) - len(history.pending), n)
    fresh: list[Architecture] = []
    while len(fresh) < count:
        pool = space.initial_pool(rng)
        steps = np.linspace(0, len(pool) - 1, min(n_initial, len(pool))).round().astype(int)
        order = [*steps, *(index for index in range(len(pool)) if index not in steps)]
        taken = {*history.known, *by_key(fresh)}
        new = distinct(map(pool.__getitem__, order), taken)
        if not new:
            break

        fresh += new

    return list(map(Suggestion, fresh[: max(count, 0)]))


def distinct(
    architectures: Iterable[Architecture], taken: Collection[str] = ()
) -> list[Architecture]:
    """Return the architectures in order, without taken and repeated functional keys."""
    by_key: dict[str, Architecture] = {}
    for architecture in architectures:
        if architecture.functional_key not in taken:
            by_key.setdefault(architecture.functional_key, architecture)

    return list(by_key.values())


def _adopted(space: Space, entries: Iterable[Entry]) -> Iterator[Entry]:
    """Yield the entries whose networks a space adopts, with these networks."""
    for entry in entries:
        network = space.adopt(entry.architecture)
        if network is entry.architecture:
            yield entry
        elif network is not None:
            yield replace(entry, architecture=network)


def by_key(networks: Iterable[Architecture]) -> dict[str, Architecture]:
    """Return networks by functional key, in the order of their first appearance."""
    return {network.functional_key: network for network in networks}


def keys_of(entries: Iterable[HasArchitecture]) -> set[str]:
    """Return the functional keys of the networks of entries."""
    return set(by_key(architectures_of(entries)))


def members_among(space: Space, observations: Iterable[Observation]) -> list[Observation]:
    """Return the observations of networks in the space."""
    return [observation for observation in observations if space.contains(observation.architecture)]


def draw_new(
    make: Callable[[], Suggestion | None], n: int, taken: Iterable[str]
) -> list[Suggestion]:
    """Draw until `n` suggestions are new, or the space seems exhausted.

    Args:
        make: Draws one suggestion; None marks a draw without a result.
        n: Number of suggestions to return.
        taken: Functional keys that must not be suggested.
    """
    return draw_distinct(make, lambda suggestion: suggestion.architecture.functional_key, n, taken)

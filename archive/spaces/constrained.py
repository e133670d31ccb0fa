"""Subspace of the networks that meet constraints on known costs; no other is proposed.

| symbol | meaning                                                                        | shape |
|--------|--------------------------------------------------------------------------------|-------|
| d      | violation of a network: sum over the constraints (`archive.constraints`); the  | (m,)  |
|        | network is a member where it is 0, and none where a cost is unknown            |       |

The members may be in parts that no single modification connects: of two operations, both may have
to change. A mutation therefore is a random walk through the whole space that ends at the first
member. At each other network it starts again from the parent with probability 1/2, so that every
member can be reached and near ones are the most likely.

Members of a space that cannot be listed are found by rejection, and where they are rare by descent:
mutations of a network of the initial pool that do not increase d, until it is 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import compress
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from archive.architecture.graph import Architecture
from archive.architecture.texts import to_text
from archive.constraints import Constraint, KnownCost, compute_cost, violations
from archive.errors import InfeasibleError, InvalidArchitectureError
from archive.spaces.base import Mutation, Space
from archive.spaces.decisions import Decisions

Array = NDArray[np.float64]

REJECTIONS = 50
"""Draws of a network before a descent."""
DESCENTS = 8
STEPS = 200
NEAREST = 3
STRAY = 5
"""Descents before a space counts as without members, mutations of each, networks of the pool that
they begin at, and mutations of a member that a descent has found."""
WALK = 100
"""Most modifications of the walks of one mutation."""
RESTART = 0.5


def constrain(
    space: Space, constraints: Sequence[Constraint], costs: Mapping[str, KnownCost]
) -> Space:
    """Return the members of a space that meet the constraints on known costs.

    The space itself without any of these.
    """
    computable = [constraint for constraint in constraints if constraint.name in costs]
    return ConstrainedSpace(space, computable, costs) if computable else space


@final
class ConstrainedSpace(Space):
    """The members of a space that meet constraints.

    Its moves are the moves of the space, restricted to members.

    It is made by `constrain`, not by `spaces.get`, because costs are functions, which no
    configuration can contain.

    Args:
        space: The whole space.
        constraints: The constraints.
        costs: A function for the quantity of each constraint.

    Attributes:
        name: Name of the space.
        constraints: The constraints.
    """

    def __init__(
        self, space: Space, constraints: Sequence[Constraint], costs: Mapping[str, KnownCost]
    ) -> None:
        self.name = space.name
        self.adopts = space.adopts
        self._whole = space
        self.constraints = tuple(constraints)
        self._costs = dict(costs)

    @property
    def whole(self) -> Space:
        """See `Space.whole`."""
        return self._whole

    @property
    def config(self) -> dict[str, Any]:
        """The settings of the whole space, and the constraints."""
        return {**self.whole.config, "constraints": list(map(str, self.constraints))}

    @property
    def searchable(self) -> bool:
        """See `Space.searchable`."""
        return self.whole.searchable

    def costs(self, constraint: Constraint, architectures: Sequence[Architecture]) -> Array:
        """Return the quantity of a constraint of networks of the whole space: (m,) float64.

        NaN where it is unknown.
        """
        return compute_cost(self._costs, constraint.name, architectures)

    def violations(self, architectures: Sequence[Architecture]) -> Array:
        """Return d of networks of the whole space: (m,) float64."""
        quantities = []
        for constraint in self.constraints:
            costs = compute_cost(self._costs, constraint.name, architectures)
            quantities.append((constraint, costs))

        return violations(quantities, len(architectures))

    def named(self, architecture: Architecture) -> Mapping[str, Any]:
        """See `Space.named`."""
        return self.whole.named(architecture)

    def parameters_of(self, architecture: Architecture) -> dict[str, Any]:
        """See `Space.parameters_of`."""
        return self.whole.parameters_of(architecture)

    def of_names(self, names: Mapping[str, Any]) -> Architecture:
        """See `Space.of_names`; the network need not meet the constraints."""
        return self.whole.of_names(names)

    def fill(self, names: Mapping[str, Any]) -> Mapping[str, Any]:
        """See `Space.fill`."""
        return self.whole.fill(names)

    def adopt(self, architecture: Architecture) -> Architecture | None:
        """See `Space.adopt`."""
        return self.whole.adopt(architecture)

    def validate(self, architecture: Architecture) -> None:
        """Check that an architecture is a member.

        Raises:
            InvalidArchitectureError: It is no member of the space, or does not meet a constraint.
        """
        self.whole.validate(architecture)
        for constraint in self.constraints:
            cost = float(compute_cost(self._costs, constraint.name, [architecture])[0])
            if constraint.violation(cost):
                raise InvalidArchitectureError(
                    f"the network does not meet {constraint}: its {constraint.name} is {cost:.6g}"
                )

    def members(self) -> Sequence[Architecture] | None:
        """See `Space.members`."""
        return self._members

    def decisions(self) -> Decisions | None:
        """Return the decisions of the space; they decode to members only."""
        decisions = self.whole.decisions()
        return None if decisions is None else decisions.within(self)

    def initial_pool(self, rng: np.random.Generator | None = None) -> list[Architecture]:
        """Return as many networks as the space's pool, beginning with the members among these.

        Any other network of the pool is replaced by a sample. In a space that cannot be listed, the
        samples are a fixed list, because finding a rare network takes seconds.

        Raises:
            InfeasibleError: No network meets the constraints, or none was found.
        """
        pool = self.whole.initial_pool(rng)
        rng = np.random.default_rng(0) if rng is None else rng
        members: dict[str, Architecture] = {}
        for network, violation in zip(pool, self.violations(pool).tolist(), strict=True):
            if not violation:
                members[network.functional_key] = network

        for network in self._others(len(pool) - len(members), rng):
            if len(members) == len(pool):
                break

            members.setdefault(network.functional_key, network)

        return list(members.values())

    def _others(self, missing: int, rng: np.random.Generator) -> Iterator[Architecture]:
        """Yield members in place of missing ones of the pool."""
        if missing and self.whole.members() is None:
            yield from self._substitutes
            return

        for _ in range(2 * missing):
            yield self.sample(rng)

    def sample(self, rng: np.random.Generator) -> Architecture:
        """Return a random member.

        Raises:
            InfeasibleError: No network meets the constraints, or none was found.
        """
        for _ in range(self._rejections):
            drawn = self.whole.sample(rng)
            if not self.violations([drawn])[0]:
                return drawn

        members = self.members()
        if members is None:
            return self._descend(rng)

        if not members:
            raise self._infeasible(self.whole.members() or ())

        return members[int(rng.integers(len(members)))]

    def mutate(self, architecture: Architecture, rng: np.random.Generator) -> Mutation:
        """Return the first member on random walks from a member, with the operations of its walk.

        If no walk reaches a member, the child is a sample, with the operation `draw`.
        """
        current = architecture
        operations: tuple[str, ...] = ()
        for _ in range(WALK):
            step = self.whole.mutate(current, rng)
            if not step.operations:
                break

            operations = (*operations, *step.operations)
            returned = step.child.functional_key == architecture.functional_key
            if not returned and not self.violations([step.child])[0]:
                return Mutation(step.child, operations)

            again = returned or rng.random() < RESTART
            current, operations = (architecture, ()) if again else (step.child, operations)

        for _ in range(REJECTIONS):
            drawn = self.sample(rng)
            if drawn.functional_key != architecture.functional_key:
                return Mutation(drawn, ("draw",))

        return Mutation(architecture, ())

    def neighbours(self, architecture: Architecture) -> Iterator[Mutation]:
        """Yield those neighbours in the whole space that are members."""
        for mutation in self.whole.neighbours(architecture):
            if not self.violations([mutation.child])[0]:
                yield mutation

    @cached_property
    def _members(self) -> Sequence[Architecture] | None:
        whole = self.whole.members()
        if whole is None:
            return None

        return list(compress(whole, self.violations(whole) == 0.0))

    @cached_property
    def _rejections(self) -> int:
        """Number of random draws before the list of members or a descent is used.

        Fewer where members are rare.
        """
        rng = np.random.default_rng(0)
        drawn = [self.whole.sample(rng) for _ in range(REJECTIONS)]
        return REJECTIONS if (self.violations(drawn) == 0.0).any() else 1

    @cached_property
    def _substitutes(self) -> tuple[Architecture, ...]:
        """Members that replace other networks of the pool, for a space that cannot be listed."""
        rng = np.random.default_rng(0)
        return tuple(self.sample(rng) for _ in range(len(self.whole.initial_pool())))

    def _descend(self, rng: np.random.Generator) -> Architecture:
        """Return a member by descent from the nearest networks of the pool, then a random walk."""
        ends: list[Architecture] = []
        pool = self.whole.initial_pool(rng)
        near = [pool[index] for index in np.argsort(self.violations(pool), kind="stable")[:NEAREST]]
        for _ in range(DESCENTS):
            end, violation = self._descent(near[int(rng.integers(len(near)))], rng)
            ends.append(end)
            if not violation:
                return self._walk(end, rng)

        raise self._infeasible(ends)

    def _walk(self, start: Architecture, rng: np.random.Generator) -> Architecture:
        """Return the last member on a random walk, so that equal descents have different ends."""
        current = start
        for _ in range(STRAY):
            child = self.whole.mutate(current, rng).child
            if not self.violations([child])[0]:
                current = child

        return current

    def _descent(self, start: Architecture, rng: np.random.Generator) -> tuple[Architecture, float]:
        """Return the end of a descent, and its violation."""
        current = start
        violation = float(self.violations([start])[0])
        for _ in range(STEPS):
            if not violation:
                break

            child = self.whole.mutate(current, rng).child
            if (reached := float(self.violations([child])[0])) <= violation:
                current = child
                violation = reached

        return current, violation

    def _infeasible(self, networks: Iterable[Architecture]) -> InfeasibleError:
        """Return the error that names the constraints and the nearest networks that fail them."""
        listed = list(networks)
        texts = " and ".join(map(str, self.constraints))
        complete = self.whole.members() is not None
        message = f"no network of the space {self.name} meets {texts}"
        if not complete:
            message = f"found no network of the space {self.name} that meets {texts}"

        violations = self.violations(listed)
        if not np.isfinite(violations).any():
            return InfeasibleError(f"{message}: their costs are unknown")

        nearest = listed[int(np.argmin(violations))]
        names = dict.fromkeys(constraint.name for constraint in self.constraints)
        costs = []
        for name in names:
            cost = float(compute_cost(self._costs, name, [nearest])[0])
            costs.append(f"{name} {cost:.6g}")

        return InfeasibleError(
            f"{message}: the nearest, {_text(nearest)}, has {', '.join(costs)}", nearest.key
        )


def _text(network: Architecture) -> str:
    """Return the text of a network if it is short, else its key."""
    text = to_text(network)
    return network.key if text is None or len(text) > 80 else text

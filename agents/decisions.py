"""An architecture as a list of categorical decisions, and back: what TPE, REINFORCE and TreeBO search over.

    symbol   meaning                                                     shape
    D        decisions that a space can ask for                          scalar
    x        the position of each choice, `ABSENT` where none is made    (D,)

    space          decisions                                                                  paper
    nasbench201    the operation on each of six edges                                         NAS-Bench-201
    nasbench101    21 edges of seven vertices, then five labels                               NAS-Bench-101
    mlp, cnn       how many layers, then operation and units of each; chains only             NASBOT, appendix C.1

Whether a decision is made can depend on those before it: a network of three layers has no fourth to decide on. Several
lists may describe one network. `encode` gives one of them, the same for all relabellings.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from archive.codec import from_nasbench101, from_nasbench201, to_nasbench101, to_nasbench201
from archive.errors import InvalidArchitectureError, UsageError
from archive.graph import Architecture
from archive.operations import NASBENCH101, NASBENCH201
from archive.spaces.base import Space

ABSENT = -1

Vector = tuple[int, ...]

# NAS-Bench-201: operations, and the edges of a cell in the order of its strings.
_OPERATIONS = ("none", *NASBENCH201.of_group("cell"))
_SLOTS = ((0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3))

# NAS-Bench-101: the upper triangle of a matrix.
_VERTICES = 7
_PAIRS = tuple((u, v) for u in range(_VERTICES) for v in range(u + 1, _VERTICES))
_LABELS = NASBENCH101.of_group("cell")


@dataclass(frozen=True, slots=True)
class Decision:
    """One choice to make.

    Attributes:
        name: Its name, unique in the space.
        choices: What can be chosen.
        ordered: Whether neighbouring choices are alike.
    """

    name: str
    choices: tuple[str, ...]
    ordered: bool = False


class Decisions(ABC):
    """The decisions that make a member of a space; immutable.

    Args:
        space: The space; what it does not contain, no list decodes to.

    Attributes:
        space: As given.
        decisions: All D of them, in the order in which they are made.
        roots: How many of the first settle which of the others are made: where the tree branches. 0 where networks
            have one shape.
    """

    roots: int = 0
    decisions: tuple[Decision, ...]

    def __init__(self, space: Space) -> None:
        """Keep the space."""
        self.space = space

    @abstractmethod
    def needed(self, made: Sequence[int]) -> bool:
        """Return whether the next decision is to be made, after those that are: `len(made)` is its position."""

    @abstractmethod
    def encode(self, architecture: Architecture) -> Vector | None:
        """Return decisions that make a network of the space, None where no decisions do."""

    @abstractmethod
    def build(self, made: Vector) -> Architecture:
        """Return the network that decisions describe.

        Raises:
            InvalidArchitectureError: They describe none.
        """

    def completed(self, made: Sequence[int], rng: np.random.Generator) -> Vector:
        """Return decisions with those drawn uniformly that are needed and not made, and without those not needed."""
        whole: list[int] = []
        for decision, choice in zip(self.decisions, made, strict=True):
            if not self.needed(whole):
                whole.append(ABSENT)
            else:
                whole.append(int(rng.integers(len(decision.choices))) if choice == ABSENT else choice)
        return tuple(whole)

    def decode(self, made: Vector) -> Architecture | None:
        """Return the member that decisions make, None where they make none."""
        try:
            found = self.build(made)
        except InvalidArchitectureError:
            return None
        return found if self.space.contains(found) else None


def decisions_of(space: Space, agent: str) -> Decisions:
    """Return the decisions of a space.

    Args:
        space: The space, or a table of it.
        agent: Who asks, for the message.

    Raises:
        UsageError: The space has none.
    """
    from archive.agents.decisions_chain import CnnChain, MlpChain

    kinds: dict[str, type[Decisions]] = {
        "cnn": CnnChain,
        "mlp": MlpChain,
        "nasbench101": NasBench101Decisions,
        "nasbench201": NasBench201Decisions,
    }
    if space.name not in kinds:
        raise UsageError(f"agent {agent} needs networks made of decisions ({', '.join(kinds)}), got space {space.name}")
    return kinds[space.name](space)


def from_choices(decisions: Decisions, named: Mapping[str, object]) -> tuple[Architecture, dict[str, object]]:
    """Return the network that named choices make, and what is named beside them.

    Raises:
        UsageError: A choice is missing, is none of the decision's, or they make no network.
    """
    made: list[int] = []
    for decision in decisions.decisions:
        if not decisions.needed(made):
            made.append(ABSENT)
            continue
        if named.get(decision.name) not in decision.choices:
            known = ", ".join(decision.choices[:8]) + (", …" if len(decision.choices) > 8 else "")
            raise UsageError(f"{decision.name!r} must be one of {known}, got {named.get(decision.name)!r}")
        made.append(decision.choices.index(str(named[decision.name])))
    network = decisions.decode(tuple(made))
    if network is None:
        raise UsageError(f"the choices make no network of the space {decisions.space.name}")
    own = {decision.name for decision in decisions.decisions}
    return network, {name: value for name, value in named.items() if name not in own}


@final
class NasBench201Decisions(Decisions):
    """The operation on each edge, in the order of the table's strings."""

    decisions = tuple(Decision(f"edge {tail}-{head}", _OPERATIONS) for tail, head in _SLOTS)

    def needed(self, made: Sequence[int]) -> bool:
        """Every edge has an operation."""
        return True

    def encode(self, architecture: Architecture) -> Vector | None:
        """Return the operations of the alphabetically first string."""
        if not self.space.contains(architecture):
            return None
        text = to_nasbench201(architecture).replace("+", "")
        return tuple(_OPERATIONS.index(part.partition("~")[0]) for part in text.split("|") if part)

    def build(self, made: Vector) -> Architecture:
        """See `Decisions.build`."""
        a, b, c, d, e, f = (_OPERATIONS[at] for at in made)
        return from_nasbench201(f"|{a}~0|+|{b}~0|{c}~1|+|{d}~0|{e}~1|{f}~2|")


@final
class NasBench101Decisions(Decisions):
    """Which edges there are, then the labels of the vertices that lie on a path from input to output."""

    decisions = (
        *(Decision(f"edge {u}-{v}", ("no", "yes")) for u, v in _PAIRS),
        *(Decision(f"vertex {u}", _LABELS) for u in range(1, _VERTICES - 1)),
    )

    def needed(self, made: Sequence[int]) -> bool:
        """A vertex that is cut off has no label to decide on."""
        at = len(made) - len(_PAIRS)
        return at < 0 or at + 1 in self._used(made)

    def encode(self, architecture: Architecture) -> Vector | None:
        """Return the cell in canonical order, vertices that it lacks before the output."""
        if not self.space.contains(architecture):
            return None
        matrix, operations = to_nasbench101(architecture.canonical)
        size = len(operations)
        place = {u: u if u < size - 1 else _VERTICES - 1 for u in range(size)}
        edges = {(place[u], place[v]) for u in range(size) for v in range(size) if matrix[u][v]}
        chosen = [_LABELS.index(label) for label in operations[1:-1]]
        return (*(int(pair in edges) for pair in _PAIRS), *chosen, *[ABSENT] * (_VERTICES - size))

    def build(self, made: Vector) -> Architecture:
        """Return the cell without what is cut off."""
        used = self._used(made)
        if _VERTICES - 1 not in used:
            raise InvalidArchitectureError("no path leads from the input to the output of the cell")
        edges = self._edges(made)
        inner = [_LABELS[made[len(_PAIRS) + u - 1]] for u in used[1:-1]]
        return from_nasbench101([[int((u, v) in edges) for v in used] for u in used], ["input", *inner, "output"])

    def _edges(self, made: Sequence[int]) -> set[tuple[int, int]]:
        return {pair for pair, chosen in zip(_PAIRS, made, strict=False) if chosen}

    def _used(self, made: Sequence[int]) -> list[int]:
        """Return the vertices on a path from input to output, ascending; input and output only if there is one."""
        edges = sorted(self._edges(made))
        forward, backward = {0}, {_VERTICES - 1}
        for u, v in edges:
            if u in forward:
                forward.add(v)
        for u, v in reversed(edges):
            if v in backward:
                backward.add(u)
        return sorted(forward & backward)

"""What a distance between architectures is: prepared once for each network, then evaluated on blocks of pairs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from archive.architecture.graph import Architecture
from archive.errors import InvalidArchitectureError
from archive.kernels.covariance.base import Covariance, exponential

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Prepared(Protocol):
    """What a distance keeps of one network; `key` and `space` are the architecture's."""

    @property
    def key(self) -> str:
        """Key of the architecture."""
        ...

    @property
    def space(self) -> str:
        """Space of the architecture."""
        ...


P = TypeVar("P", bound=Prepared)


@dataclass(frozen=True, eq=False)
class Components:
    """The distances of a block of pairs, one layer for each parameter value.

    Attributes:
        unnormalised: (k, m, n) float64.
        normalised: (k', m, n) float64 in [0, 1]; k' is 0 for a distance without a normalised form.
    """

    unnormalised: Floats
    normalised: Floats

    @property
    def stack(self) -> Floats:
        """All components as (k + k', m, n), unnormalised first: what a covariance takes. Not to be written to."""
        if not len(self.normalised):
            # A matrix of a whole table has gigabytes: no copy where there is nothing to join.
            return self.unnormalised
        return np.concatenate([self.unnormalised, self.normalised])

    @classmethod
    def of_stack(cls, stack: Floats, k: int) -> Components:
        """Split a stack whose first k layers are the unnormalised ones."""
        return cls(stack[:k], stack[k:])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Return the stack, so that numpy functions take components as they are."""
        return np.asarray(self.stack, dtype=dtype)


class LowerBound(Protocol):
    """A lower bound of all components of a distance that are not normalised, from short vectors."""

    def describe(self, arrays: Mapping[str, NDArray[Any]]) -> Floats:
        """Return the sketches (n, s) of networks that `archive.kernels.search.packed` laid out."""
        ...

    def bound(self, one: Floats, sketches: Floats) -> Floats:
        """Return (n,) bounds between one sketch (s,) and others (n, s)."""
        ...


class Distance(ABC, Generic[P]):
    """A distance, or a family of them with several parameter values, between architectures of one space.

    Instances are immutable and may be shared by threads. Distances are symmetric and never negative, and a network is
    at distance 0 from itself and from its relabellings; what else holds, an implementation says in its docstring.

    Attributes:
        name: Name in the registry.
        cheap_rows: Whether the distances of one network from thousands take milliseconds: agents then rank all members
            of a space that can be listed.
    """

    name: ClassVar[str]
    cheap_rows: ClassVar[bool] = False

    @property
    @abstractmethod
    def components(self) -> tuple[str, ...]:
        """Names of the components, in the order of `Components.stack`."""

    @property
    @abstractmethod
    def unnormalised(self) -> int:
        """How many components are unnormalised; they come first."""

    @abstractmethod
    def prepare(self, architecture: Architecture) -> P:
        """Do the work that depends on one network alone; the result is immutable and can be pickled.

        Raises:
            InvalidArchitectureError: The distance is not defined on this network.
        """

    @abstractmethod
    def distances(
        self, first: Sequence[P | Architecture], second: Sequence[P | Architecture] | None = None
    ) -> Components:
        """Return the distances of all pairs.

        Args:
            first: m networks, prepared or not.
            second: n networks; None stands for `first` and halves the work.

        Returns:
            Components of shape (c, m, n); an empty set gives an empty array.

        Raises:
            InvalidArchitectureError: The networks are of different spaces.
            NumericalError: A pair has no trustworthy result.
        """

    @property
    def power(self) -> float:
        """The p at which a component d enters exp(-beta d^p), in (0, 2]."""
        return 1.0

    def default_covariance(self) -> Covariance:
        """Return the covariance that suits the distance: exp(-sum_i beta_i d_i^p), one beta for each component."""
        return exponential(len(self.components), self.power)


class PairDistance(Distance[P]):
    """A distance that is computed pair by pair, so that each pair of networks is worth remembering.

    Attributes:
        store_pairs: Whether reading a distance between networks of layers from the archive, at 20 to 40 microseconds,
            is faster than computing it again.
    """

    store_pairs: ClassVar[bool] = False

    def lower_bound(self, space: str) -> LowerBound | None:
        """Return a bound by which nearest neighbours are found without comparing with every network; None for none.

        It needs prepared networks that are dataclasses of arrays (`archive.kernels.search.packed`); where components
        are normalised, with an attribute `total`.

        Args:
            space: Name of the vocabulary of the networks.
        """
        return None

    @abstractmethod
    def pairs(self, networks: Sequence[P], pairs: Integers) -> Floats:
        """Return the components of chosen pairs.

        Args:
            networks: Prepared networks, all of one space.
            pairs: (q, 2) positions in `networks`.

        Returns:
            (c, q) float64.
        """

    def distances(
        self, first: Sequence[P | Architecture], second: Sequence[P | Architecture] | None = None
    ) -> Components:
        """Compute each pair of distinct networks once and spread the results over the block."""
        rows = [self._prepared(network) for network in first]
        columns = rows if second is None else [self._prepared(network) for network in second]
        position: dict[str, int] = {}
        networks: list[P] = []
        for network in (*rows, *columns):
            if network.key not in position:
                position[network.key] = len(networks)
                networks.append(network)
        check_one_space(networks)
        i = np.array([position[network.key] for network in rows], np.int64)
        j = np.array([position[network.key] for network in columns], np.int64)
        stack = spread(lambda pairs: self.pairs(networks, pairs), len(self.components), i, j)
        return Components.of_stack(stack, self.unnormalised)

    def _prepared(self, network: P | Architecture) -> P:
        return self.prepare(network) if isinstance(network, Architecture) else network


def check_one_space(networks: Sequence[Prepared]) -> None:
    """Refuse networks of different spaces.

    Raises:
        InvalidArchitectureError: Names two of the spaces.
    """
    spaces = sorted({network.space for network in networks})
    if len(spaces) > 1:
        raise InvalidArchitectureError(f"only networks of one space have a distance, got {spaces[0]} and {spaces[1]}")


def spread(compute: Callable[[Integers], Floats], c: int, i: Integers, j: Integers) -> Floats:
    """Fill a block from its distinct unordered pairs.

    Args:
        compute: Takes (q, 2) pairs, the smaller position first, and returns (c, q).
        c: Number of components.
        i: (m,) positions of the rows' networks.
        j: (n,) positions of the columns' networks.

    Returns:
        (c, m, n) float64, 0 where both are the same network.
    """
    stack = np.zeros((c, len(i), len(j)))
    if not stack.size:
        return stack
    low, high = np.minimum.outer(i, j), np.maximum.outer(i, j)
    rows, columns = np.nonzero(low < high)
    codes = low[rows, columns] * (high.max() + 1) + high[rows, columns]
    distinct, inverse = np.unique(codes, return_inverse=True)
    pairs = np.stack(np.divmod(distinct, high.max() + 1), axis=1)
    stack[:, rows, columns] = compute(pairs)[:, inverse]
    return stack

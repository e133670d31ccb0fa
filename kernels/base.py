"""The contract of a distance: `prepare` each network once, then evaluate blocks of pairs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
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
    """A network as a distance stores it; `key` and `space` are the architecture's."""

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
    """Distances of a block of pairs, one (m, n) matrix for each component of a distance.

    Attributes:
        unnormalised: (k, m, n) float64.
        normalised: (k', m, n) float64 in [0, 1]; k' is 0 for a distance without a normalised form.
    """

    unnormalised: Floats
    normalised: Floats

    @property
    def stack(self) -> Floats:
        """All components as (k + k', m, n), unnormalised first: the input of a covariance.

        Read-only.
        """
        if not len(self.normalised):
            # The matrix of a whole table takes gigabytes, hence no copy if all components are
            # unnormalised.
            return self.unnormalised

        return np.concatenate([self.unnormalised, self.normalised])

    @classmethod
    def of_stack(cls, stack: Floats, k: int) -> Components:
        """Split a stack; its first k components are the unnormalised ones."""
        return cls(stack[:k], stack[k:])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Return the stack, so that numpy functions accept `Components`."""
        return np.asarray(self.stack, dtype=dtype)


class LowerBound(Protocol):
    """A lower bound of all unnormalised components, computed from a short vector (a sketch)."""

    def describe(self, arrays: Mapping[str, NDArray[Any]]) -> Floats:
        """Return the sketches (n, s) of n packed networks (`archive.kernels.packing`)."""
        ...

    def bound(self, sketch: Floats, sketches: Floats) -> Floats:
        """Return the (n,) lower bounds between one sketch (s,) and n others (n, s)."""
        ...


class Distance(ABC, Generic[P]):
    """A distance between architectures of one space, or a family with several parameter values.

    Instances are immutable and may be shared by threads. Distances are symmetric and never
    negative, and a network is at distance 0 from itself and from its relabellings. The docstring of
    an implementation says which further axioms hold.

    Attributes:
        name: Name in the registry.
        cheap_rows: Whether the distances of one network from thousands take milliseconds: agents
            then rank all members of a space that can be listed.
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
        """Number of unnormalised components; they come first."""

    @abstractmethod
    def prepare(self, architecture: Architecture) -> P:
        """Compute the part that depends on one network alone.

        The result is immutable and can be pickled.

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
            second: n networks; None means `first`, at half the cost.

        Returns:
            Components of shape (c, m, n); an empty set gives an empty array.

        Raises:
            InvalidArchitectureError: The networks are of different spaces.
            NumericalError: The solver of a pair did not converge.
        """

    @property
    def power(self) -> float:
        """Exponent p of exp(-beta d^p) for a component d, in (0, 2]."""
        return 1.0

    def default_covariance(self) -> Covariance:
        """Return the default covariance exp(-sum_i beta_i d_i^p), one beta for each component."""
        return exponential(len(self.components), self.power)


class PairDistance(Distance[P]):
    """A distance that is computed pair by pair, so that caching pairs saves time.

    Attributes:
        store_pairs: Whether reading a distance between networks of layers from the archive, at 20
            to 40 microseconds, is faster than computing it again.
    """

    store_pairs: ClassVar[bool] = False

    def lower_bound(self, space: str) -> LowerBound | None:
        """Return the lower bound that prunes a nearest-neighbour search, or None.

        It requires prepared networks that are dataclasses of arrays
        (`archive.kernels.packing`), with an attribute `total` where components are
        normalised.

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
        """Compute each pair of distinct networks once and write it wherever it occurs in the block."""
        rows = list(map(self._as_prepared, first))
        columns = rows if second is None else list(map(self._as_prepared, second))
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

    def _as_prepared(self, network: P | Architecture) -> P:
        return self.prepare(network) if isinstance(network, Architecture) else network


def check_one_space(networks: Sequence[Prepared]) -> None:
    """Raise an error for networks of different spaces.

    Raises:
        InvalidArchitectureError: The networks are of two spaces or more; the message names two.
    """
    spaces = sorted({network.space for network in networks})
    if len(spaces) > 1:
        raise InvalidArchitectureError(
            f"only networks of one space have a distance, got {spaces[0]} and {spaces[1]}"
        )


def spread(compute: Callable[[Integers], Floats], c: int, i: Integers, j: Integers) -> Floats:
    """Return a block of distances, each distinct unordered pair computed once.

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

    low = np.minimum.outer(i, j)
    high = np.maximum.outer(i, j)
    rows, columns = np.nonzero(low < high)
    codes = low[rows, columns] * (high.max() + 1) + high[rows, columns]
    distinct, inverse = np.unique(codes, return_inverse=True)
    pairs = np.stack(np.divmod(distinct, high.max() + 1), axis=1)
    stack[:, rows, columns] = compute(pairs)[:, inverse]
    return stack


def solve_on_threads(
    solve: Callable[[Integers], Floats], pairs: Integers, threads: int, least: int
) -> Floats:
    """Return the distances of pairs, which do not depend on the number of threads.

    Args:
        solve: Returns the (k, p) distances of (p, 2) pairs; a compiled function that releases the
            interpreter's lock.
        pairs: (q, 2) positions of networks.
        threads: Number of threads, at least 1.
        least: Number of pairs below which a second thread costs more than it saves.

    Returns:
        (k, q) float64.
    """
    if threads == 1 or len(pairs) < 2 * least:
        return solve(pairs)

    # More parts than threads: pairs of large networks take long and may be adjacent.
    parts = np.array_split(pairs, min(4 * threads, len(pairs) // least))
    with ThreadPoolExecutor(threads) as pool:
        return np.concatenate(list(pool.map(solve, parts)), axis=1)

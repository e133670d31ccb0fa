"""Tree-Wasserstein distance: optimal transport between n-grams and degrees in closed form.

Nguyen, Le, Yamada, Osborne: Optimal Transport Kernels for Sequential and Parallel Neural
Architecture Search (2021), section 2 and appendix F.

| symbol  | meaning                                                                              |
|---------|--------------------------------------------------------------------------------------|
| omega   | measure of one network: shares of its n-grams (3), or of its degrees by place (4)    |
| w_e     | length of an edge e of the tree of n-grams, or of the line of places                 |
| Gamma_e | the nodes below e                                                                    |
| alpha   | weights of the components, >= 0 and of sum 1                                         |
| lambda  | alpha / sigma_l^2 (25), the hyperparameters of a covariance exp(-sum_i lambda_i W_i) |

    W(omega, nu) = sum over e of  w_e |omega(Gamma_e) - nu(Gamma_e)|      (2)
    d_NN         = sum over i of  alpha_i W_i                             (5)

By (2), W is the L1 distance of the vectors (w_e omega(Gamma_e))_e, so that a block of pairs costs
subtractions only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from archive.architecture.graph import Architecture
from archive.architecture.layer_mass import layer_masses
from archive.architecture.operations import vocabulary
from archive.errors import InvalidArchitectureError, UsageError
from archive.kernels.base import Components
from archive.kernels.distances.tree_wasserstein.measures import (
    Gram,
    cumulate,
    degrees,
    gram_path,
    ngrams,
    settings,
    widths,
)
from archive.kernels.distances.tree_wasserstein.operation_trees import (
    ENDS,
    OperationTree,
    default_tree,
)
from archive.kernels.features.embedding import Comparison, Embedded, FeatureDistance, features_of
from archive.values import check_flag

if TYPE_CHECKING:
    from archive.kernels.features.l1_blocks import BlockPart, Steps

Floats = NDArray[np.float64]

LONGEST = 8
ON_A_LINE = ("indegree", "outdegree", "units")
"""Parts that are measures on a line rather than vectors."""
PATHS = 100_000
"""Capacity of the cache of n-grams' paths to the root."""


@final
class TreeWasserstein(FeatureDistance):
    """Wasserstein distances of n-grams of operations on a tree, and of degrees on a line.

    Components: for each n the Wasserstein distance of the shares of n-grams on the tree of
    operations; the Wasserstein distances on a line of indegrees and of outdegrees, each layer at
    its relative depth. Each is a pseudo-metric (proposition 1): networks of equal n-grams and
    degrees are at distance 0. Each is negative definite, so that exp(-sum_i beta_i W_i) is a
    covariance for all beta_i >= 0; the beta_i are the paper's alpha_i / sigma_l^2.

    Preparing costs O(edges * distinct n-grams); a pair costs O(nodes of the tree in use), some
    nanoseconds. Choose it where many pairs are needed, for cells without units, or where a
    surrogate needs a true covariance.

    Input, output and decision layers belong to every network and are in no default tree, so that
    they enter the degrees only. Every other layer counts once, whatever its units: shares carry no
    information about size. For `cnn` and `mlp`, where networks differ mainly in size, `sizes` adds
    two components of the same kind: the Wasserstein distance of the distributions of log2(units)
    over layers, and the difference of log2(1 + mass), mass as in `archive.architecture.layer_mass`
    without the ends. A network without n-grams has its mass at the root of the tree.

    Where a vocabulary names settings of layers, such as the heads of a decoder's mixers, each
    operation of the tree has a line of octaves for each of them, and the component of the shortest
    n-grams has their Wasserstein distances as well.

    Args:
        n: Length of the n-grams, 1 to 8, or several: one component each. 1 is the paper's TW, 2 its
            TW-2G.
        tree: The operation tree as JSON, see
            `archive.kernels.distances.tree_wasserstein.operation_trees`; None for the space's.
            Operations in the tree count: it must contain all processing operations, and may contain
            ends and decisions.
        weights: alpha, one a component, >= 0 and of sum 1: the one component is then d_NN. None
            keeps them apart.
        sizes: Whether to add the components of size.
        functional: Whether to remove layers on no path from input to output first. The paper keeps
            them; on NAS-Bench-201, where they are frequent, removing them ranks unseen cells far
            better.

    Raises:
        UsageError: An argument is out of range, or the tree is not a tree.
    """

    name: ClassVar[str] = "tree-wasserstein"

    def __init__(
        self,
        n: int | Iterable[int] = (1, 2),
        tree: Mapping[str, Any] | Sequence[Sequence[Any]] | None = None,
        weights: Iterable[float] | None = None,
        sizes: bool = False,
        functional: bool = False,
    ) -> None:
        self.n = (n,) if isinstance(n, int) else tuple(n)
        whole = all(isinstance(length, int) and 1 <= length <= LONGEST for length in self.n)
        if not self.n or not whole or len(set(self.n)) < len(self.n):
            raise UsageError(
                f"n must be one or more different lengths from 1 to {LONGEST}, got {n!r}"
            )

        self.tree = None if tree is None else OperationTree(tree)
        self.sizes = check_flag("sizes", sizes)
        self.functional = check_flag("functional", functional)
        self.weights = None if weights is None else self._check_weights(weights)
        if self.weights is not None and abs(sum(self.weights) - 1) > 1e-9:
            raise UsageError(
                f"weights must sum to 1, got {self.weights} of sum {sum(self.weights):g}"
            )

        self._paths: dict[tuple[OperationTree, Gram], tuple[tuple[str, float], ...]] = {}

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of the distances that `weights` combines."""
        size = ("units", "mass") if self.sizes else ()
        return (*(f"{n}gram" for n in self.n), "indegree", "outdegree", *size)

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Return `line` for measures of degrees and units, `l1` for the other parts."""
        return tuple(map(_comparison, self.parts))

    @property
    def part_weights(self) -> tuple[float, ...] | None:
        """Return alpha."""
        return self.weights

    @property
    def components(self) -> tuple[str, ...]:
        """Return `tree_wasserstein:PART` for each part; with weights `tree_wasserstein` alone."""
        if self.weights is not None:
            return ("tree_wasserstein",)

        return tuple(f"tree_wasserstein:{part}" for part in self.parts)

    @property
    def unnormalised(self) -> int:
        """Return the number of components; the paper normalises none."""
        return len(self.components)

    def prepare(self, architecture: Architecture) -> Embedded:
        """Return the measures: n-grams as w_e omega(Gamma_e) by node, the others as mass by place."""
        tree = self.tree or default_tree(architecture.space)
        operations = tree.operations(vocabulary(architecture.space))
        network = architecture.functional if self.functional else architecture
        grams = [self._embed_ngrams(network, n, tree, operations) for n in self.n]
        grams[self.n.index(min(self.n))] |= settings(network, operations)
        size = (widths(network), _mass(network)) if self.sizes else ()
        return Embedded(architecture.key, architecture.space, (*grams, *degrees(network), *size))

    def distances(
        self,
        first: Sequence[Embedded | Architecture],
        second: Sequence[Embedded | Architecture] | None = None,
    ) -> Components:
        """Subtract distinct embeddings, on all processors."""
        if self.weights is not None:
            return Components.of_stack(self.combine(first, second, self.weights)[None], 1)

        rows, columns = self._sides(first, second)
        stack = np.zeros((len(self.parts), len(rows), len(rows if columns is None else columns)))
        for part, block in enumerate(stack):
            self._fill(block, [(1.0, part)], rows, columns)

        return Components.of_stack(stack, len(stack))

    def combine(
        self,
        first: Sequence[Embedded | Architecture],
        second: Sequence[Embedded | Architecture] | None = None,
        weights: Iterable[float] | None = None,
    ) -> Floats:
        """Return a weighted sum of the parts, without memory for the parts themselves.

        Args:
            first: m networks, prepared or not.
            second: n networks; None means `first`, at half the cost.
            weights: One for each part, finite and >= 0, of any sum; None for the distance's own, or
                equal ones of sum 1.

        Returns:
            (m, n) float64.

        Raises:
            UsageError: The weights are out of range, or not one for each part.
            InvalidArchitectureError: The networks are of different spaces.
        """
        rows, columns = self._sides(first, second)
        requested = self.weights if weights is None else self._check_weights(weights)
        weights_of_parts = requested or (1 / len(self.parts),) * len(self.parts)
        out = np.zeros((len(rows), len(rows if columns is None else columns)))
        weighted = [(weight, part) for part, weight in enumerate(weights_of_parts) if weight]
        self._fill(out, weighted, rows, columns)
        return out

    def _check_weights(self, weights: Iterable[float]) -> tuple[float, ...]:
        try:
            checked = tuple(map(float, weights))
        except (TypeError, ValueError):
            raise UsageError(
                f"weights must be numbers, one each for {', '.join(self.parts)}, got {weights!r}"
            ) from None

        if len(checked) != len(self.parts) or not all(0 <= weight < math.inf for weight in checked):
            raise UsageError(
                "weights must be finite and >= 0, one each for "
                f"{', '.join(self.parts)}, got {checked}"
            )

        return checked

    def _embed_ngrams(
        self, architecture: Architecture, n: int, tree: OperationTree, operations: frozenset[str]
    ) -> dict[str, float]:
        counts = ngrams(architecture, n, operations)
        total = sum(counts.values())
        below: dict[tuple[str, float], int] = {}
        for gram, count in counts.items():
            for edge in self._path(gram, tree):
                below[edge] = below.get(edge, 0) + count

        # Counts are integers up to this point: the order of the layers changes no bit.
        features = {}
        for (name, weight), edge_count in sorted(below.items()):
            if weight:
                features[name] = weight * (edge_count / total)

        return features

    def _path(self, gram: Gram, tree: OperationTree) -> tuple[tuple[str, float], ...]:
        path = self._paths.get((tree, gram))
        if path is None:
            if len(self._paths) > PATHS:
                self._paths.clear()

            path = self._paths[tree, gram] = tuple(gram_path(gram, tree))

        return path

    def _fill(
        self,
        out: Floats,
        weighted: Sequence[tuple[float, int]],
        rows: Sequence[Embedded],
        columns: Sequence[Embedded] | None,
    ) -> None:
        from archive.kernels.features import l1_blocks

        if out.size:
            parts = [(weight, self._part(part, rows, columns)) for weight, part in weighted]
            l1_blocks.fill(out, parts, symmetric=columns is None)

    def _part(
        self, part: int, rows: Sequence[Embedded], columns: Sequence[Embedded] | None
    ) -> BlockPart:
        from archive.kernels.features import l1_blocks

        first = features_of(rows, part)
        second = None if columns is None else features_of(columns, part)
        if self.comparisons[part] == "line":
            return l1_blocks.steps(
                _cumulate_once(first), None if second is None else _cumulate_once(second)
            )

        return l1_blocks.vectors(first, second)


def _comparison(part: str) -> Comparison:
    return "line" if part in ON_A_LINE else "l1"


def _cumulate_once(measures: Sequence[Mapping[str, float]]) -> list[Steps]:
    """Return the distribution functions; thousands of cells share a few measures."""
    cache: dict[tuple[tuple[str, float], ...], Steps] = {}
    functions = []
    for measure in measures:
        key = tuple(measure.items())
        if key not in cache:
            cache[key] = cumulate(measure)

        functions.append(cache[key])

    return functions


def _mass(architecture: Architecture) -> dict[str, float]:
    words = vocabulary(architecture.space)
    masses = zip(architecture.layers, layer_masses(architecture), strict=True)
    # The exact sum: rounding must not depend on the order of the layers.
    total = math.fsum(mass for layer, mass in masses if words[layer.op].group not in ENDS)
    if not math.isfinite(total):
        raise InvalidArchitectureError(f"the mass of the layers must be finite, got {total}")

    return {"log2": math.log2(1 + total)} if total else {}

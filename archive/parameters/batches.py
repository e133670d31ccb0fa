"""Many configurations at a time, as codes: drawn, snapped, masked and checked without loops.

| symbol | meaning                                                              | shape   |
|--------|----------------------------------------------------------------------|---------|
| x      | codes of m configurations, NaN where a parameter does not exist      | (m, D)  |
| delta  | whether each parameter exists                                        | (m, D)  |
| met    | whether each configuration meets the constraints                     | (m,)    |

An expression is evaluated once for each different row of the codes that it reads: conditions read
few parameters with few values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archive.parameters.domains import Choice, Constant, Domain
from archive.parameters.expressions import Expression
from archive.parameters.parameter_space import ParameterSpace
from archive.parameters.ranges import Integer, Real

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]

STEP = 0.2
"""Default standard deviation of a number's step, as a share of its scale."""

_ROUNDS = 20
"""Rounds of draws until enough configurations meet the constraints."""


class CodeBatches:
    """Codes of configurations of one space. Immutable.

    Args:
        space: The space.

    Attributes:
        space: The space.
        nominal: (D,) whether a parameter is a choice without an order.
        movable: (D,) whether a parameter has more than one value.
    """

    def __init__(self, space: ParameterSpace) -> None:
        """Number the columns."""
        self.space = space
        self.nominal = np.array(space.option_counts) > 0
        sizes = [parameter.domain.size for parameter in space.parameters]
        self.movable = np.array(sizes) > 1
        self._columns = {name: column for column, name in enumerate(space.names)}
        # Values that a grid has: conditions and constraints compare values, not codes.
        self._domains = [parameter.domain for parameter in space.parameters]

    def sample(self, m: int, rng: np.random.Generator) -> Floats:
        """Return m random configurations, as `ParameterSpace.sample` draws them.

        Args:
            m: Number of configurations.
            rng: Source of the random numbers.

        Returns:
            (m, D) float64.
        """
        return self._until_met(m, lambda count: self.mask(self._draw(count, rng)), rng)

    def vary(self, codes: Floats, rng: np.random.Generator, *, scale: float = STEP) -> Floats:
        """Return a variation of each configuration in one to three of its parameters.

        Numbers move by a normal step, options are drawn again, and parameters that begin to exist
        are drawn. A variation that does not meet the constraints is replaced by the configuration
        itself.

        Args:
            codes: (m, D) configurations.
            rng: Source of the random numbers.
            scale: Standard deviation of a step, as a share of the scale.

        Returns:
            (m, D) float64.
        """
        m = len(codes)
        drawn = self._draw(m, rng)
        steps = codes + scale * rng.standard_normal(codes.shape)
        # At a bound, a step turns back: a step beyond it would end on the bound itself.
        reflected = np.abs(np.mod(steps + 1.0, 2.0) - 1.0)
        moved = np.where(self.nominal, drawn, reflected)
        present = ~np.isnan(codes) & self.movable
        luck = np.where(present, rng.random(codes.shape), np.inf)
        count = rng.integers(1, 4, size=(m, 1))
        rank = np.argsort(np.argsort(luck, axis=1), axis=1)
        selected = present & (rank < count)
        mixed = np.where(selected, moved, np.where(np.isnan(codes), drawn, codes))
        varied = self.mask(self._snap(mixed))
        return np.where(self.met(varied)[:, None], varied, codes)

    def place(self, points: Floats) -> Floats:
        """Return the configurations of points of the unit cube, whether they are allowed or not.

        Equal volumes belong to all options of a choice, and to all numbers of a grid.

        Args:
            points: (m, D) float64 in [0, 1].
        """
        return self.mask(self._place(points))

    def settle(self, codes: Floats) -> Floats:
        """Return the configurations nearest to codes, whether they are allowed or not.

        Args:
            codes: (m, D) codes of all parameters, whether they exist or not.
        """
        return self.mask(self._snap(codes))

    def every(self) -> Floats:
        """Return every configuration once: (M, D) float64; all domains must be finite."""
        axes = []
        for domain in self._domains:
            axes.append(np.unique([domain.encode(value) for value in domain.values()]))

        grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
        masked = self.mask(grid)
        kept = np.unique(np.nan_to_num(masked, nan=-1.0), axis=0, return_index=True)[1]
        different = masked[np.sort(kept)]
        return different[self.met(different)]

    def mask(self, codes: Floats) -> Floats:
        """Return codes with NaN for the parameters that do not exist.

        Args:
            codes: (m, D) codes of all parameters, whether they exist or not.
        """
        masked = np.array(codes)
        for column, parameter in enumerate(self.space.parameters):
            for condition in parameter.conditions:
                holds = self._evaluate(condition, masked, condition.holds)
                masked[~holds, column] = np.nan

        return masked

    def met(self, codes: Floats) -> Booleans:
        """Return whether each of (m, D) masked configurations meets the constraints: (m,)."""
        met = np.ones(len(codes), np.bool_)
        for constraint in self.space.constraints:
            met &= ~self._evaluate(constraint, codes, constraint.forbids)

        return met

    def configurations(self, codes: Floats) -> list[dict[str, Any]]:
        """Return the configurations of (m, D) codes."""
        return list(map(self.space.decode, codes))

    def _until_met(self, m: int, draw: Callable[[int], Floats], rng: np.random.Generator) -> Floats:
        """Draw until m configurations meet the constraints.

        Where few draws do, the rest is drawn one by one (`ParameterSpace.sample`).
        """
        parts: list[Floats] = []
        missing = m
        for _ in range(_ROUNDS):
            if not missing:
                break

            drawn = draw(2 * missing if self.space.constraints else missing)
            kept = drawn[self.met(drawn)][:missing]
            parts.append(kept)
            missing -= len(kept)

        if missing:
            singles = [self.space.sample(rng) for _ in range(missing)]
            parts.append(self.space.encode(singles))

        return np.concatenate(parts) if parts else np.empty((0, len(self.space)))

    def _draw(self, m: int, rng: np.random.Generator) -> Floats:
        """Return uniform codes of all parameters, on their grids: (m, D)."""
        return self._place(rng.random((m, len(self.space))))

    def _place(self, points: Floats) -> Floats:
        """Return the codes of points of the unit cube, on their grids: (m, D)."""
        codes = np.minimum(points, 1.0 - 1e-12)
        for column, domain in enumerate(self._domains):
            if self.nominal[column]:
                codes[:, column] = np.floor(codes[:, column] * domain.size)
            elif _is_grid(domain):
                # Each value of a grid is as likely, those at the bounds too.
                codes[:, column] = np.floor(codes[:, column] * domain.size) * _grid_step(domain)

        return self._snap(codes)

    def _snap(self, codes: Floats) -> Floats:
        """Return the codes of the values nearest to codes."""
        snapped = np.array(codes)
        for column, domain in enumerate(self._domains):
            if isinstance(domain, Constant):
                snapped[:, column] = 0.0
            elif isinstance(domain, Integer) and domain.log:
                snapped[:, column] = _snap_log_integers(domain, codes[:, column])
            elif isinstance(domain, Integer | Real) and _is_grid(domain):
                snapped[:, column] = _snap_to_grid(domain, codes[:, column])
            elif isinstance(domain, Choice):
                last = len(domain.options) - 1
                scale = 1 if self.nominal[column] else max(1, last)
                snapped[:, column] = np.clip(np.rint(codes[:, column] * scale), 0, last) / scale

        return snapped

    def _evaluate(
        self, expression: Expression, codes: Floats, test: Callable[[dict[str, Any]], bool]
    ) -> Booleans:
        """Return the truth of an expression for each row of codes: (m,)."""
        columns = [self._columns[name] for name in expression.names]
        # NaN differs from itself: it must not make a row of its own.
        read = np.nan_to_num(codes[:, columns], nan=-1.0)
        if len(columns) == 1:
            # Numbers are sorted faster than rows.
            single, position = np.unique(read, return_inverse=True)
            rows = single[:, None]
        else:
            rows, position = np.unique(read, axis=0, return_inverse=True)

        truths = np.empty(len(rows), np.bool_)
        for number, row in enumerate(rows.tolist()):
            truths[number] = test(self._values(expression.names, columns, row))

        return truths[position.reshape(-1)]

    def _values(
        self, names: Sequence[str], columns: Sequence[int], row: Sequence[float]
    ) -> dict[str, Any]:
        values = {}
        for name, column, code in zip(names, columns, row, strict=True):
            if code >= 0.0:
                values[name] = self._domains[column].decode(code)

        return values


def _is_grid(domain: Domain) -> bool:
    """Return whether values have equal distances on the scale of the codes."""
    if isinstance(domain, Real):
        return domain.step is not None

    return isinstance(domain, Choice) or (isinstance(domain, Integer) and not domain.log)


def _grid_step(domain: Domain) -> float:
    """Return the distance of the codes of neighbouring values."""
    if isinstance(domain, Integer | Real) and domain.step is not None:
        width = domain.high - domain.low
        return domain.step / width if width else 1.0

    return 1.0 / max(1, int(domain.size) - 1)


def _snap_to_grid(domain: Integer | Real, codes: Floats) -> Floats:
    """Return the codes of the numbers of a grid that are nearest to codes."""
    width = float(domain.high) - float(domain.low)
    step = domain.step
    if not width or step is None:
        return np.zeros_like(codes)

    steps = np.clip(np.rint((codes * width) / step), 0, int(domain.size) - 1)
    return np.asarray(steps * step / width)


def _snap_log_integers(domain: Integer, codes: Floats) -> Floats:
    """Return the codes of the whole numbers nearest to codes, on a logarithmic scale."""
    low = float(domain.low)
    high = float(domain.high)
    if low == high:
        return np.zeros_like(codes)

    span = np.log(high) - np.log(low)
    values = np.rint(np.exp(np.log(low) + codes * span))
    return np.asarray((np.log(np.clip(values, low, high)) - np.log(low)) / span)

"""Histories as codes of configurations."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from archive.agents.base import History
from archive.agents.surrogates.base import Array
from archive.architecture.graph import Architecture
from archive.errors import InvalidArchitectureError
from archive.spaces.parameters import Parameters

_DIGITS = 9
"""Digits of a code that tell configurations apart."""

_KEPT = 20_000
"""Most configurations whose codes are kept."""


@dataclass(frozen=True)
class CodedHistory:
    """The configurations of a history, as codes.

    Attributes:
        codes: (n, D) float64 of the usable observations.
        scores: (n,) float64.
        pending: (k, D) float64 of the pending proposals.
        taken: Keys (`row_keys`) of all known configurations.
        noisy: Whether scores have noise.
    """

    codes: Array
    scores: Array
    pending: Array
    taken: frozenset[bytes]
    noisy: bool


class Coder:
    """Codes of networks of one space, kept from call to call.

    Args:
        space: The space.
    """

    def __init__(self, space: Parameters) -> None:
        """Start without codes."""
        self.space = space
        self._codes: dict[str, Array | None] = {}

    def read(self, history: History) -> CodedHistory:
        """Return a history as codes; networks outside the space are left out."""
        codes = []
        scores = []
        for observation in history.usable:
            row = self.encode(observation.architecture)
            if row is not None:
                codes.append(row)
                scores.append(observation.score)

        rows = self._rows(history.known.values())
        return CodedHistory(
            self._stack(codes),
            np.array(scores, np.float64),
            self._stack(self._rows(entry.architecture for entry in history.pending)),
            frozenset(row_keys(self._stack(rows))),
            history.noisy,
        )

    def encode(self, architecture: Architecture) -> Array | None:
        """Return the codes of a network, (D,) float64; None outside the space."""
        key = architecture.functional_key
        if key not in self._codes:
            if len(self._codes) >= _KEPT:
                self._codes.clear()

            self._codes[key] = self._encode(architecture)

        return self._codes[key]

    def _encode(self, architecture: Architecture) -> Array | None:
        try:
            values = self.space.named(architecture)
        except InvalidArchitectureError:
            return None

        parameters = self.space.parameters
        codes = np.full(len(parameters), np.nan)
        for column, parameter in enumerate(parameters.parameters):
            if parameter.name in values:
                codes[column] = parameter.domain.encode(values[parameter.name])

        return codes

    def _rows(self, networks: Iterable[Architecture]) -> list[Array]:
        rows = []
        for network in networks:
            row = self.encode(network)
            if row is not None:
                rows.append(row)

        return rows

    def _stack(self, rows: list[Array]) -> Array:
        width = len(self.space.parameters)
        return np.array(rows, np.float64).reshape(len(rows), width)


def row_keys(codes: Array) -> list[bytes]:
    """Return a key for each of (m, D) codes; equal for equal configurations."""
    # Adding 0 makes -0 the same as 0.
    rounded = np.round(np.nan_to_num(codes, nan=-1.0), _DIGITS) + 0.0
    return [row.tobytes() for row in np.ascontiguousarray(rounded)]

"""Estimates of a study's noise-free scores, kept on disk until a result of the study changes.

    archive search ── model fitted, estimates written ──> HOME/cache/estimates ── read ──> archive
    study best

A file has the digest of all inputs of the fit. Estimates of other inputs count as missing, and the
next ones replace
them: there is one file for each study and objective.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from archive import cache
from archive.agents.observations import Observation
from archive.architecture.operations import vocabulary
from archive.spaces.base import Space

KIND = "estimates"
"""Folder of the files, below the cache's."""


class Estimates(NamedTuple):
    """Estimates of the noise-free scores of m networks.

    Attributes:
        means: (m,) float64.
        stds: (m,) float64, standard deviations.
        noise: Standard deviation of an evaluation's noise.
    """

    means: NDArray[np.float64]
    stds: NDArray[np.float64]
    noise: float


@dataclass(frozen=True)
class EstimatesFile:
    """The file of a study's estimates for one objective.

    Attributes:
        home: Folder of the archive.
        study: Name of the study.
        objective: Name of the objective.
    """

    home: Path
    study: str
    objective: str

    def read(self, inputs: str) -> Estimates | None:
        """Return the estimates of these inputs (`digest`).

        None if the file has none, or has estimates of other inputs.
        """
        arrays = cache.read(KIND, self._identity, self.home)
        if arrays is None or arrays["inputs"].tobytes() != inputs.encode():
            return None

        return Estimates(arrays["means"], arrays["stds"], float(arrays["noise"]))

    def write(self, inputs: str, estimates: Estimates) -> None:
        """Replace the file, if the disk permits it."""
        arrays = {
            "inputs": np.frombuffer(inputs.encode(), np.uint8),
            "means": estimates.means,
            "stds": estimates.stds,
            "noise": np.float64(estimates.noise),
        }
        cache.write(
            KIND,
            self._identity,
            {name: np.asarray(array) for name, array in arrays.items()},
            self.home,
        )

    @property
    def _identity(self) -> str:
        return json.dumps([self.study, self.objective])


def digest(space: Space, observations: Sequence[Observation], ranked: Sequence[int]) -> str | None:
    """Return a digest of the inputs of a fit; None for a space of another package.

    The code of another package may change.

    Args:
        space: The space of the networks.
        observations: Evaluations without hyperparameters.
        ranked: Positions of the networks to estimate.
    """
    if not type(space).__module__.startswith("archive."):
        return None

    settings = json.dumps(
        [space.name, space.config, vocabulary(space.name).digest], sort_keys=True, default=str
    )
    hashed = blake2b(settings.encode(), digest_size=16)
    for observation in observations:
        hashed.update(f"{observation.architecture.key} {observation.score!r}\n".encode())

    hashed.update(np.asarray(ranked, np.int64).tobytes())
    return hashed.hexdigest()

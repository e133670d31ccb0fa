"""SMAC3 as an agent.

`smac` proposes what the facade of SMAC3 for hyperparameters does: a random forest over all
parameters, expected improvement of log costs, a local search from the best known and the best of
many random configurations, and a random configuration in a fifth of the cases. SMAC3 is an extra:
`pip install nas-archive[smac]`.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, final

import numpy as np

from archive.agents.base import Agent, AgentInfo, History, Suggestion, check_count
from archive.agents.baselines.random_search import samples
from archive.agents.encodings import decisions_of
from archive.architecture.graph import Architecture
from archive.errors import SettingsError, UsageError
from archive.spaces.base import Space
from archive.spaces.parameters import Parameters
from archive.values import require_at_least

if TYPE_CHECKING:
    from archive.agents.baselines.configspace_translation import NativeSpace


@final
class Smac(Agent):
    """SMAC3's optimiser, told the whole history at every call.

    Parameters, conditions and constraints are those of ConfigSpace where it has such
    (`configspace_translation`); a decision of another space is a categorical hyperparameter.
    Configurations that are known or not allowed are skipped. A batch has the next best
    configurations of one model, as of SMAC3.

    Args:
        space: The search space: parameters, cells, or `mlp` and `cnn`, of which it finds chains
            only.
        startup: Evaluations before the first use of the model; before that, configurations are
            points of a scrambled Sobol sequence.
        trees: Number of trees of the forest.
        challengers: Random configurations, of which the ten best begin a local search.
        random: Probability of a random configuration in place of the next best one.

    Raises:
        UsageError: A setting is out of range, or the space is not made of decisions.
        SettingsError: SMAC3 is not installed.
    """

    kind = "smac"
    info = AgentInfo(
        summary="SMAC3: random forest, expected improvement of log costs, local search",
        paper="Lindauer et al., 2022 (SMAC3)",
        cost="a second at 100 observations",
        when="comparison with an installable package; conditional parameters",
    )

    def __init__(
        self,
        space: Space,
        startup: int = 10,
        trees: int = 10,
        challengers: int = 10000,
        random: float = 0.2,
    ) -> None:
        """Check and keep the settings, and translate the space."""
        super().__init__(space)
        require_at_least(1, startup=startup, trees=trees, challengers=challengers)
        if not 0.0 <= random <= 1.0:
            raise UsageError(f"random must be a probability from 0 to 1, got {random}")

        self.startup = startup
        self.trees = trees
        self.challengers = challengers
        self.random = random
        self._native = self._translate()

    def _translate(self) -> NativeSpace:
        space = self.space
        if isinstance(space, Parameters):
            with _quiet():
                _import_smac()
                from archive.agents.baselines.configspace_translation import NativeParameters

                return NativeParameters(space)

        decisions = decisions_of(space, self.kind)
        with _quiet():
            _import_smac()
            from archive.agents.baselines.configspace_translation import NativeDecisions

            return NativeDecisions(decisions)

    def propose(self, history: History, n: int, rng: np.random.Generator) -> list[Suggestion]:
        """See `Agent.propose`."""
        check_count(n)
        seed = int(rng.integers(2**31))
        networks: dict[str, Architecture] = {}
        if len(self._native.configspace):
            with _quiet():
                networks = self._draw(history, n, seed)

        taken = {*history.known, *networks}
        suggestions = [Suggestion(architecture) for architecture in networks.values()]
        return [*suggestions, *samples(self.space, n - len(networks), taken, rng)]

    def _draw(self, history: History, n: int, seed: int) -> dict[str, Architecture]:
        """Return at most n new networks of the design and of the model, by functional key."""
        from archive.agents.baselines.smac_components import vector_of

        self._native.configspace.seed(seed)
        observed = []
        for observation in history.usable:
            configuration = self._native.encode_network(observation.architecture)
            if configuration is not None:
                observed.append((configuration, float(observation.score)))

        pending = []
        for proposal in history.pending:
            configuration = self._native.encode_network(proposal.architecture)
            if configuration is not None:
                pending.append(configuration)

        excluded = [*(configuration for configuration, _ in observed), *pending]
        # A number that was rounded on its way is no other configuration.
        taken = set(map(vector_of, excluded))
        networks: dict[str, Architecture] = {}
        for configuration in self._configurations(observed, pending, n, seed):
            key = vector_of(configuration)
            if key in taken:
                continue

            taken.add(key)
            network = self._native.decode_network(configuration)
            if network is not None and network.functional_key not in history.known:
                networks.setdefault(network.functional_key, network)

            if len(networks) == n:
                break

        return networks

    def _configurations(
        self, observed: list[tuple[Any, float]], pending: list[Any], n: int, seed: int
    ) -> Iterator[Any]:
        """Yield configurations: the rest of the design, then the model's."""
        from archive.agents.baselines.smac_components import SmacSettings, draw_design, search

        left = self.startup - len(observed) - len(pending)
        if not observed:
            left = n

        if left > 0:
            yield from draw_design(self._native, min(left, n), seed)

        if observed:
            settings = SmacSettings(self.trees, self.challengers, self.random)
            yield from search(self._native, observed, pending, settings, seed)


def _import_smac() -> None:
    try:
        import ConfigSpace  # noqa: F401
        import smac  # noqa: F401
    except ImportError:
        raise SettingsError("agent smac needs SMAC3: pip install 'nas-archive[smac]'") from None


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the log and the warnings of SMAC3, and keep its forest in this thread."""
    from joblib import parallel_config

    logger = logging.getLogger("smac")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), parallel_config(backend="sequential"):
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(before)

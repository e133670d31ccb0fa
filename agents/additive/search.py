"""The agent `block-additive`."""

from __future__ import annotations

from typing import final

from archive import kernels
from archive.agents.acquisition.candidate_generators import MutatedCandidates
from archive.agents.additive.candidates import AdditiveCandidates
from archive.agents.additive.learning import HistoryEffects
from archive.agents.additive.opening import Opening
from archive.agents.additive.surrogate import AdditiveResidual, DecisionDistances
from archive.agents.additive.vectors import VectorSpace
from archive.agents.base import AgentInfo
from archive.agents.bayesopt.gaussian_process import ranking
from archive.agents.bayesopt.gp_presets import PRESETS
from archive.agents.bayesopt.model_based import Method, ModelBased
from archive.agents.bayesopt.portfolio_members import WIDE, process_of
from archive.agents.surrogates.distance_cache import CachedDistances
from archive.agents.surrogates.gp.distance import DistanceGP
from archive.architecture.parameter_operations import PARAMETERS
from archive.kernels.covariance.base import exponential
from archive.spaces.base import Space
from archive.values import require_at_least

DECISIONS = "decisions"
"""Name of the distance that counts different decisions."""


@final
class BlockAdditive(ModelBased):
    """Sums of what single replacements bring, solved exactly under constraints on known costs.

    A score is predicted as the parent's, plus the effect of each replacement, plus a Gaussian
    process of what the sum misses. Candidates are the members of the best sums, found by an integer
    program (`archive.agents.additive`), further replacements of the parent, and mutations.

    Args:
        space: The search space; its networks are made of decisions.
        n_initial: Number of networks of the pool that come first; none with a `parent` or a source.
        replacements: Number of networks with one replacement that follow.
        parent: Key of the network whose decisions are replaced, or its beginning; None for the
            network with the most neighbours by one decision, and at first the best one.
        top: Number of members of the best sums among the candidates.
        kernel: Distance of the residual's process; `decisions` counts different decisions; None for
            `weisfeiler-lehman`, of parameters `decisions`.
        acquisition: `ei`, `ucb`, `pi` or `its`.

    Raises:
        UnknownNameError: There is no such kernel or acquisition.
        UsageError: A setting is out of range, or the space is not made of decisions.
    """

    kind = "block-additive"
    info = AgentInfo(
        summary="sums of the effects of single replacements, an exact solver, and a Gaussian "
        "process of what the sum misses",
        paper="after Bercovich et al., 2024 (Puzzle)",
        cost="O(n^3), and an integer program for each of the best sums",
        when="networks of many blocks, of which single replacements are scored",
        transfers=True,
    )

    knows_values = True

    def __init__(
        self,
        space: Space,
        n_initial: int = 10,
        replacements: int = 20,
        parent: str | None = None,
        top: int = 20,
        kernel: str | None = None,
        acquisition: str = "ei",
    ) -> None:
        require_at_least(0, replacements=replacements)
        require_at_least(1, top=top)
        vectors = VectorSpace(space, self.kind)
        effects = HistoryEffects(vectors, parent)
        preset = PRESETS["default"]
        ranked_by, rule = ranking(acquisition, preset.kappa, preset.batch_rule)
        method = Method(
            AdditiveResidual(vectors, _residual(space, vectors, kernel)),
            ranked_by,
            AdditiveCandidates(effects, top, MutatedCandidates(space)),
            rule,
            transfer=Opening(effects, n_initial, replacements),
            repeats=preset.repeats,
        )
        super().__init__(space, n_initial, method)


def _residual(space: Space, vectors: VectorSpace, kernel: str | None) -> DistanceGP:
    """Return the process of the residuals."""
    if kernel is None:
        kernel = DECISIONS if space.name == PARAMETERS.name else "weisfeiler-lehman"

    if kernel == DECISIONS:
        return process_of(DecisionDistances(vectors), exponential(1), WIDE, "standardise")

    distance = kernels.get(kernel)
    covariance = distance.default_covariance()
    return process_of(CachedDistances([distance]), covariance, WIDE, "standardise")

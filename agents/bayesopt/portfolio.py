"""Portfolio: Gaussian processes on several kernels, stacked by leave-one-out density.

The best distance of a task is unknown before a search, but twenty evaluations already carry
information about it. The ensemble has several models, on different distances or on different
combinations of them (`portfolio_members`), weighted by the predictive density of every evaluation
given all others (`surrogates.stacking`). The agent maximises the logarithm of the mixture's
expected improvement.

Scores are mapped to log-regret (`surrogates.outcome_transforms`), so that resolution is highest
near the incumbent. Several transforms may be given; each model is then fitted once per transform.
Transforms that leave scores above the incumbent unchanged can be mixed, as their expected
improvements have one unit.

With noise (`archive.agents.observations`) log-regret takes the luckiest score for the best possible one,
and its slope, hence the noise that a model of one noise variance is fitted to, depends on the
distance from that score. The transform is then `compress-below-median`, which is linear above the
median. On CIFAR-10 of NAS-Bench-201 with noise of 0.5 points, the true regret of the recommendation
after 100 evaluations was 0.08 +- 0.03 points instead of 0.19 +- 0.03 (12 seeds), and after 50
evaluations 0.24 +- 0.11 instead of 0.21 +- 0.04. From the first replicate on, the models have a
nugget (`archive.agents.surrogates.gp.nugget`).

Under constraints the incumbent is the best result that meets them. Log-regret is then relative to its
score, above which it is linear, although results that do not meet the constraints may have better
ones. Each of several objectives has the log-regret of its best score.

The initial design minimises the variance over the space (`bayesopt.variance_reduction`), without
the space's pool.

After `patience` evaluations without improvement, one proposal maximises the posterior mean.
Expected improvement may leave that network out for long: near the best score the model is certain,
and unknown regions promise more as long as there are any. Of twenty searches on CIFAR-100 of
NAS-Bench-201, three stayed at the second best cell for 25 evaluations or more, although the best
cell had the highest expectation; with patience none did for more than 16. De Ath, Everson, Rahat
and Fieldsend (Greed is good, 2021) report that a share of greedy proposals also helps other
acquisitions.

Where zero-cost proxies of the task's networks are known, they add members and choose a smaller
initial design (`archive.agents.proxies.knowledge`). With published proxies, sixty searches of
NAS-Bench-201 found the best cell after a median of 13 queries on CIFAR-10 and 8 on CIFAR-100,
instead of 22 and 21 without.

Beyond a thousand networks the ensemble gives way to boosted trees of all evaluations
(`surrogates.many`), unless it ranks held-out networks clearly better. Source studies and proxies
are then no longer used.

On the space `parameters`, models of codes replace the models of graphs
(`archive.agents.configurations`): several objectives are combined with random weights, and results
that violate a constraint have penalised scores. Proxies are not used there.

With parameters beside the networks, each member's covariance is extended to pairs
(`archive.agents.joint`). Source studies and proxies are not used there either.

The default members, transforms and patience were chosen on NAS-Bench-201: results on it are biased
in favour of the portfolio.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, final

import numpy as np

from archive.agents.acquisition import batch, candidate_generators
from archive.agents.acquisition.functions import UpperConfidenceBound
from archive.agents.base import Agent, AgentInfo, History, Suggestion, check_count
from archive.agents.bayesopt.bananas import encoding
from archive.agents.bayesopt.gaussian_process import ranking
from archive.agents.bayesopt.model_based import Method, ModelBased
from archive.agents.bayesopt.portfolio_members import defaults, is_cheap, member_model
from archive.agents.bayesopt.variance_reduction import space_design
from archive.agents.configurations.search import (
    EXACT_TRANSFORM,
    NOISY_TRANSFORM,
    ConfigurationSearch,
    SearchSettings,
)
from archive.agents.constraints.feasibility import TRANSFORM as SLACK_TRANSFORM
from archive.agents.constructor_arguments import record
from archive.agents.joint.search import JointSearch, JointSettings
from archive.agents.observations import has_replicates
from archive.agents.proxies.knowledge import ProxyFeatures, ProxyKnowledge
from archive.agents.proxies.study_scores import N_DESIGN
from archive.agents.surrogates.many.features import SparseFeatures
from archive.agents.surrogates.many.prefix import Prefixes
from archive.agents.surrogates.many.surrogate import ManyEvaluations
from archive.agents.surrogates.outcome_transforms import LogRegret, OutcomeTransform
from archive.agents.surrogates.stacking import Member, StackedGP
from archive.agents.transfer.coordinator import Transfer, rule
from archive.spaces.base import Space
from archive.spaces.joint import JointSpace, joint_space_of
from archive.spaces.parameters import Parameters
from archive.values import require_at_least

TRANSFORMS = ("log-regret",)
NOISY_TRANSFORMS = ("compress-below-median",)
"""Default transforms without and with noise."""

EXPECTATION = UpperConfidenceBound(0.0)


class Policies(NamedTuple):
    """Two ways to propose with one model: by the acquisition, and by the posterior mean."""

    exploring: ModelBased
    greedy: ModelBased


@final
class Portfolio(Agent):
    """Bayesian optimisation by a stacked ensemble of Gaussian processes on different distances.

    Args:
        space: The search space.
        members: Names, or one name, of `archive.agents.bayesopt.portfolio_members`; None for the
            space's defaults.
        n_design: Number of evaluations before the first of the ensemble; observations of any origin
            count.
        prior: Pseudo-observations of each member in the Dirichlet prior of the weights.
        acquisition: `ei`, `pi`, `ucb`, `its` or `ts`.
        kappa: Weight of the uncertainty in UCB.
        transforms: Names, or one name, of `archive.agents.surrogates.outcome_transforms`; each
            member is fitted with each. None for `log-regret` alone or, with noise,
            `compress-below-median`.
        candidates: A name of `archive.agents.acquisition.candidate_generators`.
        batch_rule: A name of `archive.agents.acquisition.batch`.
        patience: Number of consecutive evaluations without improvement, by any agent, of which the
            last maximises the posterior mean instead of the acquisition; its recorded `acquisition`
            is None. 0 disables this. Not used for several objectives.
        proxies: Whether zero-cost proxies are used where some of the task are known.
        sources: When warm-start sources of other tasks take part
            (`archive.agents.transfer.coordinator`): `evidence`, while they predict the study's own
            evaluations; `trusted`, from the first proposal on.

    Raises:
        UnknownNameError: A name is not known.
        UsageError: A setting is out of range.
    """

    kind = "portfolio"
    info = AgentInfo(
        summary="stacked Gaussian processes on several kernels, weighted by leave-one-out "
        "density; log EI",
        paper="this archive; stacking: Yao et al., 2018",
        cost="the sum of its members",
        when="spaces of which no surrogate is known to be the best",
        transfers=True,
    )
    several_objectives = True
    uses_constraints = True
    uses_proxies = True
    joint = True

    def __init__(
        self,
        space: Space,
        members: Sequence[str] | str | None = None,
        n_design: int = 10,
        prior: float = 1.0,
        acquisition: str = "ei",
        kappa: float = 2.0,
        transforms: Sequence[str] | str | None = None,
        candidates: str = "auto",
        batch_rule: str = "believer",
        patience: int = 8,
        proxies: bool = True,
        sources: str = "evidence",
    ) -> None:
        """Look the names up, and build the models."""
        super().__init__(space)
        require_at_least(0, n_design=n_design, patience=patience)
        self.members = _as_list(members)
        self.n_design = n_design
        self.prior = prior
        self.acquisition = acquisition
        self.kappa = kappa
        self.transforms = _as_list(transforms)
        record(self, members=self.members, transforms=self.transforms)
        self.candidates = candidates
        self.batch_rule = batch_rule
        self.patience = patience
        self._configurations = self._search_of_configurations(space)
        joint = joint_space_of(space)
        if joint is not None:
            # The models below are of networks alone, and the search of pairs has its own.
            space = joint.networks

        names = self.members or defaults(space)
        self._pairs = None if joint is None else self._search_of_pairs(joint, names)
        self._source = candidate_generators.get(
            candidates, space, cheap=all(is_cheap(name, space) for name in names)
        )
        listing = candidate_generators.listing_of(self._source)
        self._models = [member_model(name, space, listing) for name in names]
        # A design needs distances of hundreds of networks that are never evaluated. The distances
        # of `structure` are cheap.
        self._design_model = member_model("structure", space, listing)
        self._ranking = ranking(acquisition, kappa, batch_rule)
        self._transfer = Transfer(
            space, dict(zip(names, self._models, strict=True)), listing, rule(sources)
        )
        self._knowledge = (
            ProxyKnowledge(space, self._transfer, self._design_model) if proxies else None
        )
        self._prefixes = Prefixes()
        self._tree_features = SparseFeatures(encoding(space, "default").parts, listing)
        self._exact, self._noisy = (
            self._policies_of(TRANSFORMS),
            self._policies_of(NOISY_TRANSFORMS),
        )
        self._replicated = self._policies_of(NOISY_TRANSFORMS, nugget=True)

    @property
    def transfers(self) -> bool:
        """See `Agent.transfers`."""
        return True

    def propose(self, history: History, n: int, rng: np.random.Generator) -> list[Suggestion]:
        """See `Agent.propose`."""
        check_count(n)
        if self._configurations is not None:
            greedy = self._greedy_count(history, n)
            return self._configurations.propose(history, n, greedy, rng)

        if self._pairs is not None:
            return self._pairs.propose(history, n, self._greedy_count(history, n), rng)

        suggestions, initial = self._transfer.suggest_first(history, self._source, n, rng)
        n_design = self._n_design(history) if initial is None else min(self.n_design, initial)
        pending = history.with_pending(suggestions)
        # Without a finished evaluation, no surrogate can be fitted, however many are pending.
        missing = n_design - len(pending.usable) - len(pending.pending) if pending.usable else n
        suggestions = [
            *suggestions,
            *self._design(pending, min(max(missing, 0), n - len(suggestions)), rng),
        ]
        for policy in (self._exploit, self._explore):
            suggestions += policy(history.with_pending(suggestions), n - len(suggestions), rng)

        if not (doubted := self._transfer.without_evidence(history)):
            return suggestions

        with_doubted = []
        for suggestion in suggestions:
            correlations = {**doubted, **suggestion.task_correlations}
            with_doubted.append(replace(suggestion, task_correlations=correlations))

        return with_doubted

    def _search_of_configurations(self, space: Space) -> ConfigurationSearch | None:
        """Return the search of a space of parameters.

        None for other spaces, and where settings are of models of graphs.
        """
        if not isinstance(space, Parameters) or self.members or self.acquisition == "ts":
            return None

        acquisition, _ = ranking(self.acquisition, self.kappa, "believer")
        transform = self.transforms[0] if self.transforms else None
        return ConfigurationSearch(
            space,
            SearchSettings(
                acquisition,
                self.n_design,
                exact=transform or EXACT_TRANSFORM,
                noisy=transform or NOISY_TRANSFORM,
                sources=True,
            ),
        )

    def _search_of_pairs(self, joint: JointSpace, names: Sequence[str]) -> JointSearch:
        """Return the search of networks with parameters beside them."""
        ranked_by, rule = ranking(self.acquisition, self.kappa, self.batch_rule)
        settings = JointSettings(
            names,
            ranked_by,
            rule,
            self.n_design,
            self.prior,
            exact=self.transforms or TRANSFORMS,
            noisy=self.transforms or NOISY_TRANSFORMS,
        )
        return JointSearch(self.space, joint, settings)

    def _exploit(self, history: History, n: int, rng: np.random.Generator) -> list[Suggestion]:
        """Return the next suggestions that maximise the posterior mean; see `patience`."""
        count = self._greedy_count(history, n)
        if not count:
            return []

        # The recorded acquisition is None, because the acquisition function did not select these
        # networks.
        suggestions = self._policies(history).greedy.propose(history, count, rng)
        return [replace(suggestion, acquisition=None) for suggestion in suggestions]

    def _explore(self, history: History, n: int, rng: np.random.Generator) -> list[Suggestion]:
        """Return `n` suggestions that maximise the acquisition."""
        return self._policies(history).exploring.propose(history, n, rng) if n else []

    def _policies(self, history: History) -> Policies:
        """Return the policies for a history, with or without noise."""
        if history.noisy:
            return self._replicated if has_replicates(history.usable) else self._noisy

        if history.goals is not None:
            # All learnt objectives share the transform, and the incumbent's score has the unit of
            # the first one.
            return self._exact

        met = history.met
        if not met.any() or (best := history.scores[met].max()) == history.scores.max():
            return self._exact

        # Resolution must be highest near the best score that meets the constraints. Infeasible
        # scores may be better.
        return self._policies_of([LogRegret(float(best))])

    def _policies_of(
        self, default: Sequence[str | OutcomeTransform], nugget: bool = False
    ) -> Policies:
        """Return the policies with the transforms of the settings, or default ones."""
        transforms = self.transforms or default
        members: list[Member] = []
        for model in self._models:
            make = model.noisy_surrogate if nugget else model.surrogate
            members += map(make, transforms)

        stacked = StackedGP(members, self.prior)
        slacks = StackedGP([model.surrogate(SLACK_TRANSFORM) for model in self._models], self.prior)
        ranked_by, rule = self._ranking
        method = Method(
            stacked,
            ranked_by,
            self._source,
            rule,
            transfer=self._knowledge or self._transfer,
            repeats=True,
            slacks=self._for_many(slacks, SLACK_TRANSFORM).everywhere(),
            many=self._for_many(stacked, transforms[0]),
        )
        greedy = replace(
            method, acquisition=EXPECTATION, rule=batch.get("believer", acquisition=EXPECTATION)
        )
        return Policies(ModelBased(self.space, 0, method), ModelBased(self.space, 0, greedy))

    def _for_many(self, few: StackedGP, transform: str | OutcomeTransform) -> ManyEvaluations:
        """Return the extension of a surrogate to more than a thousand evaluated networks."""
        cheap = [model for model in self._models if model.cheap] or [self._design_model]
        rival = StackedGP([model.surrogate(transform) for model in cheap], self.prior)
        errors = self._design_model.surrogate("none")
        return ManyEvaluations(few, self._tree_features, errors, rival, transform, self._prefixes)

    def _features(self, history: History) -> ProxyFeatures | None:
        return None if self._knowledge is None else self._knowledge.features(history)

    def _n_design(self, history: History) -> int:
        """Return the size of the initial design; proxies allow a smaller one."""
        return self.n_design if self._features(history) is None else min(self.n_design, N_DESIGN)

    def _greedy_count(self, history: History, n: int) -> int:
        """Return how often the next `n` suggestions reach a multiple of `patience`."""
        if not self.patience or not history.usable or history.goals is not None:
            return 0

        met = history.met
        if not met.any():
            return 0

        best = history.usable[int(np.argmax(np.where(met, history.scores, -np.inf)))]
        later = 0
        while history.observations[-1 - later] is not best:
            later += 1

        unfinished = len(history.pending) + len(history.failed)
        tried = len(history.observations) + unfinished
        stagnation = max(min(later + unfinished, tried - self._n_design(history)), 0)
        return (stagnation + n) // self.patience - stagnation // self.patience

    def _design(self, history: History, count: int, rng: np.random.Generator) -> list[Suggestion]:
        if not count:
            return []

        design: list[Suggestion] = []
        features = self._features(history)
        if features is not None and self._knowledge is not None:
            design = self._knowledge.design(features, history, count, rng)

        history = history.with_pending(design)
        rest = space_design(self.space, self._design_model, history, count - len(design), rng)
        return [*design, *rest]


def _as_list(names: Sequence[str] | str | None) -> list[str] | None:
    if names is None:
        return None

    # A string is a sequence of letters.
    return [names] if isinstance(names, str) else list(names)

"""The portfolio: several models of one history, each heard by how well it has foretold it.

Which distance suits a task, nobody knows before; after twenty evaluations the archive itself tells something of it.
So there are several models, on different distances or made of them differently (`portfolio_members`), mixed by how
likely they found every evaluation given all the others (`surrogates.committee`). The logarithm of the mixture's
expected improvement is maximised.

Scores enter as the logarithm of their regret (`surrogates.transforms`), which tells networks apart at the scale of what
is left to gain. Other units may be named, even several: then each model is there with each. Those that leave scores
above the best as they are can be mixed, as their expected improvements add up.

The first networks are those that tell most of the space (`space_filling`), not the space's pool.

Of some evaluations in a row without a new best (`patience`), the last is of the network that is expected to score
highest. Expected improvement may pass over it for long: near the best score the model is certain, and what nothing is
known of promises more, for as long as there is any. Of twenty searches on CIFAR-100 of NAS-Bench-201 three stayed at
the second best cell for 25 evaluations or more, with the best expected to be so; with patience none for more than 16.
De Ath, Everson, Rahat and Fieldsend (Greed is good, 2021) find a part of greed to help other acquisitions, too.

Which members, units and patience are the default was chosen on NAS-Bench-201, so that results on it flatter the
portfolio.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import final

import numpy as np

from archive.agents.acquisition import batch, candidate_generators
from archive.agents.acquisition.functions import UpperConfidenceBound
from archive.agents.base import Agent, AgentInfo, History, Suggestion, check_count, distinct
from archive.agents.baselines.random_search import samples
from archive.agents.bayesopt.gaussian_process import PRESETS, ranking
from archive.agents.bayesopt.initial_design import most_telling
from archive.agents.bayesopt.model_based import Method, ModelBased
from archive.agents.bayesopt.portfolio_members import Model, defaults, is_cheap, model
from archive.agents.recorded import record
from archive.agents.surrogates.gp.distance import DistanceGP
from archive.agents.surrogates.stacking import StackedGP
from archive.agents.transfer.coordinator import Transfer
from archive.architecture.graph import Architecture
from archive.errors import UsageError
from archive.spaces.base import Space

# Networks that stand for a space when the first of a search are chosen: of its list, or drawn.
LISTED, DRAWN = 1000, 100

TRANSFORMS = ("log-regret",)

EXPECTATION = UpperConfidenceBound(0.0)


@final
class Portfolio(Agent):
    """A committee of Gaussian processes on different distances.

    Args:
        space: Where to search.
        members: Names, or one, see `archive.agents.bayesopt.portfolio_members`; None for those that suit the space.
        n_design: How many evaluations come before the first of the committee; observations of any origin count.
        prior: How many evaluations each member is taken to have foretold before there are any.
        acquisition: `ei`, `pi`, `ucb`, `its` or `ts`.
        kappa: Weight of the uncertainty in UCB.
        transforms: Names, or one, of `archive.agents.surrogates.outcome_transforms`; each member learns with each. None
            for `log-regret` alone.
        candidates: A name of `archive.agents.acquisition.candidate_generators`.
        batch_rule: A name of `archive.agents.acquisition.batch`.
        patience: Of so many evaluations of the study in a row without a new best, whoever proposed them, the last is
            of the network of the highest expectation, whose `acquisition` is then None; 0 for never.

    Raises:
        UnknownNameError: A name is not known.
        UsageError: A setting is out of range.
    """

    kind = "portfolio"
    info = AgentInfo(
        summary="several surrogates on one history, weighted by how well each has predicted it",
        paper="this archive's own",
        cost="the sum of its members",
        when="no surrogate is known to suit the space",
        transfers=True,
    )

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
    ) -> None:
        """Look the names up, and keep them."""
        super().__init__(space)
        for name, value in (("n_design", n_design), ("patience", patience)):
            if value < 0:
                raise UsageError(f"{name} must be >= 0, got {value}")
        self.members, self.n_design, self.prior = _listed(members), n_design, prior
        self.acquisition, self.kappa = acquisition, kappa
        self.transforms = _listed(transforms)
        record(self, members=self.members, transforms=self.transforms)
        self.candidates, self.batch_rule, self.patience = candidates, batch_rule, patience
        names = self.members or defaults(space)
        source = candidate_generators.get(candidates, space, cheap=all(is_cheap(name, space) for name in names))
        listing = candidate_generators.listing_of(source)
        models = [model(name, space, listing) for name in names]
        # Designs ask for distances of hundreds of networks that are never evaluated: these take milliseconds.
        self._drawing = model("structure", space, listing)
        committee = StackedGP(
            [_member(one, transform) for one in models for transform in self.transforms or TRANSFORMS], prior
        )
        ranked_by, rule = ranking(acquisition, kappa, batch_rule)
        self._transfer = Transfer(space, dict(zip(names, models, strict=True)), listing)
        method = Method(committee, ranked_by, source, rule, transfer=self._transfer)
        greedy = replace(method, acquisition=EXPECTATION, rule=batch.get("believer", acquisition=EXPECTATION))
        self._search, self._greedy = ModelBased(space, 0, method), ModelBased(space, 0, greedy)

    @property
    def transfers(self) -> bool:
        """See `Agent.transfers`."""
        return True

    def propose(self, history: History, n: int, rng: np.random.Generator) -> list[Suggestion]:
        """See `Agent.propose`."""
        check_count(n)
        praised, initial = self._transfer.first(history, self._search.method.source, n, rng)
        history, n = history.with_pending(praised), n - len(praised)
        found = self._continue(history, n, self.n_design if initial is None else min(self.n_design, initial), rng)
        return [*praised, *found]

    def _continue(self, history: History, n: int, n_design: int, rng: np.random.Generator) -> list[Suggestion]:
        if not n:
            return []
        missing = n_design - len(history.usable) - len(history.pending)
        # While nothing is finished there is nothing to learn from, however many are on their way.
        found = self._design(history, min(max(missing, 0), n) if history.usable else n, rng)
        history = history.with_pending(found)
        due = self._due(history, n - len(found))
        greedy = self._greedy.propose(history, due, rng) if due else []
        # What was not chosen by the acquisition has no value of it.
        found += [replace(one, acquisition=None) for one in greedy]
        history, left = history.with_pending(greedy), n - len(found)
        return [*found, *self._search.propose(history, left, rng)] if left else found

    def _due(self, history: History, n: int) -> int:
        """Return how many of the next `n` networks are to be those of the highest expectation."""
        if not self.patience or not history.usable:
            return 0
        scores = [seen.score if math.isfinite(seen.score) else -math.inf for seen in history.observations]
        tried = len(scores) + len(history.pending) + len(history.failed)
        waited = max(tried - max(1 + int(np.argmax(scores)), self.n_design), 0)
        return (waited + n) // self.patience - waited // self.patience

    def _design(self, history: History, count: int, rng: np.random.Generator) -> list[Suggestion]:
        if not count:
            return []
        reference = self._reference(history.known, rng)
        if not reference:
            return []
        known = [one.functional for one in history.known.values()]
        chosen = most_telling(
            [one.functional for one in reference], known, count, self._drawing.pairwise, self._drawing.covariance
        )
        return [Suggestion(reference[at]) for at in chosen]

    def _reference(self, taken: Collection[str], rng: np.random.Generator) -> list[Architecture]:
        members = self.space.members()
        if members is not None:
            drawn = rng.permutation(len(members))[:LISTED]
            return distinct((members[at] for at in drawn), taken)
        found = [one.architecture for one in samples(self.space, DRAWN, taken, rng)]
        return distinct([*self.space.initial_pool(rng), *found], taken)


def _member(model: Model, transform: str) -> DistanceGP:
    learnt = PRESETS["default"]
    learning = replace(learnt.learning, prior=model.prior)
    return DistanceGP(model.pairwise, model.covariance, learning, noise=learnt.noise, transform=transform)


def _listed(names: Sequence[str] | str | None) -> list[str] | None:
    # A text is a sequence of letters, and nobody means those.
    return None if names is None else [names] if isinstance(names, str) else list(names)

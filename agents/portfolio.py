"""The portfolio: several models of one history, each heard by how well it has foretold it.

Which distance suits a task, nobody knows before; after twenty evaluations the archive itself tells something of it.
So there are several models, on different distances or made of them differently (`portfolio_members`), mixed by how
likely they found every evaluation given all the others (`surrogates.committee`). The logarithm of the mixture's
expected improvement is maximised.

Scores enter as the logarithm of their regret (`surrogates.transforms`), which tells networks apart at the scale of what
is left to gain. Other units may be named, even several: then each model is there with each. Those that leave scores
above the best as they are can be mixed, as their expected improvements add up.

The first networks are those that tell most of the space (`space_filling`), not the space's pool.

Which members and units are the default was chosen on NAS-Bench-201, so that results on it flatter the portfolio.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import final

import numpy as np

from archive.agents import candidate_sources
from archive.agents.base import Agent, History, Suggestion, check_count, distinct
from archive.agents.candidates import Ranked
from archive.agents.gaussian_process import PRESETS, ranking
from archive.agents.model_based import Method, ModelBased, live, with_pending
from archive.agents.portfolio_members import Model, defaults, model
from archive.agents.random_search import samples
from archive.agents.space_filling import most_telling
from archive.agents.surrogates.base import Fitted
from archive.agents.surrogates.committee import Committee, FittedCommittee
from archive.agents.surrogates.distance_gp import DistanceGP
from archive.agents.transfer import Transfer
from archive.errors import UsageError
from archive.graph import Architecture
from archive.spaces.base import Space

# Networks that stand for a space when the first of a search are chosen: of its list, or drawn.
LISTED, DRAWN = 1000, 100

TRANSFORMS = ("log-regret",)


@final
class Portfolio(Agent):
    """A committee of Gaussian processes on different distances.

    Args:
        space: Where to search.
        members: Names, or one, see `archive.agents.portfolio_members`; None for those that suit the space.
        n_design: How many evaluations come before the first of the committee; observations of any origin count.
        prior: How many evaluations each member is taken to have foretold before there are any.
        acquisition: `ei`, `pi`, `ucb`, `its` or `ts`.
        kappa: Weight of the uncertainty in UCB.
        transforms: Names, or one, of `archive.agents.surrogates.transforms`; each member learns with each. None
            for `log-regret` alone.
        candidates: A name of `archive.agents.candidate_sources`.
        batch_rule: A name of `archive.agents.batch`.

    Raises:
        UnknownNameError: A name is not known.
        UsageError: A setting is out of range.
    """

    kind = "portfolio"

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
    ) -> None:
        """Look the names up, and keep them."""
        super().__init__(space)
        if n_design < 0:
            raise UsageError(f"n_design must be >= 0, got {n_design}")
        self.members, self.n_design, self.prior = _listed(members), n_design, prior
        self.acquisition, self.kappa = acquisition, kappa
        self.transforms = _listed(transforms)
        self.candidates, self.batch_rule = candidates, batch_rule
        names = self.members or defaults(space)
        models = [model(name, space) for name in names]
        # Designs ask for distances of hundreds of networks that are never evaluated: these take milliseconds.
        self._drawing = model("structure", space)
        committee = Committee(
            [_member(one, transform) for one in models for transform in self.transforms or TRANSFORMS], prior
        )
        ranked_by, rule = ranking(acquisition, kappa, batch_rule)
        source = candidate_sources.get(candidates, space, cheap=all(one.cheap for one in models))
        self._transfer = Transfer(space, dict(zip(names, models, strict=True)))
        self._search = _Search(space, 0, Method(committee, ranked_by, source, rule, transfer=self._transfer))

    @property
    def transfers(self) -> bool:
        """See `Agent.transfers`."""
        return True

    def propose(self, history: History, n: int, rng: np.random.Generator) -> list[Suggestion]:
        """See `Agent.propose`."""
        check_count(n)
        praised, initial = self._transfer.first(history, self._search.method.source, n, rng)
        history, n = with_pending(history, praised), n - len(praised)
        found = self._continue(history, n, self.n_design if initial is None else min(self.n_design, initial), rng)
        return [*praised, *found]

    def _continue(self, history: History, n: int, n_design: int, rng: np.random.Generator) -> list[Suggestion]:
        if not n:
            return []
        missing = n_design - len(history.usable) - len(history.pending)
        # While nothing is finished there is nothing to learn from, however many are on their way.
        first = self._design(history, min(max(missing, 0), n) if history.usable else n, rng)
        if len(first) == n:
            return first
        return [*first, *self._search.propose(with_pending(history, first), n - len(first), rng)]

    def _design(self, history: History, count: int, rng: np.random.Generator) -> list[Suggestion]:
        if not count:
            return []
        reference = self._reference(history.known, rng)
        if not reference:
            return []
        known = [live(one) for one in history.known.values()]
        chosen = most_telling(
            [live(one) for one in reference], known, count, self._drawing.pairwise, self._drawing.covariance
        )
        return [Suggestion(reference[at]) for at in chosen]

    def _reference(self, taken: Collection[str], rng: np.random.Generator) -> list[Architecture]:
        members = self.space.members()
        if members is not None:
            drawn = rng.permutation(len(members))[:LISTED]
            return distinct((members[at] for at in drawn), taken)
        found = [one.architecture for one in samples(self.space, DRAWN, taken, rng)]
        return distinct([*self.space.initial_pool(), *found], taken)


@final
class _Search(ModelBased):
    """Says what it expects in score units, which the committee's posterior is not in."""

    def _suggest(self, chosen: Sequence[Ranked], model: Fitted) -> list[Suggestion]:
        assert isinstance(model, FittedCommittee)
        law = model.in_scores([live(one.candidate.architecture) for one in chosen])
        numbers = zip(super()._suggest(chosen, model), law.mean, law.std, strict=True)
        return [replace(one, mean=float(mean), std=float(std)) for one, mean, std in numbers]


def _member(model: Model, transform: str) -> DistanceGP:
    learnt = PRESETS["default"]
    learning = replace(learnt.learning, prior=model.prior)
    return DistanceGP(model.pairwise, model.covariance, learning, noise=learnt.noise, transform=transform)


def _listed(names: Sequence[str] | str | None) -> list[str] | None:
    # A text is a sequence of letters, and nobody means those.
    return None if names is None else [names] if isinstance(names, str) else list(names)

"""What an agent learns from studies of other tasks.

    sources -> groups, one a task, protocol and space -> a Gaussian process on each -> an source_model (`source_model`)
            -> a committee: the agent's own model, and one that each source_model helps (`surrogates.informed_gp`)

The study's own evaluations decide who is heard: by how well the agent's own model foretells each of them from the
others, beside the models that are helped. A source that says nothing of the task loses its voice after a few.

| evaluation | is of                                                                               |
|------------|-------------------------------------------------------------------------------------|
| 1 to 3     | the networks that the groups expect most of, in turns                               |
| 4 and 5    | what the agent would begin with: without networks that no source praises, nothing   |
|            | would tell whether the sources are right                                            |
| from 6 on  | what the committee finds promising                                                  |
| from 13 on | the same, without sources of other spaces: they tell where to begin, but what their |
|            | cells and the study's do not have in common decides among the best                  |
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from threading import Lock
from typing import final

import numpy as np

from archive.agents.acquisition.candidate_generators import CandidateGenerator, listing_of
from archive.agents.acquisition.listing import Listing, members_of
from archive.agents.base import History, Suggestion
from archive.agents.bayesopt.model_based import Method
from archive.agents.bayesopt.portfolio_members import Model, model
from archive.agents.surrogates.base import Array, Surrogate
from archive.agents.surrogates.gp.coregionalised import CoregionalisedGP
from archive.agents.surrogates.gp.distance import DistanceGP
from archive.agents.surrogates.stacking import Member, StackedGP
from archive.agents.surrogates.transformed import OutcomeTransformed, SourceResidual
from archive.agents.transfer.cell_vocabulary import comparable
from archive.agents.transfer.source_model import SourceGP, SourceGroup, grouped, learn
from archive.agents.transfer.source_tasks import too_little
from archive.architecture.graph import Architecture
from archive.spaces.base import Space

TOP = 3
"""Evaluations of networks that sources expect most of; one a group at least."""

DESIGN = 2
"""Evaluations after those of what the agent would begin with."""

ELSEWHERE = 12
"""Evaluations of its own after which a study hears sources of other spaces no more. On NAS-Bench-201, from a thousand
cells of NAS-Bench-101, ten searches found the best after a median of 21.5; hearing them to the end, after 33.5."""

MEMBERS = ("subtrees", "outline", "structure")
"""Models that learn a group, see `archive.agents.bayesopt.portfolio_members`: fast, and positive definite, on every
space."""

REMEMBERED = 8
"""Groups that are learnt from, and kept: of more, those of the same space, then the larger ones. On NAS-Bench-201 each
takes up to 200 MB and some seconds."""

SourceModels = tuple[SourceGP, ...]


@final
class Transfer:
    """Helps the agents of a space with sources; what has been learnt of them is remembered. Threads may share one.

    Args:
        space: Where they search.
        models: Models that an agent has already, by name: what these remember of the space need not be made again.
        listing: The networks of the space, where the agent lists them already.
    """

    def __init__(self, space: Space, models: Mapping[str, Model] | None = None, listing: Listing | None = None) -> None:
        """Start with an empty memory."""
        self.space = space
        self._given, self._listing = models or {}, listing
        self._known: OrderedDict[tuple[object, ...], SourceModels] = OrderedDict()
        self._lock = Lock()

    def first(
        self, history: History, source: CandidateGenerator, n: int, rng: np.random.Generator
    ) -> tuple[list[Suggestion], int | None]:
        """Return what is evaluated first of all, and how many evaluations come before the first of a model.

        Args:
            history: What is known; evaluations that are finished or on their way count.
            source: Makes candidates.
            n: How many to return at most.
            rng: Source of randomness.

        Returns:
            At most `n` networks that sources expect most of; the number is None where no source is of use.
        """
        useful, groups = self._useful(history), self._heard(history)
        if not useful or (not groups and len(history.usable) < ELSEWHERE):
            return [], None
        most = max(TOP, len(useful))
        done = len(history.usable) + len(history.pending)
        found: list[Suggestion] = []
        for turn in range(done, min(done + n, most) if groups else done):
            rank = partial(_expected, groups[turn % len(groups)])
            ranked = source.candidates(history.with_pending(found), rank, 1, rng)
            found += [Suggestion(one.candidate.architecture, parent=one.candidate.parent) for one in ranked]
        return found, most + DESIGN

    def helped(self, cold: Surrogate, history: History) -> Surrogate:
        """Return a surrogate that learns from the same scores with the help of the history's sources."""
        groups = self._heard(history)
        if not groups:
            return cold
        if isinstance(cold, OutcomeTransformed):
            return SourceResidual(cold.surrogate, cold.transform, [best_of(models) for models in groups])
        assert isinstance(cold, StackedGP | DistanceGP)
        own: Sequence[Member] = cold.members if isinstance(cold, StackedGP) else [cold]
        prior = cold.prior if isinstance(cold, StackedGP) else 1.0
        transform = own[0].transform
        return StackedGP([*own, *(CoregionalisedGP(model, transform) for models in groups for model in models)], prior)

    def _useful(self, history: History) -> list[SourceGroup]:
        """Return the groups of sources that something can be learnt from, those of the same space first."""
        groups = [group for group in grouped(history.sources) if comparable(group.space, self.space.name)]
        groups = [group for group in groups if not too_little(*group.sources)]
        if len(groups) > REMEMBERED:
            groups.sort(key=lambda group: -len(group.contents))
        groups.sort(key=lambda group: group.space != self.space.name)
        return groups[:REMEMBERED]

    def _heard(self, history: History) -> list[SourceModels]:
        """Return the models of each group that is heard still."""
        everyone = len(history.usable) < ELSEWHERE
        heard = [group for group in self._useful(history) if everyone or group.space == self.space.name]
        return [models for models in map(self._learnt, heard) if models]

    @cached_property
    def _models(self) -> list[Model]:
        listing = self._listing
        if listing is None and (members := members_of(self.space)) is not None:
            listing = Listing([member.functional for member in members])
        return [self._given[name] if name in self._given else model(name, self.space, listing) for name in MEMBERS]

    def _learnt(self, group: SourceGroup) -> SourceModels:
        contents = group.contents
        with self._lock:
            if contents not in self._known:
                self._known[contents] = tuple(learn(group, self.space, self._models))
            self._known.move_to_end(contents)
            while len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
            return self._known[contents]


def helped(space: Space, preset: str, method: Method) -> Method:
    """Return how an agent searches that learns from other tasks as well, unless it is to do as its paper says."""
    return method if preset == "paper" else replace(method, transfer=Transfer(space, listing=listing_of(method.source)))


def best_of(models: SourceModels) -> SourceGP:
    """Return the model that foretells its group best."""
    return max(models, key=lambda model: model.share)


def _expected(models: SourceModels, networks: Sequence[Architecture]) -> Array:
    """Return what the models of a group expect together, by the shares that its own evaluations give them."""
    living = [network.functional for network in networks]
    found: Array = sum((model.share * model.means(living) for model in models), np.zeros(len(living)))
    return found

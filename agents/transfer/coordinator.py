"""Transfer from studies of other tasks, for Bayesian agents.

    source studies -> groups of equal task, protocol and space
                   -> one GP per kernel for each group (`source_model`)
                   -> stacking of the own model with coregionalised GPs, one per source model

Stacking on the study's own evaluations sets the weights: by the leave-one-out predictive density of
the agent's own model and of the coregionalised ones. The weight of an unrelated source decays after
a few evaluations.

| evaluation | proposals with trusted sources                                                      |
|------------|-------------------------------------------------------------------------------------|
| 1 to 3     | the networks of highest expected score under each group, in turns                   |
| 4 and 5    | the agent's own initial design, so that source predictions are also tested where    |
|            | they are low                                                                        |
| from 6 on  | the maximisers of the acquisition under the stacked model                           |
| from 13 on | the same, without sources of other spaces: they help at the beginning; among the    |
|            | best cells, features decide that the two spaces do not share                        |

With the rule `evidence`, a source takes part only while there is evidence that it predicts the
study's evaluations (`archive.agents.transfer.evidence`).

Before there is evidence, the agent uses its own initial design. Without evidence, and after
`MOST_EVALUATIONS` evaluations, sources change no proposal. Sources do not choose the first networks
under this rule. Their best networks are mostly better than an initial design. But a source may
separate bad networks from good ones without ranking the good ones, and its choices then delay the
search.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from threading import Lock
from typing import Literal, cast, final, get_args

import numpy as np

from archive.agents.acquisition.candidate_generators import CandidateGenerator, listing_of
from archive.agents.acquisition.listing import Listing, members_of
from archive.agents.base import History, Suggestion
from archive.agents.bayesopt.model_based import Method
from archive.agents.bayesopt.portfolio_members import MemberModel, defaults, member_model
from archive.agents.surrogates.base import Array, Surrogate
from archive.agents.surrogates.gp.coregionalised import CoregionalisedGP
from archive.agents.surrogates.gp.distance import DistanceGP
from archive.agents.surrogates.many.prefix import FIRST as MANY
from archive.agents.surrogates.stacking import Member, StackedGP
from archive.agents.surrogates.transformed import OutcomeTransformed, SourceResidual
from archive.agents.transfer.cell_vocabulary import comparable
from archive.agents.transfer.evidence import FIRST, Evidence, Verdict
from archive.agents.transfer.source_model import SourceGP, SourceGroup, group_sources, learn
from archive.agents.transfer.source_tasks import too_little
from archive.architecture.graph import Architecture
from archive.architecture.networks import functional_forms
from archive.errors import UnknownNameError
from archive.kernels.features import choices
from archive.spaces.base import Space

TOP = 3
"""First evaluations, chosen by the source models' expected score; at least one for each group."""

DESIGN = 2
"""Evaluations of the agent's own initial design after these."""

OTHER_SPACES = 12
"""Evaluations of a study after which it drops sources of other spaces.

On NAS-Bench-201, with a thousand cells of NAS-Bench-101 as source, ten searches found the best cell
after a median of 21.5; without dropping, after 33.5."""

MOST_EVALUATIONS = MANY
"""Evaluations after which `portfolio` uses no source of another task: its model of many evaluations
takes no sources, and computing the evidence takes the cube of the number of evaluations."""

MEMBERS = ("subtrees", "topology", "structure")
"""Kernels of the source models, see `archive.agents.bayesopt.portfolio_members`: fast and positive
definite on every space. On `choices`, where topology features are constant, the default members of
`portfolio` take their place."""

MOST_GROUPS = 8
"""Groups that are fitted and cached; of more, the same space comes first, then size.

On NAS-Bench-201 each takes up to 200 MB and some seconds."""

SourceModels = tuple[SourceGP, ...]

Rule = Literal["evidence", "trusted"]
"""When sources take part: while there is evidence for them, or from the first proposal on."""


@final
class Transfer:
    """Source models of a history, cached, and their use by the agents of a space.

    Threads may share one.

    Args:
        space: The space that the agents search.
        models: Models that the agent already has, by name, so that their caches of the space are
            shared.
        listing: The networks of the space, if the agent already lists them.
        rule: When sources take part.
    """

    def __init__(
        self,
        space: Space,
        models: Mapping[str, MemberModel] | None = None,
        listing: Listing | None = None,
        rule: Rule = "trusted",
    ) -> None:
        self.space = space
        self.rule = rule
        self._own_models = models or {}
        self._listing = listing
        self._cache: OrderedDict[tuple[object, ...], SourceModels] = OrderedDict()
        self._lock = Lock()
        self._evidence = Evidence()

    def suggest_first(
        self, history: History, generator: CandidateGenerator, n: int, rng: np.random.Generator
    ) -> tuple[list[Suggestion], int | None]:
        """Return the suggestions that open a study, and the size of its initial design.

        Args:
            history: The history; finished and pending evaluations count towards the design.
            generator: Makes the candidates.
            n: Most suggestions to return.
            rng: Source of randomness.

        Returns:
            At most `n` networks of highest expected score under the source models, and the number
            of evaluations before the first proposal of the surrogate; None for that number if no
            source takes part.
        """
        if self.rule == "evidence":
            initial = FIRST if self._active(history) else None
            return [], initial

        usable = self._usable(history)
        groups = self._active(history)
        dropped = len(history.usable) >= OTHER_SPACES
        if not usable or not (groups or dropped):
            return [], None

        opening = max(TOP, len(usable))
        if not groups:
            # All sources are of other spaces and take part no more; the design keeps its size.
            return [], opening + DESIGN

        evaluations = len(history.usable) + len(history.pending)
        suggestions: list[Suggestion] = []
        for turn in range(evaluations, min(evaluations + n, opening)):
            rank = partial(_expect, groups[turn % len(groups)])
            ranked = generator.candidates(history.with_pending(suggestions), rank, 1, rng)
            for best in ranked:
                network = best.candidate.architecture
                suggestions.append(Suggestion(network, parent=best.candidate.parent))

        return suggestions, opening + DESIGN

    def with_sources(self, cold: Surrogate, history: History) -> Surrogate:
        """Return the surrogate extended by the source models of a history, if there are any."""
        groups = self._active(history)
        if not groups:
            return cold

        if isinstance(cold, OutcomeTransformed):
            return SourceResidual(cold.surrogate, cold.transform, list(map(best_of, groups)))

        assert isinstance(cold, StackedGP | DistanceGP)
        members: list[Member] = list(cold.members) if isinstance(cold, StackedGP) else [cold]
        prior = cold.prior if isinstance(cold, StackedGP) else 1.0
        transform = members[0].transform
        for models in groups:
            members += map(partial(CoregionalisedGP, transform=transform), models)

        return StackedGP(members, prior)

    def without_evidence(self, history: History) -> dict[str, float]:
        """Return a correlation of 0 for each source study without sufficient evidence.

        Sources that take part no longer, whatever their evidence, are left out.
        """
        if self.rule == "trusted":
            return {}

        correlations: dict[str, float] = {}
        for models, verdict in self._verdicts(history):
            if not verdict.suffices:
                correlations |= dict.fromkeys(best_of(models).studies, 0.0)

        return correlations

    def _usable(self, history: History) -> list[SourceGroup]:
        """Return the groups of sources that suffice for a model, the same space first."""
        groups = []
        for group in group_sources(history.sources):
            if comparable(group.space, self.space.name) and not too_little(*group.sources):
                groups.append(group)

        if len(groups) > MOST_GROUPS:
            groups.sort(key=lambda group: -len(group.contents))

        groups.sort(key=lambda group: group.space != self.space.name)
        return groups[:MOST_GROUPS]

    def _active(self, history: History) -> list[SourceModels]:
        """Return the models of the groups that take part."""
        if self.rule == "trusted":
            return self._candidates(history)

        active = []
        for models, verdict in self._verdicts(history):
            if not verdict.suffices:
                continue

            if verdict.reversed:
                models = self.models_of(replace(models[0].group, reversed=True))

            if models:
                active.append(models)

        return active

    def _verdicts(self, history: History) -> list[tuple[SourceModels, Verdict]]:
        """Return each group's models with the evidence for the group.

        Empty if the study has too few or too many evaluations.
        """
        if not FIRST <= len(history.usable) <= MOST_EVALUATIONS:
            return []

        candidates = self._candidates(history)
        return [(models, self._evidence.verdict(models, history.usable)) for models in candidates]

    def _candidates(self, history: History) -> list[SourceModels]:
        """Return the models of all groups.

        After `OTHER_SPACES` evaluations, only groups of the study's own space remain.
        """
        all_spaces = len(history.usable) < OTHER_SPACES
        candidates = []
        for group in self._usable(history):
            if all_spaces or group.space == self.space.name:
                models = self.models_of(group)
                if models:
                    candidates.append(models)

        return candidates

    @cached_property
    def _models(self) -> list[MemberModel]:
        listing = self._listing
        if listing is None and (members := members_of(self.space)) is not None:
            listing = Listing(functional_forms(members))

        models = []
        for name in _members(self.space):
            model = self._own_models.get(name)
            if model is None:
                model = member_model(name, self.space, listing)

            models.append(model)

        return models

    def models_of(self, group: SourceGroup) -> SourceModels:
        """Return the cached models of a group by kernel; none for few networks or equal scores."""
        key = (*group.contents, group.reversed)
        with self._lock:
            if key not in self._cache:
                self._cache[key] = tuple(learn(group, self.space, self._models))

            self._cache.move_to_end(key)
            # A group may have two entries: one with its scores, one with their negatives.
            while len(self._cache) > 2 * MOST_GROUPS:
                self._cache.popitem(last=False)

            return self._cache[key]


def with_transfer(space: Space, preset: str, method: Method) -> Method:
    """Return the method with transfer from other tasks; unchanged for the preset `paper`."""
    if preset == "paper":
        return method

    return replace(method, transfer=Transfer(space, listing=listing_of(method.source)))


def rule(name: str) -> Rule:
    """Return the rule of a name.

    Raises:
        UnknownNameError: There is no such rule.
    """
    if name not in get_args(Rule):
        raise UnknownNameError("rule for sources", name, get_args(Rule))

    return cast(Rule, name)


def best_of(models: SourceModels) -> SourceGP:
    """Return the model of the largest stacking weight in its group."""
    return max(models, key=lambda model: model.weight)


def _members(space: Space) -> tuple[str, ...]:
    """Return the kernels of the source models of a space."""
    return defaults(space) if choices.describe(space.name) else MEMBERS


def _expect(models: SourceModels, networks: Sequence[Architecture]) -> Array:
    """Return the expected scores under a group's models by their stacking weights: (n,) float64."""
    functional = functional_forms(networks)
    expected = np.zeros(len(functional))
    for model in models:
        expected = expected + model.weight * model.means(functional)

    return expected

"""Search of pairs by the portfolio: a space-filling design, then stacked models of both parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from archive.agents.acquisition import batch
from archive.agents.acquisition.batch import BatchSelection
from archive.agents.acquisition.functions import Acquisition, UpperConfidenceBound
from archive.agents.base import History, Suggestion, first_of_pool
from archive.agents.bayesopt.model_based import Method, ModelBased
from archive.agents.configurations.candidates import Candidates
from archive.agents.configurations.history import row_keys
from archive.agents.constraints.feasibility import TRANSFORM as SLACK_TRANSFORM
from archive.agents.joint.candidates import JointCandidates
from archive.agents.joint.model import JointCodes, joint_model
from archive.agents.observations import has_replicates
from archive.agents.surrogates.outcome_transforms import OutcomeTransform
from archive.agents.surrogates.stacking import StackedGP
from archive.architecture.networks import architectures_of
from archive.architecture.parameter_operations import join
from archive.spaces.base import Space
from archive.spaces.joint import JointSpace

EXPECTATION = UpperConfidenceBound(0.0)


@dataclass(frozen=True)
class JointSettings:
    """Settings of a search.

    Attributes:
        members: Names of the portfolio's members for the networks.
        acquisition: Ranks candidates.
        rule: Selects a batch.
        n_design: Evaluations before the first of the models.
        prior: Pseudo-observations of each member in the prior of the weights.
        exact: Outcome transforms without noise.
        noisy: Outcome transforms with noise.
    """

    members: Sequence[str]
    acquisition: Acquisition
    rule: BatchSelection
    n_design: int
    prior: float
    exact: Sequence[str | OutcomeTransform]
    noisy: Sequence[str | OutcomeTransform]


class JointSearch:
    """Proposals of networks with parameters beside them.

    Args:
        space: The pairs that may be proposed: `joint`, or its pairs that meet constraints.
        joint: The space of pairs.
        settings: The settings.
    """

    def __init__(self, space: Space, joint: JointSpace, settings: JointSettings) -> None:
        """Build the models."""
        self.space = space
        self.joint = joint
        self.settings = settings
        self._codes = JointCodes(joint)
        self._design_of_parameters = Candidates(joint.parameters)
        self._source = JointCandidates(space, joint, self._codes)
        self._models = [joint_model(name, joint, self._codes) for name in settings.members]

    def propose(
        self, history: History, n: int, greedy: int, rng: np.random.Generator
    ) -> list[Suggestion]:
        """Return n suggestions; fewer where the space is exhausted.

        Args:
            history: All recorded data.
            n: Number of suggestions.
            greedy: How many of them, after the design, maximise the posterior mean.
            rng: The only source of randomness.
        """
        missing = self.settings.n_design - len(history.usable) - len(history.pending)
        in_design = min(n, max(missing, 0) if history.usable else n)
        suggestions = self._design(history, in_design, rng)
        for count, is_greedy in ((min(greedy, n - len(suggestions)), True), (n, False)):
            left = min(count, n - len(suggestions))
            if left:
                pending = history.with_pending(suggestions)
                suggestions += self._model(history, is_greedy=is_greedy).propose(pending, left, rng)

        return suggestions

    def _design(self, history: History, count: int, rng: np.random.Generator) -> list[Suggestion]:
        """Return suggestions of the design: networks of the pool, parameters far from the known."""
        if not count:
            return []

        members = list(filter(self.joint.contains, history.known.values()))
        rows = self._codes.rows(members)
        suggestions = []
        if not members and self.joint.parameters.has_expectations:
            first = first_of_pool(self.space, history, count, 1, rng)
            suggestions += first
            rows = self._codes.rows(architectures_of(first))

        taken = {*history.known}
        codes = self._design_of_parameters.design(
            count - len(suggestions), rows, row_keys(rows), rng
        )
        networks = self.joint.networks.initial_pool(rng)
        order = rng.permutation(len(networks)).tolist()
        for position, row in enumerate(codes):
            network = networks[order[position % len(order)]]
            member = join(network, self.joint.parameters.decode(row))
            if self.space.contains(member) and member.functional_key not in taken:
                suggestions.append(Suggestion(member))

        if len(suggestions) < count:
            pending = history.with_pending(suggestions)
            size = len(pending.usable) + len(pending.pending) + count - len(suggestions)
            left = count - len(suggestions)
            suggestions += first_of_pool(self.space, pending, size, left, rng)

        return suggestions

    def _model(self, history: History, *, is_greedy: bool) -> ModelBased:
        """Return the agent of the models for a history, with or without noise."""
        nugget = history.noisy and has_replicates(history.usable)
        transforms = self.settings.noisy if history.noisy else self.settings.exact
        members = []
        for model in self._models:
            make = model.noisy_surrogate if nugget else model.surrogate
            members += [make(transform) for transform in transforms]

        slacks = [model.surrogate(SLACK_TRANSFORM) for model in self._models]
        method = Method(
            StackedGP(members, self.settings.prior),
            self.settings.acquisition,
            self._source,
            self.settings.rule,
            repeats=True,
            slacks=StackedGP(slacks, self.settings.prior),
        )
        if is_greedy:
            rule = batch.get("believer", acquisition=EXPECTATION)
            method = replace(method, acquisition=EXPECTATION, rule=rule)

        return ModelBased(self.space, 0, method)

"""Search of configurations by the mixture of models: a space-filling design, then log EI."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import rankdata

from archive.agents.acquisition.functions import Acquisition, UpperConfidenceBound
from archive.agents.base import History, Observation, Suggestion
from archive.agents.baselines.random_search import samples
from archive.agents.configurations.candidates import Candidates, branches
from archive.agents.configurations.forest import TREES
from archive.agents.configurations.history import CodedHistory, Coder, row_keys
from archive.agents.configurations.mixture import MODELS, CodeMixture, fit
from archive.agents.configurations.scalarisation import scalarise
from archive.agents.configurations.sources import FIRST, TOP, CodedSource, SourceReader
from archive.agents.constraints.slacks import with_penalties
from archive.agents.surrogates import outcome_transforms
from archive.agents.surrogates.base import Array
from archive.architecture.graph import Architecture
from archive.errors import UsageError
from archive.spaces.parameters import Parameters

EXACT_TRANSFORM = "log-regret"
NOISY_TRANSFORM = "compress-below-median"
PRIOR_WEIGHT = 10.0
"""Weight b of the prior, in evaluations."""

_CHECKED = 60
"""Ranked configurations that are built to find a new one."""
_STARTS = 20
"""Best observed configurations beside which the search begins."""

_BRANCH_EVERY = 5
"""Every proposal of this number is of the branch of a random configuration.

Conditional parameters make branches, about which results elsewhere tell little. A branch that began
badly would hardly be tried again: its few results look like all of it. SMAC draws a fifth of its
configurations at random (Lindauer et al., SMAC3, 2022); here only the branch is drawn, and in it
the acquisition improves on the branch's own best result."""
_OUTSIDE = -1e300
"""Rank of a configuration of another branch."""

EXPECTATION = UpperConfidenceBound(0.0)


@dataclass(frozen=True)
class SearchSettings:
    """Settings of a search.

    Attributes:
        acquisition: Ranks candidates; it must not be joint.
        n_design: Evaluations before the first of the models.
        exact: Outcome transform without noise.
        noisy: Outcome transform with noise.
        models: Models, of `archive.agents.configurations.mixture.MODELS`.
        trees: Trees of the forest.
        sources: Whether warm-start sources take part (`archive.agents.configurations.sources`).
    """

    acquisition: Acquisition
    n_design: int
    exact: str = EXACT_TRANSFORM
    noisy: str = NOISY_TRANSFORM
    models: Sequence[str] = MODELS
    trees: int = TREES
    sources: bool = False


class ConfigurationSearch:
    """Proposals of configurations of one space.

    Args:
        space: The space.
        settings: The settings.

    Raises:
        UsageError: The acquisition needs the joint posterior of all candidates.
    """

    def __init__(self, space: Parameters, settings: SearchSettings) -> None:
        """Keep the settings."""
        if settings.acquisition.joint:
            raise UsageError(
                f"the acquisition {settings.acquisition.name} ranks all candidates at once, which "
                f"the space {space.name} does not allow: choose ei, pi, ucb or its"
            )

        self.space = space
        self.settings = settings
        self._coder = Coder(space)
        self._candidates = Candidates(space.parameters)
        # Scores of a source may have any noise.
        self._sources = SourceReader(space, outcome_transforms.get(settings.noisy))
        self._branched = any(parameter.conditions for parameter in space.parameters.parameters)

    def propose(
        self, history: History, n: int, greedy: int, rng: np.random.Generator
    ) -> list[Suggestion]:
        """Return n suggestions; fewer where the space is exhausted.

        Several objectives are combined, with other weights for each suggestion
        (`archive.agents.configurations.scalarisation`). Results that violate a constraint have
        penalised scores (`archive.agents.constraints.slacks`).

        Args:
            history: All recorded data.
            n: Number of suggestions.
            greedy: How many of them, after the design, maximise the posterior mean; no effect with
                several objectives.
            rng: The only source of randomness.
        """
        if history.goals is not None:
            return self._propose_for_goals(history, n, rng)

        history = with_penalties(history)
        coded = self._coder.read(history)
        sources = self._sources.read(history.sources) if self.settings.sources else []
        n_design = min(self.settings.n_design, FIRST) if sources else self.settings.n_design
        missing = n_design - len(coded.scores) - len(coded.pending)
        in_design = min(n, max(missing, 0) if len(coded.scores) else n)
        suggestions = self._best_of(sources, coded, history, in_design)
        suggestions += self._design(coded, history, suggestions, in_design, rng)
        if len(coded.scores) and len(suggestions) < n:
            count = n - len(suggestions)
            suggestions += self._model(coded, history, sources, suggestions, count, greedy, rng)

        taken = {*history.known, *_keys(suggestions)}
        return [*suggestions, *samples(self.space, n - len(suggestions), taken, rng)]

    def _propose_for_goals(
        self, history: History, n: int, rng: np.random.Generator
    ) -> list[Suggestion]:
        suggestions: list[Suggestion] = []
        while len(suggestions) < n:
            single = scalarise(history.with_pending(suggestions), rng)
            suggested = self.propose(single, 1, 0, rng)
            if not suggested:
                break

            suggestions += suggested

        return suggestions

    def _best_of(
        self, sources: Sequence[CodedSource], coded: CodedHistory, history: History, count: int
    ) -> list[Suggestion]:
        """Return the best configurations of sources in turns, for the first evaluations."""
        suggestions: list[Suggestion] = []
        open_places = min(count, TOP - len(coded.scores) - len(coded.pending))
        best = [source.best() for source in sources]
        for rank in range(max(map(len, best), default=0)):
            for rows in best:
                if len(suggestions) >= open_places:
                    return suggestions

                if rank < len(rows):
                    suggestion = self._new(rows[rank], {*history.known, *_keys(suggestions)})
                    if suggestion is not None:
                        suggestions.append(suggestion)

        return suggestions

    def _design(
        self,
        coded: CodedHistory,
        history: History,
        before: Sequence[Suggestion],
        count: int,
        rng: np.random.Generator,
    ) -> list[Suggestion]:
        """Return suggestions of the design after others, `count` with them.

        The first is the expected one, if there is any.
        """
        suggestions = list(before)
        parameters = self.space.parameters
        if len(suggestions) >= count:
            return []

        if parameters.has_expectations and not coded.taken:
            expected = parameters.complete({})
            if parameters.allows(expected):
                network = self.space.network_of(expected)
                if network.functional_key not in _keys(suggestions):
                    suggestions.append(Suggestion(network))

        rows = np.vstack([coded.codes, coded.pending, self._rows(suggestions)])
        taken = {*coded.taken, *row_keys(rows)}
        codes = self._candidates.design(count - len(suggestions), rows, taken, rng)
        for row in codes:
            suggestion = self._new(row, {*history.known, *_keys(suggestions)})
            if suggestion is not None:
                suggestions.append(suggestion)

        return suggestions[len(before) :]

    def _model(
        self,
        coded: CodedHistory,
        history: History,
        sources: Sequence[CodedSource],
        before: Sequence[Suggestion],
        count: int,
        greedy: int,
        rng: np.random.Generator,
    ) -> list[Suggestion]:
        """Return suggestions of the models."""
        name = self.settings.noisy if coded.noisy else self.settings.exact
        transform = outcome_transforms.get(name)
        mixture = fit(
            self.space.parameters,
            coded,
            transform,
            rng,
            self.settings.models,
            self.settings.trees,
            sources,
        )
        slopes = mixture.slopes(sources)
        mixture = mixture.hallucinate(np.vstack([coded.pending, self._rows(before)]))
        order = np.argsort(-coded.scores, kind="stable")[:_STARTS]
        starts = np.vstack([coded.codes[order], *(source.best()[:_STARTS] for source in sources)])
        taken = {*coded.taken, *row_keys(self._rows(before))}
        keys = {*history.known, *_keys(before)}
        weight = self._weigh_prior(coded)
        suggestions: list[Suggestion] = []
        while len(suggestions) < count:
            is_greedy = len(suggestions) < greedy
            acquisition = EXPECTATION if is_greedy else self.settings.acquisition
            number = len(coded.scores) + len(coded.pending) + len(before) + len(suggestions)
            ranked_by = mixture
            branch = None
            if not is_greedy and self._branched and number % _BRANCH_EVERY == 0:
                branch = self._draw_branch(rng)
                ranked_by = _beside_branch(mixture, coded, branch)

            rank = self._ranking(ranked_by, acquisition, weight, rng, branch)
            codes, ranks = self._candidates.search(rank, starts, taken, _CHECKED, rng)
            suggestion = None
            value = None
            for row, ranked in zip(codes, ranks.tolist(), strict=True):
                suggestion = self._new(row, keys)
                if suggestion is not None:
                    # The acquisition did not select a greedy one.
                    value = None if is_greedy else acquisition.value(ranked)
                    break

            if suggestion is None:
                break

            vector = self._rows([suggestion])
            predicted = _predicted(suggestion, mixture, vector, value)
            suggestions.append(replace(predicted, task_correlations=slopes))
            keys.add(suggestion.architecture.functional_key)
            taken |= set(row_keys(vector))
            if len(suggestions) < count:
                mixture = mixture.hallucinate(vector)

        return suggestions

    def _weigh_prior(self, coded: CodedHistory) -> float:
        """Return the weight b / n of the prior, 0 where the results contradict it.

        They do where the scores fall with the prior's density: their rank correlation is negative.
        """
        if not self._candidates.has_prior:
            return 0.0

        densities = self._candidates.log_prior(coded.codes)
        if np.ptp(densities) > 0.0 and np.ptp(coded.scores) > 0.0:
            ranks = [rankdata(densities), rankdata(coded.scores)]
            if np.corrcoef(ranks)[0, 1] < 0.0:
                return 0.0

        return PRIOR_WEIGHT / len(coded.scores)

    def _draw_branch(self, rng: np.random.Generator) -> bytes:
        """Return the branch of a random configuration."""
        return branches(self._candidates.sample(1, rng))[0]

    def _ranking(
        self,
        mixture: CodeMixture,
        acquisition: Acquisition,
        weight: float,
        rng: np.random.Generator,
        branch: bytes | None,
    ) -> Callable[[Array], Array]:
        """Return the function that ranks candidates, other branches last."""

        def rank(codes: Array) -> Array:
            ranks = acquisition.rank(mixture.posterior(codes), rng)
            if weight and acquisition.logarithmic:
                ranks = ranks + weight * self._candidates.log_prior(codes)

            if branch is not None:
                inside = np.array([row == branch for row in branches(codes)], np.bool_)
                ranks = np.where(inside, ranks, _OUTSIDE)

            return ranks

        return rank

    def _new(self, codes: Array, taken: set[str]) -> Suggestion | None:
        """Return a configuration as a suggestion, None for a known one or one that is forbidden."""
        values = self.space.parameters.decode(codes)
        if not self.space.parameters.allows(values):
            return None

        network = self.space.network_of(values)
        return None if network.functional_key in taken else Suggestion(network)

    def _rows(self, suggestions: Sequence[Suggestion]) -> Array:
        """Return the codes of suggestions: (k, D) float64."""
        rows = []
        for suggestion in suggestions:
            row = self._coder.encode(suggestion.architecture)
            assert row is not None, "a suggestion outside the space"
            rows.append(row)

        return np.array(rows, np.float64).reshape(len(rows), len(self.space.parameters))


def fit_noisy(space: Parameters, observations: Sequence[Observation]) -> CodeMixture:
    """Return the models of evaluations with noise, which do not depend on a seed.

    Args:
        space: The space; configurations outside it are left out.
        observations: The evaluations, of at least one configuration of the space.
    """
    coded = Coder(space).read(History(tuple(observations)))
    rng = np.random.default_rng(0)
    transform = outcome_transforms.get(NOISY_TRANSFORM)
    return fit(space.parameters, replace(coded, noisy=True), transform, rng)


def estimate(
    space: Parameters, observations: Sequence[Observation], networks: Sequence[Architecture]
) -> tuple[Array, Array, float] | None:
    """Return estimates of the noise-free scores of configurations.

    Args:
        space: The space.
        observations: Evaluations with noise.
        networks: m configurations.

    Returns:
        Means and standard deviations in score units, (m,) float64 each, and the standard deviation
        of an evaluation's noise. None where a configuration is not in the space.
    """
    coder = Coder(space)
    rows = []
    for network in networks:
        row = coder.encode(network)
        if row is None:
            return None

        rows.append(row)

    mixture = fit_noisy(space, observations)
    codes = np.array(rows, np.float64).reshape(len(rows), len(space.parameters))
    expected = mixture.posterior(codes).in_scores()
    return expected.mean, expected.std, mixture.noise


def _predicted(
    suggestion: Suggestion, mixture: CodeMixture, codes: Array, acquisition: float | None
) -> Suggestion:
    """Return a suggestion with its prediction, in score units."""
    expected = mixture.posterior(codes).in_scores()
    return Suggestion(
        suggestion.architecture,
        acquisition=acquisition,
        mean=float(expected.mean[0]),
        std=float(expected.std[0]),
    )


def _beside_branch(mixture: CodeMixture, coded: CodedHistory, branch: bytes) -> CodeMixture:
    """Return the models with the best result of a branch as the value to improve on."""
    rows = np.array([row == branch for row in branches(coded.codes)], np.bool_)
    if not rows.any():
        return mixture

    exact = mixture.exact
    if exact is not None:
        exact = float(mixture.scale.standardise(coded.scores[rows]).max())

    return replace(mixture, incumbents=coded.codes[rows], exact=exact)


def _keys(suggestions: Sequence[Suggestion]) -> list[str]:
    return [suggestion.architecture.functional_key for suggestion in suggestions]

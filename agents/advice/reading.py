"""A study as advice reads it: its space, its history, and the surrogates of its objectives."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np

from archive.agents import provenance
from archive.agents.advice import study_surrogate
from archive.agents.advice.documents import AdvisedNetwork, ValuePrediction
from archive.agents.advice.study_surrogate import SurrogateFit
from archive.agents.ask_tell.enqueueing import space_of
from archive.agents.base import History, Observation
from archive.agents.objectives.goals import Goals
from archive.agents.observations import is_score
from archive.agents.recommendation import WIDTH
from archive.architecture import codec, texts
from archive.architecture.graph import Architecture
from archive.architecture.parameter_operations import NAME as PARAMETERS
from archive.constraints import NO_COSTS, KnownCosts
from archive.errors import ArchiveError
from archive.objectives import sign
from archive.spaces.base import Space
from archive.store.studies.configurations import values_of

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.store.records import Study


@dataclass(frozen=True, eq=False)
class StudyReading:
    """A study with its history.

    Attributes:
        study: The study.
        space: Its space, with its constraints on known costs.
        costs: Known costs of its networks.
        history: Its history.
    """

    study: Study
    space: Space
    costs: KnownCosts
    history: History

    @cached_property
    def goals(self) -> Goals:
        """The objectives; the study's one objective where it has no further ones."""
        return self.seen.goals or Goals(self.study.objectives, self.costs)

    @cached_property
    def seen(self) -> History:
        """The history as agents of the space see it."""
        return self.history.seen_from(self.space)

    def observations(self, position: int) -> list[Observation]:
        """Return the whole evaluations with a finite score for an objective, as their score.

        Args:
            position: Position of the objective in the study.
        """
        whole = [seen for seen in self.seen.observations if seen.variance == 0.0]
        if position == 0:
            return [seen for seen in whole if is_score(seen.score)]

        scores = self.goals.scores(whole)[:, position].tolist()
        observations = []
        for seen, score in zip(whole, scores, strict=True):
            if is_score(score):
                observations.append(replace(seen, score=score))

        return observations

    @cached_property
    def feasible(self) -> list[Observation]:
        """The study's own whole evaluations of finite score that meet its constraints."""
        prefix = f"{self.study.name}#"
        observations = [seen for seen in self.observations(0) if seen.id.startswith(prefix)]
        constraints = self.history.constraints
        if constraints is None or not observations:
            return observations

        return list(compress(observations, constraints.met(observations).tolist()))

    @cached_property
    def fits(self) -> dict[int, SurrogateFit]:
        """The surrogate of each objective that is learnt from results, by position."""
        fits = {}
        for position in self.goals.learnt:
            fits[position] = study_surrogate.fit(self.space, self.observations(position))

        return fits

    @property
    def fit(self) -> SurrogateFit:
        """The surrogate of the first objective, or the reason why it has none."""
        return self.fits[0]

    @property
    def best_score(self) -> float:
        """The best score so far that meets the constraints, of any network if none does.

        Of results with noise, it is the best expected one. There must be an observation.
        """
        observations = self.feasible or self.observations(0)
        surrogate = self.fit.surrogate
        if surrogate is None or surrogate.noise == 0.0:
            return max(seen.score for seen in observations)

        means, _ = surrogate.predict([seen.architecture for seen in observations])
        return float(means.max())

    def advise(self, networks: Sequence[Architecture]) -> list[AdvisedNetwork]:
        """Return networks with their predictions.

        Args:
            networks: Members of the space; in a space with parameters beside networks, pairs.
        """
        positions = range(len(self.study.objectives))
        predictions = [self.predict(position, networks) for position in positions]
        values = self._values()
        advised = []
        for row, network in enumerate(networks):
            further = {}
            for objective, column in zip(self.study.further, predictions[1:], strict=True):
                prediction = column[row]
                if prediction is not None:
                    further[objective.name] = prediction

            plain = network.network
            is_values = plain.space == PARAMETERS
            advised.append(
                AdvisedNetwork(
                    architecture=plain.key,
                    text=texts.to_text(plain),
                    network=None if is_values else codec.to_dict(plain),
                    configuration=self.configuration(network),
                    prediction=predictions[0][row],
                    further=further,
                    values=values.get(network.functional_key, []),
                )
            )

        return advised

    def configuration(self, network: Architecture) -> Mapping[str, Any]:
        """Return the values of named decisions, and of the parameters beside a network."""
        return {**values_of(self.study, network.network), **network.configuration}

    def predict(
        self, position: int, networks: Sequence[Architecture]
    ) -> list[ValuePrediction | None]:
        """Return the prediction of each network for an objective; None without one.

        Args:
            position: Position of the objective in the study.
            networks: As for `advise`.
        """
        if position not in self.goals.learnt:
            means = self.goals.known_scores(networks)[:, position]
            stds = np.zeros(len(means))
        else:
            surrogate = self.fits[position].surrogate
            if surrogate is None or not networks:
                return [None] * len(networks)

            means, stds = surrogate.predict(networks)

        better = sign(self.study.objectives[position].direction)
        predictions: list[ValuePrediction | None] = []
        for mean, std in zip((better * means).tolist(), stds.tolist(), strict=True):
            # The cost of a network that its table does not have is NaN.
            if not math.isfinite(mean):
                predictions.append(None)
                continue

            margin = WIDTH * std
            predictions.append(ValuePrediction(mean, std, mean - margin, mean + margin))

        return predictions

    def _values(self) -> dict[str, list[float]]:
        """Return the values of the first objective by functional key."""
        better = sign(self.study.direction)
        values: dict[str, list[float]] = {}
        for seen in self.observations(0):
            values.setdefault(seen.architecture.functional_key, []).append(better * seen.score)

        return values


def read(archive: Archive, study: str) -> StudyReading:
    """Read a study and its history.

    Args:
        archive: The archive.
        study: Name of the study.

    Raises:
        UnknownNameError: There is no such study, or its space is not known here.
        SettingsError: The table of its space may not be opened here.
    """
    record = archive.studies.get(study)
    costs = _costs(archive, record)
    space = space_of(archive, record, costs)
    history, _ = provenance.history_of(archive, record, costs)
    return StudyReading(record, space, costs, history)


def _costs(archive: Archive, study: Study) -> KnownCosts:
    """Return the known costs that objectives or constraints of a study need, if it has any."""
    if not study.constraints and not study.further:
        return NO_COSTS

    # Imported here because it loads the builders of networks.
    from archive.trainer.tasks import known_costs

    try:
        return known_costs.of_study(study, archive.connection.settings.home)
    except ArchiveError:
        # A file of the task that may not be opened here: its costs are then predicted from results.
        return NO_COSTS

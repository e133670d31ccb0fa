"""Recommended networks: by posterior mean where evaluations have noise, else by value.

The best of n noisy values is the luckiest one: it exceeds the network's true value, and another
network may be better. A Gaussian process averages the evaluations of each network, and of similar
ones, with the noise that it estimates.

| symbol | meaning                                                               |
|--------|-----------------------------------------------------------------------|
| mu, s  | posterior mean and standard deviation of a network's noise-free score |
| 95 %   | mu - 1.96 s to mu + 1.96 s                                            |

The model is the stacked ensemble of `archive.agents.bayesopt.portfolio`, of its members with cheap
distances. Its transform is linear near the best scores and compresses bad ones
(`compress-below-median`), so that noise stays symmetric where it matters. Noise has one variance in
score units (`Scale.noise_of_scores`): with one in units of the compressed scores, it was estimated
20 % too small on random tables of 25 and 60 networks, and 82 to 88 % of the intervals of the best
five held the true score instead of 87 to 93 %.

The prior of the noise is wide (`NOISE_PRIOR`). The members' prior of length scales would expect
noise of a tenth of the scores' standard deviation: where it was half of it, on random tables of 81
choices, the intervals of the best five held the true score in 20 % of 20 random evaluations and in
47 % of 40, instead of 85 and 87 %.

Where a network has two evaluations, the models have a nugget: a deviation of each network from its
neighbours (`archive.agents.surrogates.gp.nugget`). Without such replicates, a nugget would absorb
noise. On these tables, with noise of a fifth of the scores' standard deviation and networks without
deviations, the intervals of the best five held the true score in 64 % of 20 and of 40 random
evaluations with a nugget, and in 72 and 83 % without one. With replicates, the nugget makes no
difference to that share.

Configurations of the space `parameters` have the models of `archive.agents.configurations`, whose
distances are of values, not of layers.

A study with varying training hyperparameters is ranked by the mean of the evaluations of each
configuration: the model does not know hyperparameters.

Estimates stay on disk until a result of the study changes:

    archive search ── estimates written ──> HOME/cache/estimates ── read ──> archive study best

A file has the digest of all inputs of the fit. Estimates of other inputs count as missing, and the
next ones replace them: there is one file for each study and objective.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from archive import cache
from archive.agents.observations import Observation, has_replicates, is_noisy, is_score, replicates
from archive.agents.provenance import join_parameters
from archive.agents.surrogates.base import Array
from archive.agents.transfer.source_tasks import observation, split
from archive.architecture.graph import Architecture
from archive.architecture.operations import vocabulary
from archive.architecture.parameter_operations import PROGRAM_NAME as RUNS
from archive.constraints import violation
from archive.errors import ArchiveError, NumericalError, UsageError
from archive.spaces import stored_spaces
from archive.spaces.base import Space
from archive.spaces.joint import joint_space_of
from archive.spaces.parameters import Parameters

if TYPE_CHECKING:
    from archive.agents.surrogates.stacking import FittedStackedGP
    from archive.api import Archive
    from archive.store.records import Evaluation, Study

KIND = "estimates"
"""Folder of the files, below the cache's."""


class Estimates(NamedTuple):
    """Estimates of the noise-free scores of m networks.

    Attributes:
        means: (m,) float64.
        stds: (m,) float64, standard deviations.
        noise: Standard deviation of an evaluation's noise.
    """

    means: NDArray[np.float64]
    stds: NDArray[np.float64]
    noise: float


@dataclass(frozen=True)
class EstimatesFile:
    """The file of a study's estimates for one objective.

    Attributes:
        home: Folder of the archive.
        study: Name of the study.
        objective: Name of the objective.
    """

    home: Path
    study: str
    objective: str

    def read(self, inputs: str) -> Estimates | None:
        """Return the estimates of these inputs (`digest`).

        None if the file has none, or has estimates of other inputs.
        """
        arrays = cache.read(KIND, self._identity, self.home)
        if arrays is None or arrays["inputs"].tobytes() != inputs.encode():
            return None

        return Estimates(arrays["means"], arrays["stds"], float(arrays["noise"]))

    def write(self, inputs: str, estimates: Estimates) -> None:
        """Replace the file, if the disk permits it."""
        arrays = {
            "inputs": np.frombuffer(inputs.encode(), np.uint8),
            "means": estimates.means,
            "stds": estimates.stds,
            "noise": np.float64(estimates.noise),
        }
        cache.write(
            KIND,
            self._identity,
            {name: np.asarray(array) for name, array in arrays.items()},
            self.home,
        )

    @property
    def _identity(self) -> str:
        return json.dumps([self.study, self.objective])


def digest(space: Space, observations: Sequence[Observation], ranked: Sequence[int]) -> str | None:
    """Return a digest of the inputs of a fit; None for a space of another package.

    The code of another package may change.

    Args:
        space: The space of the networks.
        observations: Evaluations without hyperparameters.
        ranked: Positions of the networks to estimate.
    """
    if not type(space).__module__.startswith("archive."):
        return None

    settings = json.dumps(
        [space.name, space.config, vocabulary(space.name).digest], sort_keys=True, default=str
    )
    hashed = blake2b(settings.encode(), digest_size=16)
    for seen in observations:
        hashed.update(f"{seen.architecture.key} {seen.score!r}\n".encode())

    hashed.update(np.asarray(ranked, np.int64).tobytes())
    return hashed.hexdigest()


LEAST = 5
"""Fewest networks that a model is fitted to.

With fewer, the prior alone would determine the hyperparameters.
"""

MOST = 1000
"""Most networks that a model is fitted to, half of them the best by mean score and half drawn at
random; also the most networks that are estimated."""

WIDTH = 1.96
"""Half width of an interval of 95 %, in standard deviations."""


@dataclass(frozen=True)
class Recommendation:
    """A network with the estimate of its noise-free score.

    Attributes:
        architecture: The network.
        score: The estimate, larger is better: a posterior mean, or without noise the score itself.
        low: Lower end of its 95 % interval; None where no model could be fitted.
        high: Upper end.
        evaluations: Its evaluations.
    """

    architecture: Architecture
    score: float
    low: float | None
    high: float | None
    evaluations: tuple[Observation, ...]

    @property
    def luckiest(self) -> Observation:
        """The best of its evaluations, the first of equal ones."""
        return max(self.evaluations, key=lambda observation: observation.score)


@dataclass(frozen=True)
class Recommendations:
    """The networks of a history, the best first.

    Attributes:
        ranked: The networks, at most `MOST` where the history has noise. Networks of equal
            estimates keep the order of the history.
        noise: Estimated standard deviation of an evaluation's noise, in score units. 0 for a
            history without noise, None where no model could be fitted to a history with noise.
    """

    ranked: tuple[Recommendation, ...]
    noise: float | None


def recommend(
    space: Space,
    observations: Sequence[Observation],
    among: Collection[str] | None = None,
    file: EstimatesFile | None = None,
) -> Recommendations:
    """Rank the networks of a history by the estimates of their noise-free scores.

    Args:
        space: The space of the networks.
        observations: Whole evaluations of finite score.
        among: Functional keys of the networks to rank; None for all.
        file: File with the estimates of an earlier call, which are used again where no result has
            changed since; None fits a model each time.
    """
    groups = replicates(observations)
    ranked = []
    for number, group in enumerate(groups):
        if among is None or group[0].architecture.functional_key in among:
            ranked.append(number)

    if not is_noisy(observations):
        candidates = list(map(groups.__getitem__, ranked))
        best = np.array([max(_scores(group)) for group in candidates])
        return Recommendations(_rank(candidates, best, np.zeros(len(best))), 0.0)

    means = np.array([np.mean(_scores(group)) for group in groups])
    # Networks of low mean score are not the best ones, and estimates of a hundred thousand networks
    # take gigabytes.
    ranked = sorted(sorted(ranked, key=lambda number: -means[number])[:MOST])
    candidates = list(map(groups.__getitem__, ranked))
    if len(groups) < LEAST or any(observation.hyperparameters for observation in observations):
        return Recommendations(_rank(candidates, means[ranked], None), None)

    inputs = None if file is None else digest(space, observations, ranked)
    estimates = None if file is None or inputs is None else file.read(inputs)
    if estimates is None:
        estimates = _estimates(space, groups, means, candidates)
        if file is not None and inputs is not None and estimates is not None:
            file.write(inputs, estimates)

    if estimates is None:
        return Recommendations(_rank(candidates, means[ranked], None), None)

    return Recommendations(_rank(candidates, estimates.means, estimates.stds), estimates.noise)


def of_study(
    archive: Archive, study: Study, unknown: Callable[[ArchiveError], object] = lambda error: None
) -> Recommendations | None:
    """Rank the networks of a study; sources of the same task are further data.

    Args:
        archive: The archive of the study.
        study: The study.
        unknown: Called with the reason why the estimates of a study with noise are not known here.

    Returns:
        The networks that have a whole training of finite value in the study and meet its
        constraints. None where the results have no noise, which makes the values themselves the
        best estimates, or where the space of the study is not installed.
    """
    observations, own_keys = observations_of(archive.studies.history(study.name), study)
    if not is_noisy(observations):
        if study.space == RUNS:
            # A program has randomness of its own, whether or not it has a seed.
            unknown(
                UsageError(
                    "how much values of equal runs differ is not known: repeat the best runs "
                    "with other seeds"
                )
            )

        return None

    try:
        space = stored_spaces.of_record(
            study.space, study.space_config, archive.connection.settings.home
        )
    except ArchiveError as error:
        unknown(error)
        return None

    file = EstimatesFile(archive.connection.settings.home, study.name, study.objective)
    recommended = recommend(space, observations, own_keys, file)
    return recommended if recommended.ranked else None


def observations_of(
    evaluations: Sequence[Evaluation], study: Study, *, joint: bool = False
) -> tuple[list[Observation], set[str]]:
    """Return the whole trainings of a study and of its sources of the same task.

    Args:
        evaluations: The history of the study.
        study: The study.
        joint: Whether a network has the parameters beside it, in a study with such.

    Returns:
        The observations, and the functional keys of the networks that have a whole training in the
        study and meet its constraints.
    """
    evaluated, _ = split(evaluations, study)
    observations = []
    for evaluation in filter(_is_whole, evaluated):
        seen = observation(evaluation, evaluation.score)
        observations.append(join_parameters(study, seen) if joint else seen)

    # Chosen from all evaluations: the observations lack the study's copies of its sources' results.
    own_keys = set()
    for evaluation in evaluations:
        if evaluation.study == study.name and _is_whole(evaluation):
            quantities = {study.objective: evaluation.value, **evaluation.metrics}
            if not violation(study.constraints, quantities):
                seen = observation(evaluation, evaluation.score)
                entry = join_parameters(study, seen) if joint else seen
                own_keys.add(entry.architecture.functional_key)

    return observations, own_keys


def _is_whole(evaluation: Evaluation) -> bool:
    return not evaluation.partial and is_score(evaluation.score)


def _estimates(
    space: Space,
    groups: Sequence[Sequence[Observation]],
    means: Array,
    candidates: Sequence[Sequence[Observation]],
) -> Estimates | None:
    """Return the estimates of the chosen networks; None where no model could be fitted."""
    if isinstance(space, Parameters):
        from archive.agents.configurations.search import estimate

        observations = list(chain.from_iterable(most_of(groups, means)))
        estimated = estimate(space, observations, [group[0].architecture for group in candidates])
        return None if estimated is None else Estimates(*estimated)

    fitted = fit_networks(space, list(chain.from_iterable(most_of(groups, means))))
    if fitted is None:
        return None

    posterior = fitted.posterior(
        [group[0].architecture.functional for group in candidates]
    ).in_scores()
    return Estimates(posterior.mean, posterior.std, _noise(fitted))


def most_of(
    groups: Sequence[Sequence[Observation]], means: Array
) -> Iterator[Sequence[Observation]]:
    """Yield the evaluations of at most `MOST` networks, in their order."""
    order = np.argsort(-means, kind="stable")
    if len(order) > MOST:
        # A fixed seed: the same history gives the same recommendation.
        others = np.random.default_rng(0).permutation(order[MOST // 2 :])[: MOST - MOST // 2]
        order = np.concatenate([order[: MOST // 2], others])

    yield from map(groups.__getitem__, np.sort(order))


def _scores(observations: Sequence[Observation]) -> list[float]:
    return [observation.score for observation in observations]


def fit_networks(
    space: Space, observations: Sequence[Observation], *, noisy: bool = True
) -> FittedStackedGP | None:
    """Return the stacked model of networks; None where it cannot be fitted.

    Args:
        space: The space of the networks.
        observations: Evaluations of at least one network.
        noisy: Whether evaluations have noise.
    """
    # The models take a second to import, which a study without noise, or with kept estimates, need
    # not wait for.
    from archive.agents.bayesopt.portfolio_members import (
        NOISE_PRIOR,
        MemberModel,
        defaults,
        is_cheap,
        member_model,
    )
    from archive.agents.joint.model import JointCodes, JointModel, joint_model
    from archive.agents.surrogates.outcome_transforms import (
        CompressBelowMedian,
        LogRegret,
        OutcomeTransform,
    )
    from archive.agents.surrogates.stacking import StackedGP

    nugget = noisy and has_replicates(observations)
    transform: OutcomeTransform = CompressBelowMedian(noise_of_scores=True)
    if not noisy:
        transform = LogRegret()

    joint = joint_space_of(space)
    networks = space if joint is None else joint.networks
    codes = None if joint is None else JointCodes(joint)
    members = []
    for name in defaults(networks):
        if not is_cheap(name, networks):
            continue

        model: MemberModel | JointModel = member_model(name, networks)
        if joint is not None and codes is not None:
            model = joint_model(name, joint, codes)

        if nugget:
            members.append(model.noisy_surrogate(transform))
        else:
            members.append(model.surrogate(transform, NOISE_PRIOR if noisy else None))

    stacked = StackedGP(members)
    scores = np.array(_scores(observations), np.float64)
    try:
        return stacked.fit(
            [seen.architecture.functional for seen in observations],
            scores,
            np.random.default_rng(0),
        )
    except NumericalError:
        return None


def _rank(
    groups: Sequence[Sequence[Observation]], scores: Array, stds: Array | None
) -> tuple[Recommendation, ...]:
    half = None if stds is None else WIDTH * stds
    ranked = []
    for row in np.argsort(-scores, kind="stable").tolist():
        low = None if half is None else float(scores[row] - half[row])
        high = None if half is None else float(scores[row] + half[row])
        network = groups[row][0].architecture
        ranked.append(Recommendation(network, float(scores[row]), low, high, tuple(groups[row])))

    return tuple(ranked)


def _noise(fitted: FittedStackedGP) -> float:
    """Return the estimated standard deviation near the best scores.

    There the transform is the identity.
    """
    variances = fitted.noises()
    return float(np.sqrt(np.average(variances, weights=fitted.weights)))

"""Prospects of a study: what it would gain by searching on, and by training longer.

Searching on: the posterior of the best network that there is, against the one that is recommended.

| symbol | meaning                                                                       | shape   |
|--------|-------------------------------------------------------------------------------|---------|
| C      | candidates: promising, random and evaluated networks                          | scalar  |
| x*     | recommended network, of the greatest posterior mean among the evaluated ones  | scalar  |
| f      | noise-free scores of the candidates, a joint sample of the posterior          | (S, C)  |
| G      | gain, max_c f_c - f_x*, at least 0                                            | (S,)    |

Mean and quantiles of G are the estimate: a bound on what any number of further evaluations finds,
as far as the model is right and the candidates contain the best. Of a large space they do not
contain it, but promising ones are searched for by mean + 2 standard deviations. (The simple regret
of Makarova et al., Automatic termination for hyperparameter optimization, AutoML-Conf 2022, has
bounds of the confidence intervals in place of the sample.)

The model is independent of the agent: for configurations the Gaussian processes of
`archive.agents.configurations`, one for each draw of hyperparameters; for other spaces the stacked
processes of `archive.agents.recommendation`, also of networks with parameters beside them. Unmeasured constraints are not modelled: candidates
that violate them count, so that the gain is not too small.

Training longer: the gains from rung to rung among the trainings that continued, and the paused ones
projected to full length (`archive.agents.rungs`).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import TYPE_CHECKING

import numpy as np

from archive.agents.observations import Observation, is_noisy, replicates
from archive.agents.recommendation import WIDTH, fit_networks, most_of, observations_of
from archive.agents.rungs import project_scores, score_after
from archive.agents.surrogates.base import Array, Posterior
from archive.architecture.graph import Architecture
from archive.errors import NumericalError
from archive.rungs import LengthGain, Rungs
from archive.spaces.base import Space, distinct_sample
from archive.spaces.joint import joint_space_of
from archive.spaces.parameters import Parameters

if TYPE_CHECKING:
    from archive.store.records import Evaluation, Study

LEAST = 10
"""Fewest different networks of an estimate."""
SAMPLES = 1000
RANDOM = 200
PROMISING = 300
"""Random and promising candidates of a space of parameters; promising ones of pairs, too."""
DRAWN = 300
"""Random candidates of another space."""
ROUNDS = 4
NEAR = 10
NEIGHBOURS = 5
"""Rounds of a local search, most promising candidates of each, and mutations of each of these."""
EVALUATED = 20
"""Best evaluated networks that are candidates."""
_WIDE = 2.0
"""Standard deviations above the mean by which promising candidates are ranked."""


@dataclass(frozen=True)
class ExpectedGain:
    """Posterior of the gain of searching on, in score units.

    Attributes:
        recommended: The recommended network x*.
        expected: Posterior mean of its noise-free score.
        mean: Mean of the gain.
        low: Lower end of its central 95 %.
        high: Upper end.
        noise: Standard deviation of the noise of an evaluation; 0 without noise.
        networks: Number of different networks that the model is fitted to.
    """

    recommended: Architecture
    expected: float
    mean: float
    low: float
    high: float
    noise: float
    networks: int


@dataclass(frozen=True)
class PausedTraining:
    """A training that paused at a rung, projected to full length.

    Attributes:
        evaluation: Id of its evaluation.
        epochs: Epochs trained.
        score: Score at the rung.
        expected: Expected score of the whole training.
        std: Standard deviation of this score.
    """

    evaluation: str
    epochs: int
    score: float
    expected: float
    std: float


def expected_gain(
    space: Space, evaluations: Sequence[Evaluation], study: Study
) -> ExpectedGain | None:
    """Return what a study would gain by searching on.

    Args:
        space: The space of the study.
        evaluations: The history of the study.
        study: The study.

    Returns:
        The estimate; None where fewer than ten networks have a whole training, none of them meets
        the constraints, trainings differ in their hyperparameters, which the model does not know,
        or no model can be fitted.
    """
    observations, own_keys = observations_of(evaluations, study, joint=True)
    return gain_of(space, observations, own_keys)


def gain_of(
    space: Space, observations: Sequence[Observation], own_keys: Collection[str]
) -> ExpectedGain | None:
    """Return the expected gain of observations; see `expected_gain`.

    Args:
        space: The space.
        observations: Whole evaluations of finite score.
        own_keys: Functional keys of the networks that may be recommended.
    """
    groups = replicates(observations)
    if len(groups) < LEAST or not own_keys:
        return None

    if any(observation.hyperparameters for observation in observations):
        return None

    means = np.array([np.mean([seen.score for seen in group]) for group in groups])
    fitted_to = list(chain.from_iterable(most_of(groups, means)))
    order = np.argsort(-means, kind="stable").tolist()
    networks_of_study = []
    for number in order:
        network = groups[number][0].architecture
        if network.functional_key in own_keys:
            networks_of_study.append(network)

    noisy = is_noisy(observations)
    try:
        if isinstance(space.whole, Parameters):
            drawn = _of_configurations(space.whole, fitted_to, networks_of_study[:EVALUATED], noisy)
        else:
            drawn = _of_networks(space, fitted_to, networks_of_study[:EVALUATED], noisy)
    except NumericalError:
        return None

    return None if drawn is None else _summarise(drawn, networks_of_study, len(groups))


@dataclass(frozen=True, eq=False)
class _Drawn:
    """Joint samples of scores; the first candidates are evaluated networks.

    Attributes:
        scores: (S, C) float64.
        evaluated: Number of evaluated networks.
        noise: Standard deviation of an evaluation.
    """

    scores: Array
    evaluated: int
    noise: float


def _summarise(drawn: _Drawn, evaluated: Sequence[Architecture], networks: int) -> ExpectedGain:
    expected = drawn.scores[:, : drawn.evaluated].mean(axis=0)
    best = int(np.argmax(expected))
    gains = drawn.scores.max(axis=1) - drawn.scores[:, best]
    low, high = np.quantile(gains, [0.025, 0.975]).tolist()
    return ExpectedGain(
        evaluated[best],
        float(expected[best]),
        float(gains.mean()),
        low,
        high,
        drawn.noise,
        networks,
    )


def _of_configurations(
    space: Parameters,
    observations: Sequence[Observation],
    finished: Sequence[Architecture],
    noisy: bool,
) -> _Drawn | None:
    from archive.agents.base import History
    from archive.agents.configurations import process
    from archive.agents.configurations.candidates import Candidates
    from archive.agents.configurations.embedding import ArcEmbedding
    from archive.agents.configurations.history import Coder
    from archive.agents.configurations.search import EXACT_TRANSFORM, NOISY_TRANSFORM
    from archive.agents.surrogates import outcome_transforms
    from archive.agents.surrogates.threads import one_thread

    coder = Coder(space)
    coded = coder.read(History(tuple(observations)))
    rows = []
    for network in finished:
        row = coder.encode(network)
        if row is not None:
            rows.append(row)

    if len(rows) < len(finished) or not rows:
        return None

    evaluated = np.array(rows)
    rng = np.random.default_rng(0)
    scale = outcome_transforms.get(NOISY_TRANSFORM if noisy else EXACT_TRANSFORM).learn(
        coded.scores
    )
    data = process.without_replicates(coded.codes, scale.standardise(coded.scores))
    candidates = Candidates(space.parameters)
    with one_thread():
        models = process.fit(ArcEmbedding(space.parameters), data, noisy=noisy, rng=rng)

        def rank(codes: Array) -> Array:
            # The first has the greatest posterior density.
            expected, variances = models[0].predict(codes)
            ranks: Array = expected + _WIDE * np.sqrt(variances)
            return ranks

        promising, _ = candidates.search(rank, evaluated, (), PROMISING, rng)
        codes = np.vstack([evaluated, promising, candidates.sample(RANDOM, rng)])
        parts = [model.joint(codes) for model in models]

    means = np.stack([expected for expected, _ in parts])
    covariances = np.stack([covariance for _, covariance in parts])
    variances = np.diagonal(covariances, axis1=1, axis2=2)
    best = np.zeros(len(models))
    posterior = Posterior.of_standardised(scale, means, variances, best, covariances)
    noise = 0.0
    if noisy:
        noise = scale.spread * float(np.sqrt(np.mean([model.noise for model in models])))

    return _Drawn(scale.restore(posterior.sample(SAMPLES, rng)), len(finished), noise)


def _of_networks(
    space: Space, observations: Sequence[Observation], finished: Sequence[Architecture], noisy: bool
) -> _Drawn | None:
    from archive.agents.base import History
    from archive.agents.joint.candidates import JointCandidates
    from archive.agents.joint.model import JointCodes

    fitted = fit_networks(space, observations, noisy=noisy)
    if fitted is None:
        return None

    rng = np.random.default_rng(0)
    candidates = {network.functional_key: network for network in finished}
    evaluated = len(candidates)
    for network in _random_networks(space, rng):
        candidates.setdefault(network.functional_key, network)

    def rank(networks: Sequence[Architecture]) -> Array:
        expected = fitted.posterior([network.functional for network in networks])
        ranks: Array = expected.mean + _WIDE * expected.std
        return ranks

    joint = joint_space_of(space)
    if joint is not None:
        source = JointCandidates(space, joint, JointCodes(joint))
        history = History(tuple(observations))
        for entry in source.candidates(history, rank, PROMISING, rng):
            candidates.setdefault(entry.architecture.functional_key, entry.architecture)

    for _ in range(ROUNDS if space.searchable and joint is None else 0):
        networks = list(candidates.values())
        for row in np.argsort(-rank(networks), kind="stable")[:NEAR].tolist():
            for _ in range(NEIGHBOURS):
                child = space.mutate(networks[row], rng).child
                candidates.setdefault(child.functional_key, child)

    posterior = fitted.posterior(
        [network.functional for network in candidates.values()], joint=True
    )
    # All members have one transform.
    scores = posterior.scales[0].restore(posterior.sample(SAMPLES, rng))
    noise = 0.0
    if noisy:
        noise = float(np.sqrt(np.average(fitted.noises(), weights=fitted.weights)))

    return _Drawn(scores, evaluated, noise)


def _random_networks(space: Space, rng: np.random.Generator) -> Sequence[Architecture]:
    """Return every network of a small space, else random ones."""
    members = space.members()
    if members is None:
        return distinct_sample(space, DRAWN, rng) if space.searchable else []

    if len(members) <= 2 * DRAWN:
        return members

    positions = rng.choice(len(members), DRAWN, replace=False)
    return [members[position] for position in positions.tolist()]


def step_gains(evaluations: Sequence[Evaluation], study: Study) -> list[LengthGain]:
    """Return the gains of a study's trainings from rung to rung, or over their second half.

    A gain of the best score within a length. Only the best trainings of a rung continue, so that
    the others might gain more or less.

    Args:
        evaluations: Evaluations of the study with their curves.
        study: The study.
    """
    of_study = [evaluation for evaluation in evaluations if evaluation.study == study.name]
    rungs = Rungs.of(study.config)
    if rungs is not None:
        lengths = rungs.epochs
    else:
        trained = [seen.epochs for seen in of_study if seen.epochs and not seen.partial]
        longest = max(trained, default=0)
        if longest < 2:
            return []

        lengths = (longest // 2, longest)

    steps = []
    for begin, end in pairwise(lengths):
        gains = []
        for evaluation in of_study:
            # A training that was shorter by itself has no score of the longer length.
            if (evaluation.epochs or 0) < end:
                continue

            early = score_after(evaluation, begin, study.objective)
            late = score_after(evaluation, end, study.objective)
            if early is not None and late is not None and math.isfinite(late - early):
                gains.append(late - early)

        if gains:
            steps.append(_step(begin, end, np.array(gains)))

    return steps


def _step(begin: int, end: int, gains: Array) -> LengthGain:
    mean = float(gains.mean())
    low: float | None = None
    high: float | None = None
    if len(gains) > 1:
        half = WIDTH * float(gains.std(ddof=1)) / math.sqrt(len(gains))
        low = mean - half
        high = mean + half

    return LengthGain(begin, end, len(gains), mean, low, high)


def paused_trainings(evaluations: Sequence[Evaluation], study: Study) -> list[PausedTraining]:
    """Return the paused trainings of a study, the best expected score of a whole one first.

    Args:
        evaluations: The history of the study.
        study: The study.
    """
    paused = []
    projected = project_scores(evaluations, study.objective)
    for evaluation, projection in zip(evaluations, projected, strict=True):
        belongs = evaluation.study == study.name and evaluation.partial
        if belongs and evaluation.epochs and math.isfinite(projection.score):
            paused.append(
                PausedTraining(
                    evaluation.id,
                    evaluation.epochs,
                    evaluation.score,
                    projection.score,
                    math.sqrt(projection.variance),
                )
            )

    return sorted(paused, key=lambda training: -training.expected)

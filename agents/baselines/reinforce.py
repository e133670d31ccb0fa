"""REINFORCE on independent decisions, as in NAS-Bench-101 (Williams, 1992; Ying et al., 2019).

    symbol   meaning                                                              shape
    l        logits of decision d, 0 at first                                     (choices,)
    p        softmax(l), the distribution of choice d                             (choices,)
    r, b     a reward; moving average of the rewards, r included                  scalars
    m, a     momentum of the average, learning rate                               scalars

    log-likelihood   log pi(x) = sum over the decisions made of log p_d(x_d)
    its gradient     e_(x_d) - p_d for decision d
    update           l_d <- l_d + a (r - b) (e_(x_d) - p_d)
    baseline         b = u / w,  u <- m u + (1 - m) r,  w <- m w + 1 - m

The paper found a controller network trained by PPO no better than this.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import final

import numpy as np

from archive.agents.base import (
    Agent,
    AgentInfo,
    History,
    Suggestion,
    check_count,
    draw_new,
    keys_of,
)
from archive.agents.baselines.random_search import samples
from archive.agents.encodings import ABSENT, Decision, Vector, decisions_of
from archive.agents.surrogates.base import Array
from archive.errors import UsageError
from archive.spaces.base import Space


@final
class Reinforce(Agent):
    """Draws from a policy that is trained on the finished evaluations.

    The policy is recomputed from the history, one update for each evaluation, in order. The archive
    stores networks and no draws: if several vectors of decisions define one network, the one that
    `Decisions.encode` returns is rewarded. Evaluations of other agents count as draws from the
    policy. A draw that is not a member of the space, or is known, is repeated.

    Args:
        space: The search space: cells, or `mlp` and `cnn`, of which it finds chains only.
        learning_rate: a; 0.1 in NAS-Bench-101.
        momentum: m.
        standardise: Whether rewards are scores in units of their standard deviation. NAS-Bench-101
            uses accuracies in [0, 1]; with differences of a hundredth a policy needs thousands of
            evaluations, and scores of another unit need another learning rate.

    Raises:
        UsageError: A setting is out of range, or the space is not made of decisions.
    """

    kind = "reinforce"
    info = AgentInfo(
        summary="policy gradient on independent decisions",
        paper="Williams, 1992; Ying et al., 2019 (NAS-Bench-101)",
        cost="O(n)",
        when="reinforcement-learning baseline; thousands of evaluations",
    )

    def __init__(
        self,
        space: Space,
        learning_rate: float = 0.3,
        momentum: float = 0.9,
        standardise: bool = True,
    ) -> None:
        """Check and keep the settings."""
        super().__init__(space)
        if not learning_rate > 0.0:
            raise UsageError(f"learning_rate must be > 0, got {learning_rate}")

        if not 0.0 <= momentum < 1.0:
            raise UsageError(f"momentum must be in [0, 1), got {momentum}")

        self.learning_rate = learning_rate
        self.momentum = momentum
        self.standardise = standardise
        self._decisions = decisions_of(space, self.kind)

    def propose(self, history: History, n: int, rng: np.random.Generator) -> list[Suggestion]:
        """See `Agent.propose`."""
        check_count(n)
        probabilities = [softmax(logits) for logits in self.policy(history)]

        def draw() -> Suggestion | None:
            network = self._decisions.decode(self._draw(probabilities, rng))
            return None if network is None else Suggestion(network)

        suggestions = draw_new(draw, n, history.known)
        taken = {*history.known, *keys_of(suggestions)}
        return [*suggestions, *samples(self.space, n - len(suggestions), taken, rng)]

    def policy(self, history: History) -> list[Array]:
        """Return the logits of every decision after all evaluations, (choices,) float64 each."""
        scores = history.scores
        scale = float(scores.std()) if self.standardise and len(scores) else 1.0
        rewarded = []
        for observation in history.usable:
            vector = self._decisions.encode(observation.architecture)
            if vector is not None:
                rewarded.append((vector, observation.score / (scale or 1.0)))

        return replay(self._decisions.decisions, rewarded, self.learning_rate, self.momentum)

    def _draw(self, probabilities: Sequence[Array], rng: np.random.Generator) -> Vector:
        vector: list[int] = []
        for p in probabilities:
            vector.append(
                int(rng.choice(len(p), p=p)) if self._decisions.needed(vector) else ABSENT
            )

        return tuple(vector)


def replay(
    decisions: Sequence[Decision],
    rewarded: Iterable[tuple[Vector, float]],
    learning_rate: float,
    momentum: float,
) -> list[Array]:
    """Return the logits after one update for each pair of decisions made and reward, in order."""
    logits = [np.zeros(len(decision.choices)) for decision in decisions]
    numerator = denominator = 0.0
    for vector, reward in rewarded:
        numerator = momentum * numerator + (1.0 - momentum) * reward
        denominator = momentum * denominator + 1.0 - momentum
        advantage = reward - numerator / denominator
        for weights, step in zip(logits, gradient(logits, vector), strict=True):
            weights += learning_rate * advantage * step

    return logits


def gradient(logits: Sequence[Array], vector: Vector) -> list[Array]:
    """Return the gradient of log pi(made) for each decision, 0 for those that were not made."""
    steps = []
    for weights, choice in zip(logits, vector, strict=True):
        step = np.zeros_like(weights)
        if choice != ABSENT:
            step -= softmax(weights)
            step[choice] += 1.0

        steps.append(step)

    return steps


def softmax(logits: Array) -> Array:
    """Return p: (choices,) float64."""
    weights = np.exp(logits - logits.max())
    probabilities: Array = weights / weights.sum()
    return probabilities

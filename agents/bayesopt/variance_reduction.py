"""Initial design by integrated variance reduction (active learning Cohn, ALC).

| symbol | meaning                                                                            | shape  |
|--------|------------------------------------------------------------------------------------|--------|
| R      | reference networks: members of the space or draws from it                          | (r,)   |
| C      | covariance of their scores, given the scores of the known networks                 | (r, r) |
| e      | noise of an evaluation: `NOISE` of the mean variance that the known networks leave | scalar |

    the next of R = argmax_i  sum_j C_ij^2 / (C_ii + e),   then C <- C - C_i C_i^T / (C_ii + e)

The maximised sum is the reduction of the total variance over R by an evaluation of network i (Cohn,
Ghahramani, Jordan: Active learning with statistical models, 1996). Variances do not depend on
scores, so that a design needs none. The alternative, a maximin design, selects outliers that carry
little information about the rest of the space.

`space_design` is the initial design of `archive.agents.bayesopt.portfolio`, given the networks that
are evaluated or pending. Its reference networks are a sample of a space's members, or random draws
and the initial pool of a space that cannot be listed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np

from archive.agents.base import History, Suggestion, distinct
from archive.agents.baselines.random_search import samples
from archive.agents.surrogates.base import Array
from archive.agents.surrogates.gp.exact import GaussianProcess
from archive.agents.surrogates.gp.fitted import Pairwise
from archive.architecture.graph import Architecture
from archive.architecture.networks import architectures_of, functional_forms, take
from archive.kernels.covariance.base import Covariance
from archive.spaces.base import Space

if TYPE_CHECKING:
    from archive.agents.bayesopt.portfolio_members import MemberModel

NOISE = 0.01
"""Noise variance of an evaluation, as a share of the mean variance over R.

The noise of a known network is a share of its prior variance. Hence a design that is requested in parts
may differ from one that is requested at once."""


def alc_design(
    reference: Sequence[Architecture],
    evaluated: Sequence[Architecture],
    count: int,
    pairwise: Pairwise,
    covariance: Covariance,
) -> list[int]:
    """Return the networks of an initial design.

    Args:
        reference: R, at least one network.
        evaluated: Networks that are evaluated or pending.
        count: Number of networks to return.
        pairwise: Computes the distances.
        covariance: Covariance as a function of the distances, evaluated at the centre of its
            parameters' bounds.

    Returns:
        `count` positions in R, or all if R is smaller, by descending reduction of variance.
    """
    remaining = _conditional_covariance(reference, evaluated, pairwise, covariance)
    noise = NOISE * float(remaining.diagonal().mean()) or NOISE
    free = np.ones(len(reference), bool)
    design: list[int] = []
    while len(design) < min(count, len(reference)):
        gains = np.square(remaining).sum(axis=0) / (np.maximum(remaining.diagonal(), 0.0) + noise)
        best = int(np.argmax(np.where(free, gains, -np.inf)))
        design.append(best)
        free[best] = False
        column = remaining[:, best].copy()
        remaining = remaining - np.outer(column, column) / (max(column[best], 0.0) + noise)

    return design


def _conditional_covariance(
    reference: Sequence[Architecture],
    evaluated: Sequence[Architecture],
    pairwise: Pairwise,
    covariance: Covariance,
) -> Array:
    """Return C: (r, r) float64."""
    inner = pairwise.distances(reference).stack
    theta = covariance.bounds(inner).mean(axis=1)
    prior: Array = covariance.value(inner, theta)
    if not evaluated:
        return prior

    gram = covariance.value(pairwise.distances(evaluated).stack, theta)
    process = GaussianProcess.condition_repaired(
        gram, np.zeros(len(evaluated)), NOISE * float(gram.diagonal().mean())
    )
    cross = covariance.value(pairwise.distances(evaluated, reference).stack, theta)
    return process.predict_jointly(cross, prior)[1]


LISTED = 1000
DRAWN = 100
"""Reference networks: members of a listed space, or draws from another."""


def space_design(
    space: Space, model: MemberModel, history: History, count: int, rng: np.random.Generator
) -> list[Suggestion]:
    """Return a design over the whole space, at most `count` networks.

    Args:
        space: The search space.
        model: Distances and covariance of the networks.
        history: The history. Known networks are left out; the design is given those that have a
            score or are pending.
        count: Number of networks to return.
        rng: Draws the reference networks.
    """
    reference = _reference(space, history.known, rng) if count else []
    if not reference:
        return []

    conditioned = functional_forms(history.observed_or_pending)
    functional = functional_forms(reference)
    design = alc_design(functional, conditioned, count, model.pairwise, model.covariance)
    return [Suggestion(reference[index]) for index in design]


def _reference(
    space: Space, taken: Collection[str], rng: np.random.Generator
) -> list[Architecture]:
    members = space.members()
    if members is not None:
        drawn = rng.permutation(len(members))[:LISTED]
        return distinct(take(members, drawn), taken)

    drawn_networks = architectures_of(samples(space, DRAWN, taken, rng))
    return distinct([*space.initial_pool(rng), *drawn_networks], taken)

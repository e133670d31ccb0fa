"""Probability of feasibility, as a part of the posterior that acquisitions see.

| symbol   | meaning                                                                         | shape  |
|----------|---------------------------------------------------------------------------------|--------|
| m        | query architectures                                                             | scalar |
| mu, s, w | posterior mean and standard deviation of the slack g of a measured quantity, by | (S, m) |
|          | member of a mixture, and the weights of the members                             |        |
| PoF      | P(g >= 0) = sum_s w_s Phi(mu_s / s_s), multiplied over the measured quantities  | (m,)   |
| tau      | incumbent: the greatest posterior mean of the score among the networks that     | (S,)   |
|          | meet the constraints                                                            |        |

An acquisition is multiplied by PoF (Schonlau, Welch and Jones, 1998; Gardner et al., Bayesian
optimization with inequality constraints, 2014). Before one result meets the constraints there is no
incumbent, and PoF alone is maximised. Quantities are modelled independently, by the Gaussian
processes of `archive.agents.bayesopt.portfolio` on standardised slacks: resolution must not depend
on the distance from the bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import final

import numpy as np
from scipy.special import log_ndtr

from archive.agents.acquisition.listing import Listing
from archive.agents.base import History
from archive.agents.bayesopt.portfolio_members import defaults, is_cheap, member_model
from archive.agents.observations import LARGEST
from archive.agents.surrogates.base import (
    LEAST_STD,
    Array,
    Feasibility,
    Fitted,
    Posterior,
    Surrogate,
)
from archive.agents.surrogates.stacking import StackedGP
from archive.architecture.graph import Architecture
from archive.architecture.networks import (
    functional_forms,
    network_keys,
    networks_by_key,
    take,
)
from archive.spaces.base import Space

TRANSFORM = "standardise"
"""Outcome transform of slacks: linear, since the bound may lie anywhere among the values."""


@final
@dataclass(frozen=True, eq=False)
class SlackModels:
    """Fitted surrogates of the slacks of the measured quantities.

    Attributes:
        fitted: One surrogate for each measured quantity with a known value. A quantity without one
            has PoF 1.
    """

    fitted: tuple[Fitted, ...]

    @classmethod
    def fit(cls, surrogate: Surrogate, history: History, rng: np.random.Generator) -> SlackModels:
        """Fit a surrogate to the known slacks of each measured quantity of a history."""
        constraints = history.constraints
        if constraints is None or not constraints.measured or not history.usable:
            return cls(())

        slacks = constraints.slacks(history.usable)
        networks = history.inputs
        fitted = []
        for position in constraints.measured:
            rows = np.flatnonzero(np.abs(slacks[:, position]) <= LARGEST)
            if len(rows):
                inputs = take(networks, rows)
                fitted.append(surrogate.fit(inputs, slacks[rows, position], rng))

        return cls(tuple(fitted))

    def log_probability(self, architectures: Sequence[Architecture]) -> Array:
        """Return log PoF: (m,) float64, never NaN."""
        networks = functional_forms(architectures)
        total = np.zeros(len(architectures))
        for model in self.fitted:
            posterior = model.posterior(networks)
            logs = log_ndtr(posterior.means / np.maximum(np.sqrt(posterior.variances), LEAST_STD))
            total += posterior.log_average(logs)

        return np.maximum(total, np.finfo(np.float64).min)

    def hallucinate(self, architectures: Sequence[Architecture]) -> SlackModels:
        """Return the models conditioned on fantasies of networks; see `Fitted.hallucinate`."""
        networks = functional_forms(architectures)
        return SlackModels(tuple(model.hallucinate(networks) for model in self.fitted))


@final
@dataclass(frozen=True, eq=False)
class ConstrainedPosterior(Fitted):
    """A fitted surrogate of the score with the incumbent tau, and with PoF in its posterior.

    Attributes:
        fitted: The surrogate of the score.
        incumbents: Networks that meet the constraints: observed ones, and pending ones of which PoF
            is at least 1/2.
        observed: Networks with a result, at least one.
        slacks: The models of the slacks.
    """

    fitted: Fitted
    incumbents: tuple[Architecture, ...]
    observed: tuple[Architecture, ...]
    slacks: SlackModels

    @cached_property
    def best(self) -> Array | None:
        """The incumbent's (transformed) score tau, by member: (S,) float64; None without one."""
        return self.fitted.posterior(self.incumbents).means.max(axis=1) if self.incumbents else None

    @cached_property
    def floor(self) -> float:
        """The lowest expected (transformed) score of a network with a result."""
        return float(self.fitted.posterior(self.observed).mean.min())

    def posterior(self, architectures: Sequence[Architecture], *, joint: bool = False) -> Posterior:
        """See `Fitted.posterior`."""
        inner = self.fitted.posterior(architectures, joint=joint)
        probability = self.slacks.log_probability(architectures)
        feasibility = Feasibility(probability, self.floor, self.best is not None)
        return replace(
            inner, best=inner.best if self.best is None else self.best, feasibility=feasibility
        )

    def hallucinate(self, architectures: Sequence[Architecture]) -> ConstrainedPosterior:
        """See `Fitted.hallucinate`.

        The scores of fantasies count for the incumbent where PoF is at least 1/2.
        """
        if len(architectures) == 0:
            return self

        probable = self.slacks.log_probability(architectures) >= np.log(0.5)
        incumbents = list(self.incumbents)
        if incumbents:
            # Before one result meets the constraints, the search is for the first one, which a
            # fantasy cannot be.
            keys = set(network_keys(incumbents))
            for architecture, is_probable in zip(architectures, probable, strict=True):
                if is_probable and architecture.key not in keys:
                    incumbents.append(architecture)

        return ConstrainedPosterior(
            self.fitted.hallucinate(architectures),
            tuple(incumbents),
            self.observed,
            self.slacks.hallucinate(architectures),
        )

    def noises(self) -> Array | None:
        """See `Fitted.noises`."""
        return self.fitted.noises()

    def task_correlations(self) -> Mapping[str, float]:
        """See `Fitted.task_correlations`."""
        return self.fitted.task_correlations()


def add_feasibility(
    fitted: Fitted,
    history: History,
    networks: Sequence[Architecture],
    surrogate: Surrogate,
    rng: np.random.Generator,
) -> Fitted:
    """Return a fitted surrogate with the probability of feasibility.

    The surrogate is returned unchanged if all constraints are on known quantities and all results
    meet them, or if no result has a measured quantity.

    Args:
        fitted: The surrogate of the scores, before any fantasy.
        history: The history that it was fitted to.
        networks: The networks of `history.usable` in their order, in the form that it was fitted
            to.
        surrogate: Model of the slacks.
        rng: Source of randomness.
    """
    constraints = history.constraints
    if constraints is None:
        return fitted

    met = history.met
    if met.all() and not constraints.measured:
        return fitted

    distinct = networks_by_key(networks)
    incumbents: dict[str, Architecture] = {}
    for network, meets in zip(networks, met, strict=True):
        if meets:
            incumbents[network.key] = network

    if not incumbents and not constraints.measured:
        # All candidates meet the constraints and no result does: improvement is measured from the
        # worst result.
        worst = networks[int(np.argmin(history.scores))]
        incumbents[worst.key] = worst

    slacks = SlackModels.fit(surrogate, history, rng)
    if constraints.measured and not slacks.fitted:
        # No result has a measured quantity, so all networks are equally likely to be feasible.
        return fitted

    return ConstrainedPosterior(
        fitted, tuple(incumbents.values()), tuple(distinct.values()), slacks
    )


def default_slacks(space: Space, listing: Listing | None = None) -> Surrogate:
    """Return the model of measured quantities for agents that have no other.

    It stacks the Gaussian processes of `archive.agents.bayesopt.portfolio` with cheap distances.

    Args:
        space: The search space.
        listing: The networks of a listed space.
    """
    members = []
    for name in defaults(space):
        if is_cheap(name, space):
            members.append(member_model(name, space, listing).surrogate(TRANSFORM))

    return StackedGP(members)

"""Presets of the agents with a Gaussian process: the default choices, and the papers'."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from archive.agents.surrogates.gp.distance import LearnedNoise
from archive.agents.surrogates.gp.marginal_likelihood import MarginalLikelihood


@dataclass(frozen=True)
class GPPreset:
    """Values of a preset; a setting that is None (`BatchOptions`) keeps them.

    Attributes:
        acquisition: `ei`, `pi`, `ucb`, `its`; or `ts`: joint samples among the best by UCB.
        kappa: Weight of the uncertainty in UCB.
        transform: A name of `archive.agents.surrogates.outcome_transforms`.
        candidates: A name of `archive.agents.acquisition.candidate_generators`.
        batch_rule: A name of `archive.agents.acquisition.batch`.
        learning: Inference of the hyperparameters.
        noise: Prior of the noise.
        shared: Whether the prior of a component's weight falls with the number of components.
        repeats: See `archive.agents.bayesopt.model_based.Method`.
    """

    acquisition: str
    kappa: float
    transform: str
    candidates: str
    batch_rule: str
    learning: MarginalLikelihood
    noise: LearnedNoise
    shared: bool
    repeats: bool


PRESETS: Mapping[str, GPPreset] = MappingProxyType(
    {
        "default": GPPreset(
            acquisition="ei",
            kappa=2.0,
            transform="compress-below-median",
            candidates="auto",
            batch_rule="believer",
            # Log-normal with standard deviations of about 1.5 for length scales and 1 for noise.
            # From 300 networks on, further ones change the hyperparameters too little to change a
            # decision.
            learning=MarginalLikelihood(starts=2, prior=0.25, observations=300, subset_size=100),
            noise=LearnedNoise(1e-4, 1.0),
            shared=True,
            repeats=True,
        ),
        "paper": GPPreset(
            acquisition="ucb",
            kappa=2.0,
            transform="standardise",
            candidates="pool",
            batch_rule="believer",
            learning=MarginalLikelihood(starts=5, prior=None, observations=300, subset_size=100),
            noise=LearnedNoise(),
            shared=False,
            repeats=False,
        ),
    }
)

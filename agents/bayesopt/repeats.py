"""Repeats: another evaluation of an observed network where it promises more than the best new one.

The gains are from `archive.agents.surrogates.noisy_incumbent`, for any acquisition that ranks
the new networks. A repeat adds nothing where the model is certain of a network, or certain that it
is not the best. Once all networks of a space are known, the rest of the budget goes to repeats.
"""

from __future__ import annotations

from collections.abc import Set

import numpy as np

from archive.agents.acquisition.functions import ExpectedImprovement, repeat_gains
from archive.agents.base import History, Suggestion
from archive.agents.surrogates.noisy_incumbent import NoisyIncumbent
from archive.architecture.graph import Architecture
from archive.spaces.base import Space

_UNUSED = np.random.default_rng(0)
"""Argument of `ExpectedImprovement.rank`, which draws no random numbers."""


def repeats(
    history: History, model: NoisyIncumbent, best_new: Architecture | None, n: int, space: Space
) -> tuple[list[Suggestion], NoisyIncumbent]:
    """Return the repeats among the next `n` suggestions, and the model with their fantasies.

    Args:
        history: The history.
        model: The fitted surrogate, conditioned on fantasies of pending proposals.
        best_new: The new network of the greatest acquisition; None if there is none: any gain then
            justifies a repeat.
        n: Number of suggestions, at least 1.
        space: The search space.
    """
    allowed = _repeatable(history, {network.functional_key for network in model.networks}, space)
    repeated: list[Suggestion] = []
    while len(repeated) < n and allowed:
        gains = repeat_gains(model.observed)
        rows = enumerate(model.networks)
        repeatable = [row for row, network in rows if network.functional_key in allowed]
        best = max(repeatable, key=lambda row: float(gains[row]), default=None)
        if best is None or not gains[best] > _new_gain(model, best_new):
            break

        network = model.networks[best]
        predicted = model.posterior([network]).in_scores()
        repeated.append(
            Suggestion(
                allowed.pop(network.functional_key),
                acquisition=float(np.exp(gains[best])),
                mean=float(predicted.mean[0]),
                std=float(predicted.std[0]),
                task_correlations=model.task_correlations(),
                repeat=True,
            )
        )
        model = model.hallucinate([network])

    return repeated, model


def _new_gain(model: NoisyIncumbent, network: Architecture | None) -> float:
    if network is None:
        return -np.inf

    return float(ExpectedImprovement().rank(model.posterior([network.functional]), _UNUSED)[0])


def _repeatable(history: History, keys: Set[str], space: Space) -> dict[str, Architecture]:
    """Return the networks that may be evaluated again, by key: not pending, not failed.

    Args:
        history: The history.
        keys: Functional keys to look for. Checking that networks belong to the space takes too long
            for all results of a long history.
        space: The search space.

    Returns:
        For each key, the network of its latest evaluation.
    """
    missing = set(keys) - {entry.architecture.functional_key for entry in history.pending}
    missing -= {network.functional_key for network in history.failed}
    repeatable: dict[str, Architecture] = {}
    for observation in reversed(history.usable):
        if not missing:
            break

        network = observation.architecture
        # An evaluation with hyperparameters is of another configuration, which the surrogate does
        # not model.
        if (
            network.functional_key in missing
            and not observation.hyperparameters
            and space.contains(network)
        ):
            repeatable[network.functional_key] = network
            missing.remove(network.functional_key)

    return repeatable

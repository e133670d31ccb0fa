r"""Scaling laws: losses by parameters and tokens, and their robust fit.

| symbol | meaning                                                                   | shape |
|--------|---------------------------------------------------------------------------|-------|
| N, D   | parameters; tokens of the training                                        | (n,)  |
| F      | operations of a training, 6 N D (Kaplan et al., 2020, section 2.1)        | (n,)  |
| u, v   | log(N / N0), log(D / D0), with the geometric means of the runs N0 and D0  | (n,)  |
| L      | loss, greater than 0                                                      | (n,)  |
| theta  | coefficients of a law                                                     | (p,)  |

| law          | L                                               | source                            |
|--------------|-------------------------------------------------|-----------------------------------|
| `power`      | (Fc / F)^gamma                                  | Kaplan et al., 2020, eq. 1.3, by  |
|              |                                                 | the operations                    |
| `kaplan`     | [(Nc / N)^(alphaN / alphaD) + Dc / D]^alphaD    | Kaplan et al., 2020, eq. 1.5      |
| `chinchilla` | E + A / N^alpha + B / D^beta                    | Hoffmann et al., 2022, eq. 2      |

Each is fitted to logarithms by the sum of Huber losses with a threshold delta (Hoffmann et al., 2022,
eq. 3 and appendix D.3: delta = 1e-3, by L-BFGS from a grid of starts).

With few runs, of little range, the coefficients are not determined. `fit_with_prior` adds normal
priors, that the parts of a law are of the losses' own order and the exponents of the papers', and
begins at their centre.

J. Kaplan et al., Scaling Laws for Neural Language Models, 2020. J. Hoffmann et al., Training
Compute-Optimal Large Language Models, 2022.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import ClassVar, final

import numpy as np
from scipy.optimize import minimize

from archive.agents.surrogates.base import Array
from archive.errors import UnknownNameError, UsageError

OPERATIONS = 6.0
"""Operations of a training for each parameter and token."""
DELTA = 1e-3
"""delta of Hoffmann et al."""
PRIOR_DELTA = 0.05
"""delta with a prior: the usual difference of designs of one size, of log L."""
_STARTS = 3
"""Points of the grid from which the fit climbs."""


class LawForm(ABC):
    """A formula of losses.

    Attributes:
        name: Its name.
        coefficients: Names of theta.
        stds: (p,) standard deviations of the prior.
    """

    name: ClassVar[str]
    coefficients: ClassVar[tuple[str, ...]]
    stds: ClassVar[tuple[float, ...]]

    @abstractmethod
    def log_loss(self, theta: Array, u: Array, v: Array) -> Array:
        """Return log L: (n,) float64."""

    @abstractmethod
    def centre(self, middle: float) -> Array:
        """Return the mean of the prior, (p,), for runs with a median log L."""

    @abstractmethod
    def grid(self, middle: float) -> list[Array]:
        """Return starts of a fit without a prior."""


@final
class PowerForm(LawForm):
    """A power of the operations: theta = (log L at N0 and D0, gamma)."""

    name = "power"
    coefficients = ("log_scale", "exponent")
    stds = (1.0, 0.1)

    def log_loss(self, theta: Array, u: Array, v: Array) -> Array:
        """See `LawForm.log_loss`."""
        logs: Array = theta[0] - theta[1] * (u + v)
        return logs

    def centre(self, middle: float) -> Array:
        """See `LawForm.centre`."""
        return np.array([middle, 0.05])

    def grid(self, middle: float) -> list[Array]:
        """See `LawForm.grid`."""
        return [np.array([middle, exponent]) for exponent in (0.02, 0.05, 0.1, 0.3)]


@final
class KaplanForm(LawForm):
    """Kaplan's law of both: theta = (alphaN log Nc / N0, alphaD log Dc / D0, alphaN, alphaD)."""

    name = "kaplan"
    coefficients = ("params_scale", "tokens_scale", "params_exponent", "tokens_exponent")
    stds = (0.7, 0.7, 0.05, 0.05)

    def log_loss(self, theta: Array, u: Array, v: Array) -> Array:
        """See `LawForm.log_loss`."""
        power = max(float(theta[3]), 1e-6)
        by_params = (theta[0] - theta[2] * u) / power
        by_tokens = (theta[1] - theta[3] * v) / power
        logs: Array = power * np.logaddexp(by_params, by_tokens)
        return logs

    def centre(self, middle: float) -> Array:
        """See `LawForm.centre`."""
        return np.array([middle - 0.1, middle - 0.1, 0.076, 0.095])

    def grid(self, middle: float) -> list[Array]:
        """See `LawForm.grid`."""
        starts = []
        shifts = (-1.0, -0.1)
        exponents = (0.05, 0.1, 0.3)
        for first, second, alpha, beta in product(shifts, shifts, exponents, exponents):
            starts.append(np.array([middle + first, middle + second, alpha, beta]))

        return starts


@final
class ChinchillaForm(LawForm):
    """Hoffmann's law: theta = (log A / N0^alpha, log B / D0^beta, log E, alpha, beta)."""

    name = "chinchilla"
    coefficients = (
        "params_scale",
        "tokens_scale",
        "irreducible",
        "params_exponent",
        "tokens_exponent",
    )
    stds = (1.0, 1.0, 0.4, 0.15, 0.15)

    def log_loss(self, theta: Array, u: Array, v: Array) -> Array:
        """See `LawForm.log_loss`."""
        parts = np.logaddexp(theta[0] - theta[3] * u, theta[1] - theta[4] * v)
        logs: Array = np.logaddexp(parts, theta[2])
        return logs

    def centre(self, middle: float) -> Array:
        """See `LawForm.centre`."""
        shares = np.log([0.25, 0.25, 0.5])
        return np.array([*(middle + shares), 0.35, 0.35])

    def grid(self, middle: float) -> list[Array]:
        """See `LawForm.grid`."""
        starts = []
        shifts = (-4.0, -2.0, -1.0, -0.3)
        exponents = (0.2, 0.5, 0.9)
        for shares in product(shifts, shifts, shifts):
            for alpha, beta in product(exponents, exponents):
                starts.append(np.array([*(middle + np.array(shares)), alpha, beta]))

        return starts


FORMS: dict[str, LawForm] = {
    form.name: form for form in (PowerForm(), KaplanForm(), ChinchillaForm())
}


@dataclass(frozen=True, eq=False)
class ScalingLaw:
    """A fitted law.

    Attributes:
        form: The formula.
        theta: (p,) float64.
        log_params: log N0.
        log_tokens: log D0.
    """

    form: LawForm
    theta: Array
    log_params: float
    log_tokens: float

    def log_loss(self, params: Array, tokens: Array) -> Array:
        """Return log L of N and D: (n,) float64."""
        u = np.log(params) - self.log_params
        v = np.log(tokens) - self.log_tokens
        return self.form.log_loss(self.theta, u, v)

    def loss(self, params: Array, tokens: Array) -> Array:
        """Return L of N and D: (n,) float64."""
        losses: Array = np.exp(self.log_loss(params, tokens))
        return losses


def get(name: str) -> LawForm:
    """Return a formula by its name.

    Raises:
        UnknownNameError: There is none.
    """
    if name not in FORMS:
        raise UnknownNameError("scaling law", name, tuple(FORMS))

    return FORMS[name]


def fit(
    form: LawForm, params: Array, tokens: Array, losses: Array, delta: float = DELTA
) -> ScalingLaw:
    """Return the law of runs, as Hoffmann et al. fit it.

    Args:
        form: The formula.
        params: (n,) N.
        tokens: (n,) D.
        losses: (n,) L.
        delta: Error of log L beyond which the Huber loss is linear.

    Raises:
        UsageError: There are no more runs than coefficients, or a number is not greater than 0.
    """
    check_runs(params, tokens, losses)
    least = len(form.coefficients) + 1
    if len(losses) < least:
        raise UsageError(f"the scaling law {form.name} needs {least} runs, got {len(losses)}")

    targets = np.log(losses)
    u, log_params = _centred(params)
    v, log_tokens = _centred(tokens)

    def objective(theta: Array) -> float:
        return _huber(form.log_loss(theta, u, v) - targets, delta) / delta

    starts = sorted(form.grid(float(np.median(targets))), key=objective)
    theta = _climb(objective, starts[:_STARTS])
    return ScalingLaw(form, theta, log_params, log_tokens)


def fit_with_prior(
    form: LawForm, params: Array, tokens: Array, losses: Array, start: Array | None = None
) -> ScalingLaw:
    """Return the law of runs of the greatest posterior density.

    Args:
        form: The formula.
        params: (n,) N, n at least 1.
        tokens: (n,) D.
        losses: (n,) L.
        start: theta of the first step; None for the mean of the prior.

    Raises:
        UsageError: A number is not greater than 0.
    """
    check_runs(params, tokens, losses)
    targets = np.log(losses)
    u, log_params = _centred(params)
    v, log_tokens = _centred(tokens)
    centre = form.centre(float(np.median(targets)))
    stds = np.array(form.stds)

    def objective(theta: Array) -> float:
        errors = form.log_loss(theta, u, v) - targets
        penalty = 0.5 * float(np.square((theta - centre) / stds).sum())
        return _huber(errors, PRIOR_DELTA) / PRIOR_DELTA**2 + penalty

    theta = _climb(objective, [centre if start is None else start])
    return ScalingLaw(form, theta, log_params, log_tokens)


def check_runs(params: Array, tokens: Array, losses: Array) -> None:
    """Check that all numbers have a logarithm.

    Raises:
        UsageError: One is not finite, or not greater than 0.
    """
    for name, values in (("parameters", params), ("tokens", tokens), ("losses", losses)):
        wrong = ~(np.isfinite(values) & (values > 0.0))
        if wrong.any():
            raise UsageError(f"{name} of a scaling law must be > 0, got {values[wrong][0]:g}")


def _centred(values: Array) -> tuple[Array, float]:
    logs = np.log(values)
    middle = float(logs.mean())
    return logs - middle, middle


def _huber(errors: Array, delta: float) -> float:
    sizes = np.abs(errors)
    return float(np.where(sizes <= delta, 0.5 * sizes**2, delta * (sizes - 0.5 * delta)).sum())


def _climb(objective: Callable[[Array], float], starts: Sequence[Array]) -> Array:
    """Return the best optimum of local searches."""
    optima = []
    for start in starts:
        options = {"maxiter": 200}
        optima.append(minimize(objective, start, method="L-BFGS-B", options=options))

    best = min(optima, key=lambda optimum: float(optimum.fun))
    return np.asarray(best.x, np.float64)

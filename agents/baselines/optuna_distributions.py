"""Parameters of a space as distributions of Optuna, and configurations as its trials.

| domain      | distribution                                                  |
|-------------|---------------------------------------------------------------|
| real        | `FloatDistribution`, with its step and its log scale          |
| integer     | `IntDistribution`, with its step and its log scale            |
| choice      | `CategoricalDistribution` of JSON texts                       |
| ordinal     | `IntDistribution` of positions                                |

A parameter with one value is no parameter for Optuna. A parameter that does not exist is not
suggested (define-by-run), and is missing in a trial.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from archive.architecture.graph import Architecture
from archive.errors import InvalidArchitectureError
from archive.exchange.importers.optuna.distributions import number_distribution
from archive.parameters.domains import Choice, Domain, json_text
from archive.parameters.ranges import Integer, Real
from archive.spaces.parameters import Parameters

if TYPE_CHECKING:
    import optuna


class NativeDistributions:
    """The distributions of one space.

    Args:
        space: The space.
        package: The module `optuna`.

    Attributes:
        distributions: By the name of the parameter, of those with two values or more.
    """

    def __init__(self, space: Parameters, package: Any) -> None:
        """Make the distributions."""
        self.space = space
        self.distributions: dict[str, Any] = {}
        for parameter in space.parameters.parameters:
            if parameter.domain.size > 1:
                self.distributions[parameter.name] = _distribution(parameter.domain, package)

    def params(self, architecture: Architecture) -> dict[str, Any] | None:
        """Return the parameters of a configuration as a trial has them; None outside the space."""
        try:
            values = self.space.named(architecture)
        except InvalidArchitectureError:
            return None

        return self.params_of_values(values)

    def params_of_values(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return values by flat name as a trial has them."""
        params: dict[str, Any] = {}
        for name, value in values.items():
            if name in self.distributions:
                params[name] = _to_trial(self.space.parameters[name].domain, value)

        return params

    def values_of_params(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters of a trial as values by flat name, the inverse."""
        values: dict[str, Any] = {}
        for name, param in params.items():
            values[name] = _from_trial(self.space.parameters[name].domain, param)

        return values

    def draw(self, trial: optuna.Trial) -> Architecture | None:
        """Return the configuration that a trial suggests; None if constraints forbid it."""
        values: dict[str, Any] = {}
        for parameter in self.space.parameters.parameters:
            if not parameter.exists(values):
                continue

            if parameter.name not in self.distributions:
                values[parameter.name] = parameter.central
                continue

            suggested = _suggest(trial, parameter.name, self.distributions[parameter.name])
            values[parameter.name] = _from_trial(parameter.domain, suggested)

        return self.space.network_of(values) if self.space.parameters.allows(values) else None


def _distribution(domain: Domain, package: Any) -> Any:
    if isinstance(domain, Integer | Real):
        return number_distribution(domain, package)

    assert isinstance(domain, Choice), "a constant has one value"
    if domain.ordered:
        return package.distributions.IntDistribution(0, len(domain.options) - 1)

    return package.distributions.CategoricalDistribution(list(map(json_text, domain.options)))


def _suggest(trial: optuna.Trial, name: str, distribution: Any) -> Any:
    """Return the value that a trial suggests for a distribution."""
    if hasattr(distribution, "choices"):
        return trial.suggest_categorical(name, distribution.choices)

    low = distribution.low
    high = distribution.high
    if isinstance(low, int):
        return trial.suggest_int(name, low, high, step=distribution.step, log=distribution.log)

    return trial.suggest_float(name, low, high, step=distribution.step, log=distribution.log)


def _to_trial(domain: Domain, value: Any) -> Any:
    if not isinstance(domain, Choice):
        return value

    return domain.position(value) if domain.ordered else json_text(value)


def _from_trial(domain: Domain, value: Any) -> Any:
    if not isinstance(domain, Choice):
        # Optuna adds up the steps of a grid in binary.
        return domain.normal(value)

    if domain.ordered:
        return domain.options[value]

    for option in domain.options:
        if json_text(option) == value:
            return option

    raise AssertionError("a text that was not offered")

"""Networks as decisions of their space, and as configurations of the agent `arc`.

Configurations have conditional parameters of a multi-layer perceptron and of its training:

Swersky, Duvenaud, Snoek, Hutter, Osborne: Raiders of the Lost Architecture (2014). The parameters
are defined here for networks of a space and for the trainer's hyperparameters, as an
`archive.parameters` space:

| parameter                          | exists          | meaning                                                     |
|------------------------------------|-----------------|-------------------------------------------------------------|
| depth                              | always          | hidden layers, up to 5                                      |
| units_l, activation_l              | depth >= l      | hidden layer l; a fixed activation is no parameter          |
| training: `protocol` or `own`      | always          | whether the configuration has training hyperparameters      |
| learning_rate_l, norm_l, dropout_l | own, depth >= l | `learning_rate`, `max_norm` of layer l, `dropout` behind it |
| learning_rate_output, norm_output  | own             | the decision layer                                          |
| dropout_input                      | own             | `dropout` of the network's input                            |

`training` is not in the paper. Evaluations without hyperparameters (by other agents) were trained
by the protocol. An agent does not know the protocol's values, so that these parameters count as
absent, which the kernel allows.

Codes are from `ParameterSpace.encode`: in [0, 1] for numbers, the position of a choice, NaN for
absent parameters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archive.agents.surrogates.base import Array
from archive.architecture.graph import Architecture, Layer
from archive.architecture.operations import MLP
from archive.architecture.parameter_operations import PARAMETERS
from archive.errors import UsageError
from archive.parameters.declaration import Declaration, choice, integer, real
from archive.parameters.domains import Choice
from archive.parameters.parameter_space import ParameterSpace
from archive.parameters.ranges import Integer
from archive.spaces.base import Space
from archive.spaces.decisions import ABSENT, Decision, Decisions, Vector
from archive.spaces.layerwise import Limits, chain

__all__ = ["ABSENT", "Decision", "Decisions", "Vector", "decisions_of", "from_choices"]


def decisions_of(space: Space, agent: str) -> Decisions:
    """Return the decisions of a space.

    Args:
        space: The space, or a table of it.
        agent: Name of the agent, for the error message.

    Raises:
        UsageError: The space has no decisions.
    """
    decisions = space.decisions()
    if decisions is None and space.name == PARAMETERS.name:
        raise UsageError(
            f"agent {agent} does not search parameters of more than 64 values: portfolio, "
            "random-forest, arc, tpe, gp-optuna, smac, evolution and random do"
        )

    if decisions is None:
        raise UsageError(
            f"agent {agent} needs networks made of decisions, "
            f"which space {space.name} does not offer (its method decisions() returns none)"
        )

    return decisions


def from_choices(
    decisions: Decisions, named: Mapping[str, object]
) -> tuple[Architecture, dict[str, object]]:
    """Return the network of named choices, and the other named values.

    Raises:
        UsageError: A choice is missing or invalid, or the choices define no network of the space.
    """
    vector: list[int] = []
    for decision in decisions.decisions:
        if not decisions.needed(vector):
            vector.append(ABSENT)
            continue

        if named.get(decision.name) not in decision.choices:
            choices = ", ".join(decision.choices[:8]) + (", …" if len(decision.choices) > 8 else "")
            raise UsageError(
                f"{decision.name!r} must be one of {choices}, got {named.get(decision.name)!r}"
            )

        vector.append(decision.choices.index(str(named[decision.name])))

    network = decisions.decode(tuple(vector))
    if network is None:
        raise UsageError(f"the choices make no network of the space {decisions.space.name}")

    hyperparameters = dict(named)
    for decision in decisions.decisions:
        hyperparameters.pop(decision.name, None)

    return network, hyperparameters


DEEPEST = 5
ANY = "any"
PROTOCOL = "protocol"
OWN = "own"

_RATES = (1e-4, 0.1)
_NORMS = (0.1, 20.0)
_DROPOUT = (0.0, 0.8)
"""Ranges of learning rates, norms and dropout rates.

With learning rates above 0.1, AdamW diverges, and so does SGD on all but the smallest networks."""
_BY_PROTOCOL = 0.1
"""Share of random configurations that are trained by the protocol."""
_VARIED = 3.0
"""Mean number of parameters that vary at a time."""
_DIGITS = 4
"""Significant digits of a hyperparameter; further digits have no effect."""


class Perceptrons:
    """Configurations of perceptrons in one space. Immutable.

    Args:
        space: `mlp`, with any limits.
        activation: Activation of all hidden layers, or `any`: each layer has its own.
        trained: Whether configurations have training hyperparameters.

    Attributes:
        parameters: The conditional parameters, in the order of the codes.
        option_counts: (D,) number of options of a choice; 0 of a number.
        kinds: (D,) names without the layer (`units` for `units_3`), equal for the same parameter of
            all layers.
        depths: Least and greatest number of hidden layers.

    Raises:
        UsageError: The space is not `mlp`, has no room for a hidden layer, or does not have the
            activation.
    """

    def __init__(self, space: Space, activation: str = "relu", *, trained: bool = True) -> None:
        """Derive the parameters from the limits of the space."""
        if space.name != MLP.name:
            raise UsageError(
                f"arc searches chains of hidden layers, in the space mlp alone, got {space.name!r}"
            )

        activations = MLP.of_group("rectifier", "sigmoid")
        if activation not in (ANY, *activations):
            raise UsageError(
                f"activation must be {ANY} or one of {', '.join(activations)}, got {activation!r}"
            )

        config = dict(space.config)
        for name in config.keys() - {field.name for field in fields(Limits)}:
            del config[name]

        limits = Limits.of(space.name, config)
        self.space = space
        self.activations = activations if activation == ANY else (activation,)
        shallowest = 0 if space.contains(chain(space.name, [Layer("linear")])) else 1
        # Input, decision and output are layers, too.
        self.depths = (shallowest, min(DEEPEST, limits.max_layers - 3))
        self.trained = trained
        self.parameters = ParameterSpace(self._declare(limits))
        self.option_counts = self.parameters.option_counts
        kinds = []
        layers = []
        for name in self.parameters.names:
            by_layer = name[-1].isdigit()
            kinds.append(name.rpartition("_")[0] if by_layer else name)
            layers.append(int(name[-1]) if by_layer else 0)

        names = self.parameters.names
        self._at = dict(zip(names, range(len(names)), strict=True))
        self.kinds = tuple(kinds)
        self._layer = np.array(layers)
        self._own = np.array(
            [kind.startswith(("learning_rate", "norm", "dropout")) for kind in self.kinds]
        )
        self.categorical = np.array(
            [isinstance(parameter.domain, Choice) for parameter in self.parameters.parameters]
        )

    def encode(
        self, architecture: Architecture, hyperparameters: Mapping[str, Any]
    ) -> Array | None:
        """Return the codes of a network and its training.

        Shape: (D,) float64; None for non-members of the domain.
        """
        hidden = self._hidden(architecture)
        if hidden is None:
            return None

        values: dict[str, Any] = {
            "depth": len(hidden),
            "training": OWN if hyperparameters else PROTOCOL,
        }
        for number, layer in enumerate(hidden, start=1):
            values |= {f"units_{number}": layer.units, f"activation_{number}": layer.op}

        trained_with = _by_parameter(hyperparameters, len(hidden))
        if trained_with is None or (hyperparameters and not self.trained):
            return None

        codes = np.full(len(self._at), np.nan)
        for name, value in {**values, **trained_with}.items():
            if name not in self._at:
                continue

            parameter = self.parameters.parameters[self._at[name]]
            try:
                parameter.check(value)
            except (UsageError, TypeError):
                # A value of another type, such as None, is of no configuration of this domain
                # either.
                return None

            codes[self._at[name]] = parameter.domain.encode(value)

        return codes

    def decode(self, codes: Array) -> tuple[Architecture, dict[str, Any]]:
        """Return the network, which may exceed the mass of the space, and its hyperparameters."""
        depth = self.depth(codes)
        layers = []
        for layer in range(1, depth + 1):
            activation = str(self._value(codes, f"activation_{layer}"))
            layers.append(Layer(activation, int(self._value(codes, f"units_{layer}"))))

        network = chain(self.space.name, [*layers, Layer("linear")])
        if not self.trained or self._value(codes, "training") == PROTOCOL:
            return network, {}

        places = [*map(str, range(1, depth + 1)), "output"]
        behind = ["input", *map(str, range(1, depth + 1))]
        return network, {
            "learning_rate": self._round_all(codes, "learning_rate", places),
            "dropout": self._round_all(codes, "dropout", behind),
            "max_norm": self._round_all(codes, "norm", places),
        }

    def depth(self, codes: Array) -> int:
        """Return the number of hidden layers."""
        return int(self._value(codes, "depth"))

    def sample(self, m: int, rng: np.random.Generator) -> Array:
        """Return m random configurations: (m, D) float64."""
        return self._mask(self._draw(m, rng))

    def vary(self, codes: Array, scale: float, rng: np.random.Generator) -> Array:
        """Return a variation of each of (m, D) configurations in a few parameters.

        Numbers move by a normal step with standard deviation `scale`, the depth by one layer;
        choices are redrawn, and parameters that begin to exist are drawn.
        """
        drawn = self._draw(len(codes), rng)
        absent = np.isnan(codes)
        moved = np.clip(
            np.where(absent, drawn, codes + scale * rng.standard_normal(codes.shape)), 0.0, 1.0
        )
        moved[:, self.categorical] = drawn[:, self.categorical]
        step = rng.choice([-1.0, 1.0], len(codes)) / self.depths[1]
        low, high = (depth / self.depths[1] for depth in self.depths)
        moved[:, self._at["depth"]] = np.clip(codes[:, self._at["depth"]] + step, low, high)
        luck = np.where(absent, 2.0, rng.random(codes.shape))
        changed = luck < _VARIED / (~absent).sum(axis=1, keepdims=True)
        changed[np.arange(len(codes)), luck.argmin(axis=1)] = True
        return self._mask(np.where(changed | absent, moved, codes))

    def renew(self, codes: Array) -> Iterator[Array]:
        """Yield the configuration, then variants with more and fewer units in one layer.

        A network is proposed once: the same units with other hyperparameters are replaced by
        neighbouring units.
        """
        yield codes
        # Where all layers have one width, there is nothing to vary.
        places = []
        for layer in range(self.depth(codes), 0, -1):
            if (index := self._at.get(f"units_{layer}")) is not None:
                places.append(index)

        for change in range(1, 33):
            for column in places:
                units = self.parameters.parameters[column].domain
                assert isinstance(units, Integer), "units are whole numbers"
                for signed in (change, -change):
                    value = float(units.decode(codes[column])) + signed
                    if units.low <= value <= units.high:
                        other = codes.copy()
                        other[column] = units.encode(value)
                        yield other

    def _hidden(self, architecture: Architecture) -> Sequence[Layer] | None:
        """Return the hidden layers of a chain of the domain; None for other networks."""
        last = len(architecture.layers) - 1
        in_a_chain = tuple(pairwise(range(last + 1)))
        if architecture.space != self.space.name or architecture.edges != in_a_chain:
            return None

        hidden = architecture.layers[1:-2]
        inside = self.depths[0] <= len(hidden) <= self.depths[1]
        return hidden if inside and all(layer.op in self.activations for layer in hidden) else None

    def _declare(self, limits: Limits) -> dict[str, Declaration]:
        """Return the parameters by name, in the order of the codes."""
        if self.depths[1] < 1:
            raise UsageError("arc needs room for a hidden layer, got max_layers below 4")

        condition = f"training == '{OWN}'"
        declared = {"depth": integer(0, self.depths[1])}
        if self.trained:
            declared["training"] = choice((PROTOCOL, OWN))
            declared["dropout_input"] = real(*_DROPOUT, when=condition)
            declared["learning_rate_output"] = real(*_RATES, log=True, when=condition)
            declared["norm_output"] = real(*_NORMS, log=True, when=condition)

        for layer in range(1, self.depths[1] + 1):
            exists = f"depth >= {layer}"
            if self.trained:
                both = f"{condition} and {exists}"
                declared[f"learning_rate_{layer}"] = real(*_RATES, log=True, when=both)
                declared[f"norm_{layer}"] = real(*_NORMS, log=True, when=both)
                declared[f"dropout_{layer}"] = real(*_DROPOUT, when=both)

            if limits.min_units < limits.max_units:
                declared[f"units_{layer}"] = integer(
                    limits.min_units, limits.max_units, log=True, when=exists
                )

            if len(self.activations) > 1:
                declared[f"activation_{layer}"] = choice(self.activations, when=exists)

        return declared

    def _value(self, codes: Array, name: str) -> Any:
        if name not in self._at:
            # The parameter has one value.
            return self.activations[0] if name.startswith("activation") else self._only_units

        domain = self.parameters.parameters[self._at[name]].domain
        return domain.decode(float(codes[self._at[name]]))

    @property
    def _only_units(self) -> int:
        return int(self.space.config["min_units"])

    def _round_all(self, codes: Array, name: str, suffixes: Sequence[str]) -> list[float]:
        return [self._round(codes, f"{name}_{suffix}") for suffix in suffixes]

    def _round(self, codes: Array, name: str) -> float:
        return float(f"{self._value(codes, name):.{_DIGITS}g}")

    def _draw(self, m: int, rng: np.random.Generator) -> Array:
        codes = rng.random((m, len(self._at)))
        for column, parameter in enumerate(self.parameters.parameters):
            if isinstance(parameter.domain, Choice):
                codes[:, column] = np.floor(codes[:, column] * parameter.domain.size)

        if self.trained:
            codes[:, self._at["training"]] = rng.random(m) >= _BY_PROTOCOL

        depths = rng.integers(self.depths[0], self.depths[1], m, endpoint=True)
        codes[:, self._at["depth"]] = depths / self.depths[1]
        return codes

    def _mask(self, codes: Array) -> Array:
        """Return codes with NaN for absent parameters."""
        depth = np.rint(codes[:, [self._at["depth"]]] * self.depths[1])
        exists: NDArray[np.bool_] = self._layer <= depth
        if self.trained:
            trained = codes[:, [self._at["training"]]] == 1.0
            exists &= trained | ~self._own

        return np.where(exists, codes, np.nan)


def _by_parameter(hyperparameters: Mapping[str, Any], depth: int) -> dict[str, Any] | None:
    """Return hyperparameters by parameter name.

    None for unknown ones, or where a layer has none.
    """
    places = [*map(str, range(1, depth + 1)), "output"]
    behind = ["input", *map(str, range(1, depth + 1))]
    named: dict[str, Any] = {}
    for name, value in hyperparameters.items():
        if name not in ("learning_rate", "dropout", "max_norm"):
            return None

        values = (
            list(value)
            if isinstance(value, Sequence) and not isinstance(value, str)
            else [value] * (depth + 1)
        )
        if len(values) != depth + 1:
            return None

        symbol = "norm" if name == "max_norm" else name
        suffixes = behind if name == "dropout" else places
        for suffix, setting in zip(suffixes, values, strict=True):
            named[f"{symbol}_{suffix}"] = setting

    return named

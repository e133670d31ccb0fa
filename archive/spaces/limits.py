"""Limits of NASBOT's search spaces (appendix B.1): sizes of a network of any operations."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from typing import Any

from archive.architecture.graph import Architecture
from archive.architecture.layer_mass import total_mass
from archive.errors import InvalidArchitectureError, SettingsError, UnknownNameError


@dataclass(frozen=True, slots=True)
class Limits:
    """The constraints on members of a space; defaults are the paper's.

    Attributes:
        max_layers: Layers, input, output and decision layers included.
        max_mass: Total mass, in the form of appendix A.3.
        max_degree: Edges into a layer, and edges out of a layer.
        max_edges: Edges.
        min_units: Units (channels or neurons) of a layer that has units.
        max_units: Units of a layer that has units.
    """

    max_layers: int = 60
    max_mass: float = 1e8
    max_degree: int = 5
    max_edges: int = 200
    min_units: int = 8
    max_units: int = 1024

    @classmethod
    def of(cls, space: str, config: dict[str, Any]) -> Limits:
        """Return the limits of a space's configuration.

        Raises:
            UnknownNameError: There is no limit of that name.
            SettingsError: A value that cannot be used.
        """
        names = [field.name for field in fields(cls)]
        for name in config:
            if name not in names:
                raise UnknownNameError(f"setting of space {space}", name, names)

        return cls(**config)

    def __post_init__(self) -> None:
        """Refuse values that no network could meet.

        Raises:
            SettingsError: A value that cannot be used.
        """
        for name, least in (
            ("max_layers", 4),
            ("max_degree", 1),
            ("max_edges", 3),
            ("min_units", 1),
            ("max_units", 1),
        ):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise SettingsError(f"{name} must be a whole number >= {least}, got {value!r}")

        mass = self.max_mass
        if (
            isinstance(mass, bool)
            or not isinstance(mass, (int, float))
            or not (0 < mass and math.isfinite(mass))
        ):
            raise SettingsError(f"max_mass must be a number > 0, got {mass!r}")

        # One network must have one recorded configuration, however the number was written.
        object.__setattr__(self, "max_mass", float(mass))
        if self.max_units < self.min_units:
            raise SettingsError(
                f"max_units must be >= min_units = {self.min_units}, got {self.max_units}"
            )

    @property
    def config(self) -> dict[str, Any]:
        """The limits as a JSON object."""
        return asdict(self)

    def clip(self, units: int) -> int:
        """Return the nearest allowed number of units."""
        return min(max(units, self.min_units), self.max_units)

    def check(self, architecture: Architecture) -> None:
        """Check a network against every limit, the cheap ones first.

        Raises:
            InvalidArchitectureError: A limit is exceeded; the message names it and the value.
        """
        self._check_size(architecture)
        self._check_layers(architecture)
        mass = total_mass(architecture)
        if mass > self.max_mass:
            raise InvalidArchitectureError(f"the mass must be <= {self.max_mass:g}, got {mass:g}")

    def _check_size(self, architecture: Architecture) -> None:
        if len(architecture.layers) > self.max_layers:
            raise InvalidArchitectureError(
                f"a network must have at most {self.max_layers} layers, got "
                f"{len(architecture.layers)}"
            )

        if len(architecture.edges) > self.max_edges:
            raise InvalidArchitectureError(
                f"a network must have at most {self.max_edges} edges, got {len(architecture.edges)}"
            )

    def _check_layers(self, architecture: Architecture) -> None:
        most = self.max_degree
        low = self.min_units
        high = self.max_units
        layers = zip(architecture.layers, architecture.parents, architecture.children, strict=True)
        for u, (layer, parents, children) in enumerate(layers):
            if len(parents) > most:
                raise InvalidArchitectureError(
                    f"at most {most} edges lead into a layer, got {len(parents)}", u
                )

            if len(children) > most:
                raise InvalidArchitectureError(
                    f"at most {most} edges lead out of a layer, got {len(children)}", u
                )

            if layer.units is not None and not low <= layer.units <= high:
                raise InvalidArchitectureError(
                    f"units must be in [{low}, {high}], got {layer.units}", u
                )

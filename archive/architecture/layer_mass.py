"""Layer masses: the computation of each layer, which OTMANN transports.

NASBOT, section 3 and appendix A.3. Notation: lu(u) units of u, in(u) the channels or neurons that
reach u, zeta = 0.1.

    processing layer       lm(u) = lu(u) * in(u)
    res block              twice that (two convolutions)
    fc layer of a cnn      fc_factor times that; 0.1 in appendix A.3, 1 in the main text
    pool                   in(u), which is also its output
    input, output          zeta * sum of the processing layers
    decision layers        zeta * that sum, shared equally among them

The input emits one channel. An operation of a cell has no units and counts 1, or 0 if its output is
zero. The entries and exits of a cell compute nothing and count 0. Layers with attributes have their
channels from their weights (`archive.architecture.aten.weights`), and the layers of a decoder count
their parameters (`archive.architecture.decoders`).
"""

from __future__ import annotations

from collections.abc import Sequence

from archive.architecture.decoders.vocabulary import NAME as DECODER
from archive.architecture.graph import Architecture
from archive.architecture.layer import ROLE
from archive.architecture.operations import Operation, vocabulary

ZETA = 0.1
"""Mass of the input, of the output and of all decision layers, as a share of the mass of the other
layers."""


def layer_masses(
    architecture: Architecture,
    *,
    fc_factor: float = 0.1,
    res_factor: float = 2.0,
    floor: float = 0.0,
) -> list[float]:
    """Return the mass of each layer, in the order of `architecture.layers`.

    Args:
        architecture: The network.
        fc_factor: Factor of the mass of fc layers.
        res_factor: Factor of the mass of residual blocks.
        floor: Least mass of the input, of the output, and of all decision layers together (the
            authors' code: 100).
    """
    operations = architecture.operations
    words = vocabulary(architecture.space)
    if words.attributes and not words.is_open:
        return _with_ends(_computations(architecture), operations, floor)

    emitted: list[int] = []
    masses = [0.0] * len(operations)
    for u, (layer, operation) in enumerate(zip(architecture.layers, operations, strict=True)):
        incoming = sum(emitted[p] for p in architecture.parents[u])
        if operation.group == "input":
            emitted.append(1)
        elif operation.has_units:
            units = layer.units or 0
            factor = (
                fc_factor if operation.group == "fc" else res_factor if operation.residual else 1.0
            )
            masses[u] = factor * units * incoming
            emitted.append(units)
        elif operation.group == "cell":
            masses[u] = 0.0 if operation.zero or ROLE in layer.attributes else 1.0
            emitted.append(1)
        elif operation.group == "pool":
            masses[u] = float(incoming)
            emitted.append(incoming)
        else:
            emitted.append(0)

    return _with_ends(masses, operations, floor)


def count_parameters(architecture: Architecture) -> int:
    """Return the number of trained numbers of a network whose layers have attributes."""
    if architecture.space == DECODER:
        from archive.architecture.decoders.costs import params

        return params(architecture)

    from archive.architecture.aten.weights import parameters

    return parameters(architecture)


def total_mass(architecture: Architecture) -> float:
    """Return the sum of all layer masses, in the form of appendix A.3."""
    return sum(layer_masses(architecture))


def _computations(architecture: Architecture) -> list[float]:
    """Return the computation of each layer; of a decoder's layer its parameters."""
    if architecture.space == DECODER:
        from archive.architecture.decoders.costs import count_layer

        return list(map(float, map(count_layer, architecture.layers)))

    from archive.architecture.aten.weights import computations

    return computations(architecture)


def _with_ends(masses: list[float], operations: Sequence[Operation], floor: float) -> list[float]:
    """Return the masses, with input, output and decision layers."""
    share = max(ZETA * sum(masses), floor)
    decisions = [u for u, operation in enumerate(operations) if operation.group == "decision"]
    for u in decisions:
        masses[u] = share / len(decisions)

    masses[0] = masses[-1] = share
    return masses

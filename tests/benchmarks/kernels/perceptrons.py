"""The experiment of the Arc kernel's paper: perceptrons with their training as one space."""

from __future__ import annotations

from archive.parameters.declaration import Declaration, integer, real
from archive.parameters.parameter_space import ParameterSpace


def perceptrons(max_depth: int = 5) -> ParameterSpace:
    """Return 0 to `max_depth` hidden layers, and their training.

    Besides the depth there are 4 parameters for each hidden layer (learning rate, bound of the L2
    norm of a unit's weights, dropout rate, units), 2 for the output layer and the dropout rate of
    the input: 23 for 5 layers. The paper gives their kinds and their number, not their bounds;
    those here are ours.
    """
    declared: dict[str, Declaration] = {
        "depth": integer(0, max_depth),
        "dropout_input": real(0.0, 0.8),
        "learning_rate_output": real(1e-4, 1.0, log=True),
        "norm_output": real(0.1, 20.0, log=True),
    }
    for layer in range(1, max_depth + 1):
        when = f"depth >= {layer}"
        declared[f"learning_rate_{layer}"] = real(1e-4, 1.0, log=True, when=when)
        declared[f"norm_{layer}"] = real(0.1, 20.0, log=True, when=when)
        declared[f"dropout_{layer}"] = real(0.0, 0.8, when=when)
        declared[f"units_{layer}"] = integer(8, 1024, log=True, when=when)

    return ParameterSpace(declared)

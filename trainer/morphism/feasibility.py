"""Feasibility of inheritance: whether a child network can keep its parent's function.

All children from `archive.spaces.morphism` can, with one exception: a residual block can lose its
projection. When its input is widened, or gets a skip, until it is as wide as the block, the block
adds its input unchanged, while the parent's block adds a projection of it. (The size of the images
matters: on one pixel a stride has no effect.)

Children of other mutations can if the mutation only adds: layers in between, units, edges, paths,
copies of paths. They cannot if it removes units, a layer or an edge that carried a value, changes
an operation or a stride, or inserts a layer that is not the identity on its input: a pool, a
stride, a softplus, logistic or tanh layer, or a relu, elu or leaky-relu on values that may be
negative. Nothing here needs torch. Decoders have rules of their own
(`archive.trainer.morphism.decoder_plan`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from archive.architecture.decoders.design import design_of
from archive.architecture.decoders.vocabulary import NAME as DECODER
from archive.architecture.graph import Architecture
from archive.errors import InvalidArchitectureError
from archive.trainer.morphism.channels import LayerPlan, plan
from archive.trainer.morphism.decoder_plan import plan_decoder
from archive.trainer.morphism.match import Matching, SizedNetwork, matchings

_MATCHINGS = 64


def preserving(parent: Architecture, child: Architecture, input_shape: Sequence[int]) -> bool:
    """Return whether, for any weights of the parent, the child has weights with the same function.

    Args:
        parent: Architecture of the space `cnn`, `mlp` or `decoder`.
        child: Architecture of the same space.
        input_shape: (channels, height, width), (features,) or (tokens,) of one input.
    """
    try:
        operations_between(parent, child, input_shape)
    except InvalidArchitectureError:
        return False

    return True


def operations_between(
    parent: Architecture, child: Architecture, input_shape: Sequence[int]
) -> tuple[str, ...]:
    """Return the operations from the parent to the child, in words, with positions in the child.

    Raises:
        InvalidArchitectureError: No operations keep the function.
    """
    if parent.space == child.space == DECODER:
        (length,) = input_shape
        return plan_decoder(design_of(parent), design_of(child), length).operations

    return plan_transfer(parent, child, input_shape)[0].operations


def plan_transfer(
    parent: Architecture, child: Architecture, input_shape: Sequence[int]
) -> tuple[Matching, list[LayerPlan]]:
    """Return the first matching that keeps the function.

    Raises:
        InvalidArchitectureError: None does, or the networks are not of `cnn` or `mlp`.
    """
    if child.space not in ("cnn", "mlp"):
        raise InvalidArchitectureError(f"networks of the space {child.space} inherit no weights")

    problem = InvalidArchitectureError(
        "some layers of the parent are missing, or lack a part of their input"
    )
    for matching in islice(
        matchings(SizedNetwork(parent, input_shape), SizedNetwork(child, input_shape)), _MATCHINGS
    ):
        try:
            return matching, plan(matching)
        except InvalidArchitectureError as error:
            problem = error

    raise InvalidArchitectureError(
        f"{child!r} cannot inherit from {parent!r}: {problem.reason}", problem.layer
    )

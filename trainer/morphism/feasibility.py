"""Whether a network can begin as another one that it grew from, and by which operations it did.

All that `archive.spaces.morphism` makes can, with one exception: a residual block can lose the convolution that
projects what it adds. Its input is widened, or gets a skip, until it is as wide as the block itself, which then adds
what enters as it is, where its parent adds a projection of it. (The input counts: on images of one pixel a stride
changes nothing.)

Of what other mutations make, those can that only add: layers in between, units, edges, paths, copies of paths.
Those cannot that take something away (units, a layer, an edge that carried something), change an operation or a stride,
or put in between a layer that is not the identity of what reaches it: a pool, a stride, a softplus, logistic or tanh
layer, a relu, elu or leaky-relu where something may be negative. Nothing here needs torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from archive.architecture.graph import Architecture
from archive.errors import InvalidArchitectureError
from archive.trainer.morphism.channels import Part, plan
from archive.trainer.morphism.match import Matching, Sized, matchings

_MATCHINGS = 64


def preserving(parent: Architecture, child: Architecture, input_shape: Sequence[int]) -> bool:
    """Return whether there are weights with which the child computes what the parent does, whatever that is.

    Args:
        parent: Of the space `cnn` or `mlp`.
        child: Of the same space.
        input_shape: (channels, height, width) or (features,) of one input.
    """
    try:
        planned(parent, child, input_shape)
    except InvalidArchitectureError:
        return False
    return True


def operations_between(parent: Architecture, child: Architecture, input_shape: Sequence[int]) -> tuple[str, ...]:
    """Return the operations that lead from the parent to the child, in words, with positions in the child.

    Raises:
        InvalidArchitectureError: There is no way on which the function is kept.
    """
    return planned(parent, child, input_shape)[0].operations


def planned(parent: Architecture, child: Architecture, input_shape: Sequence[int]) -> tuple[Matching, list[Part]]:
    """Return the first matching that keeps the function.

    Raises:
        InvalidArchitectureError: None does.
    """
    problem = InvalidArchitectureError("some layers of the parent are not there, or are not fed with what they need")
    for matching in islice(matchings(Sized(parent, input_shape), Sized(child, input_shape)), _MATCHINGS):
        try:
            return matching, plan(matching)
        except InvalidArchitectureError as error:
            problem = error
    raise InvalidArchitectureError(f"{child!r} cannot begin as {parent!r}: {problem.reason}", problem.layer)

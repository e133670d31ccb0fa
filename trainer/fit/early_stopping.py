"""When more epochs are not worth their time: the rules of `Protocol.convergence`, as functions of the curve.

| rule        | training ends after `patience` epochs                                             |
|-------------|-----------------------------------------------------------------------------------|
| `patience`  | since the one with the best validation metric; the loss decides between equal ones |
| `threshold` | in a row whose validation loss is not lower by `threshold` than the lowest so far |

`threshold` is the rule of Auto-Keras (arXiv:1806.10282), which took it from the MLPClassifier of scikit-learn. Nothing
is counted beside the curve: a trial that was resumed ends where one that was never interrupted does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from archive.trainer.tasks.protocol import Protocol


def has_converged(protocol: Protocol, best_epoch: int, losses: Sequence[float]) -> bool:
    """Whether training should end.

    Args:
        protocol: Names the rule, its patience and its threshold.
        best_epoch: The epoch with the best validation metric, from 1.
        losses: The validation loss of each epoch so far.
    """
    if protocol.convergence == "threshold":
        return _in_a_row(losses, protocol.threshold) >= protocol.patience
    return len(losses) - best_epoch >= protocol.patience


def _in_a_row(losses: Sequence[float], threshold: float) -> int:
    """Return how many of the last epochs did not lower the loss by the threshold."""
    lowest, count = math.inf, 0
    for loss in losses:
        if loss > lowest - threshold:
            count += 1
        else:
            lowest, count = loss, 0
    return count

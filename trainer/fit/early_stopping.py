"""Early stopping: the rules of `TrainingProtocol.convergence`, as functions of the curve.

| rule        | training ends after `patience` epochs                                             |
|-------------|-----------------------------------------------------------------------------------|
| `patience`  | since the one with the best validation metric; the loss breaks ties               |
| `threshold` | in a row whose validation loss is not lower by `threshold` than the lowest so far |

`threshold` is the rule of Auto-Keras (arXiv:1806.10282), which took it from the MLPClassifier of
scikit-learn. The curve is the only state: a resumed trial ends where one that was never interrupted
does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from archive.trainer.protocols.base import TrainingProtocol


def has_converged(protocol: TrainingProtocol, best_epoch: int, losses: Sequence[float]) -> bool:
    """Whether training should end.

    Args:
        protocol: Protocol with the rule, its patience and its threshold.
        best_epoch: The epoch with the best validation metric, from 1.
        losses: Validation loss of each epoch so far.
    """
    if protocol.convergence == "threshold":
        return _without_improvement(losses, protocol.threshold) >= protocol.patience

    return len(losses) - best_epoch >= protocol.patience


def _without_improvement(losses: Sequence[float], threshold: float) -> int:
    """Return the number of last epochs in a row that did not lower the loss by the threshold."""
    lowest = math.inf
    count = 0
    for loss in losses:
        if loss > lowest - threshold:
            count += 1
        else:
            lowest = loss
            count = 0

    return count

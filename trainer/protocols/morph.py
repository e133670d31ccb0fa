"""Protocols `NAME+morph`: networks inherit the weights of an ancestor.

`digits/1+morph` is `digits/1` with one more rule; every protocol has such a variant. A network that
descends from another one in the archive (`archive.store.lineage`) by operations that keep its
function (`archive.trainer.morphism.transfer`) inherits the weights of the nearest such ancestor
that was trained on the same task, under the same protocol with or without `+morph`. It then trains
for a fifth of the epochs, which the schedule spans, with a seed of its own (`seed_of`). All other
networks start from the study's seed, and train under `digits/1`.

A value then measures a network after all the training of its ancestors, as in Auto-Keras, and
depends on which ancestors there were. Its values are therefore comparable only with one another,
and it is a protocol of its own. The evaluation's environment records the inherited weights under
`inherited`.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import replace

from archive.store.protocol_names import MORPH
from archive.trainer.protocols.base import TrainingProtocol

EPOCHS = 0.2
"""Share of the epochs.

The learning rate keeps its peak: with a lower one, chains of networks hardly improve.
"""


def extended(protocol: TrainingProtocol) -> TrainingProtocol:
    """Return the `+morph` variant of a protocol."""
    epochs = max(1, math.ceil(EPOCHS * protocol.epochs))
    return replace(protocol, name=protocol.name + MORPH, inherited_epochs=epochs)


def seed_of(seed: int, key: str) -> int:
    """Return the seed of a trial with inherited weights, for a study's seed and the key of its
    network.

    With the study's seed, which its ancestors had, the same batches would recur with the same
    augmentation: a chain of networks would overfit to these few.
    """
    return int.from_bytes(hashlib.sha256(f"{seed} {key}".encode()).digest()[:4], "big")


def shortened(protocol: TrainingProtocol) -> TrainingProtocol:
    """Return the protocol of a network with inherited weights: that with fewer epochs."""
    epochs = protocol.epochs if protocol.inherited_epochs is None else protocol.inherited_epochs
    return replace(protocol, epochs=epochs)

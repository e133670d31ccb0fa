"""Protocols under which networks begin with the weights of what they grew from.

`digits/1+morph` is `digits/1` with one rule more, which every protocol can have. A network that came from another one,
as the archive knows (`archive.store.lineage`), by operations that keep its function
(`archive.trainer.morphism.feasibility`), begins with the weights of the nearest such ancestor that learned the same
task by the same rules, with this one or without. It then trains for a fifth of the epochs, over which the schedule is
laid, with a seed of its own (`seed_of`). All others begin with the study's seed, and train as `digits/1` says.

So a value says how good a network is after all the training on the way to it, as in Auto-Keras, and depends on which
ancestors were there. That is why it is a protocol of its own, whose values are compared with one another alone; what a
trial began with stands in its evaluation's environment, under `inherited`.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import replace

from archive.trainer.tasks.protocol import Protocol

SUFFIX = "+morph"
EPOCHS = 0.2
"""Share of the epochs. The learning rate keeps its peak: below it, chains of networks stay near where they began."""


def extended(protocol: Protocol) -> Protocol:
    """Return a protocol with the rule that networks inherit."""
    epochs = max(1, math.ceil(EPOCHS * protocol.epochs))
    return replace(protocol, name=protocol.name + SUFFIX, inherited_epochs=epochs)


def seed_of(seed: int, key: str) -> int:
    """Return the seed of a trial that inherits, for a study's seed and the key of its network.

    With the study's own seed, which its ancestors had, the same batches would come again, shifted and mirrored in the
    same way: a chain of networks would learn these few by heart.
    """
    return int.from_bytes(hashlib.sha256(f"{seed} {key}".encode()).digest()[:4], "big")


def shortened(protocol: Protocol) -> Protocol:
    """Return what the rules are for a network that has inherited its weights."""
    epochs = protocol.epochs if protocol.inherited_epochs is None else protocol.inherited_epochs
    return replace(protocol, epochs=epochs)

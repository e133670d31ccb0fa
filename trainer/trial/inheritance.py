"""Inherited weights of a trial: the specification with an ancestor's weights, and without them if
they fail to load.

The rules are those of `archive.trainer.protocols.morph`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from archive.trainer.morphism import inherited_weights
from archive.trainer.morphism.inherited_weights import InheritedWeights
from archive.trainer.protocols import morph
from archive.trainer.trial.spec import TrialSpec

if TYPE_CHECKING:
    from archive.api import Archive


def with_inherited_weights(
    archive: Archive, spec: TrialSpec, locations: Sequence[Path | str]
) -> TrialSpec:
    """Return a specification with the weights of an ancestor; unchanged without one, or if the
    protocol has none.

    Args:
        archive: The store of ancestors.
        spec: Specification of a trial.
        locations: Folders and fsspec URLs whose weights may be read; see `find_ancestor`.

    Raises:
        StoreError: The store cannot be read.
    """
    if spec.protocol.inherited_epochs is None:
        return spec

    match = inherited_weights.find_ancestor(
        archive,
        spec.architecture,
        spec.task,
        spec.protocol,
        spec.seed,
        locations,
        maximise=(spec.direction or spec.task.direction) == "maximise",
    )
    if match is None:
        return spec

    weights, record = match
    weights = replace(weights, epochs=spec.epochs)
    protocol = morph.shortened(spec.protocol)
    epochs = None if spec.epochs is None else min(spec.epochs, protocol.epochs)
    seed = morph.seed_of(spec.seed, spec.architecture.key)
    return replace(
        spec, protocol=protocol, epochs=epochs, seed=seed, initial=weights, inherited=record
    )


def without_inherited_weights(spec: TrialSpec) -> TrialSpec:
    """Return the specification for training from the seed, after the inherited weights could not be
    loaded.
    """
    own = spec.initial
    if not isinstance(own, InheritedWeights):
        return replace(spec, initial=None, inherited={})

    return replace(
        spec, protocol=own.protocol, epochs=own.epochs, seed=own.seed, initial=None, inherited={}
    )

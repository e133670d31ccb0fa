"""Rules of convergence against their definitions, read literally."""

from __future__ import annotations

import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.trainer.fit.train import has_converged, train
from archive.trainer.tasks import registry
from tests.support.networks.nets import TINY_MLP
from tests.trainer.fit.test_train import short

LOSSES = st.lists(st.integers(0, 6).map(lambda k: k / 4), min_size=1, max_size=20)
"""Few values, so that some are equal and some differ by the threshold exactly."""


def rule(name, patience, threshold=0.0):
    return dataclasses.replace(
        registry.get("digits").protocol("digits/1"),
        convergence=name,
        patience=patience,
        threshold=threshold,
    )


@given(LOSSES, st.integers(1, 4), st.sampled_from([0.0, 0.25, 0.3]))
def test_the_threshold_counts_since_the_last_loss_that_was_low_enough(losses, patience, threshold):
    marks = [0]
    for at, loss in enumerate(losses):
        if loss <= losses[marks[-1]] - threshold:
            marks.append(at)

    since = len(losses) - 1 - marks[-1]
    assert has_converged(rule("threshold", patience, threshold), 1, losses) == (since >= patience)


@given(st.integers(1, 20), st.integers(1, 20), st.integers(1, 5))
def test_patience_counts_from_the_best_epoch(best, more, patience):
    assert has_converged(rule("patience", patience), best, [0.0] * (best + more)) == (
        more >= patience
    )


@pytest.mark.parametrize(
    ("losses", "ends"),
    [
        ([1.0, 0.9, 0.8], False),
        ([1.0, 1.1, 1.1], True),
        ([1.0, 0.95, 0.95], True),  # Lower, but not by the threshold.
        ([1.0, 0.95, 0.89], False),  # Both together are.
        ([math.inf, math.inf], False),
    ],
)
def test_small_improvements_count_when_they_add_up(losses, ends):
    assert has_converged(rule("threshold", 2, 0.1), 1, losses) is ends


def test_a_training_ends_by_the_threshold():
    still = short(
        "diabetes",
        epochs=30,
        optimiser="sgd",
        learning_rate=1e-12,
        convergence="threshold",
        patience=3,
    )
    outcome = train(TINY_MLP, registry.get("diabetes"), dataclasses.replace(still, threshold=1e-4))
    assert (outcome.epochs, outcome.ended) == (4, "threshold")

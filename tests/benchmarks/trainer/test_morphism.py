"""The chain that the benchmark of inherited weights trains, and the arithmetic of its figures."""

from __future__ import annotations

from itertools import pairwise

from archive import spaces
from archive.trainer.fit.train import Outcome
from archive.trainer.morphism.feasibility import operations_between
from tests.benchmarks.trainer.morphism import _figures, chain


def test_each_network_is_one_operation_away_from_the_one_before():
    networks = list(chain())
    space = spaces.get("cnn")
    assert len(networks) == 9 and all(space.contains(network) for network in networks)
    steps = [operations_between(parent, child, (1, 28, 28)) for parent, child in pairwise(networks)]
    assert [[text.split()[0] for text in step] for step in steps] == [
        ["widen"],
        ["deepen"],
        ["skip_concat"],
        ["widen"],
        ["skip_add"],
        ["deepen"],
        ["widen"],
        ["skip_concat"],
    ]


def test_the_epochs_of_the_first_network_count_against_the_chain():
    def outcomes(epochs, values):
        return [
            Outcome(value, {"test_accuracy": value / 2}, {}, epochs, 1.0, {}) for value in values
        ]

    fresh = outcomes(15, [0.5, 0.6, 0.8])
    children = outcomes(3, [0.7, 0.75])
    figures = {figure.name: figure for figure in _figures(fresh, children, [1e-6, 1e-5])}
    spent = figures["epochs of the whole chain"]
    assert (spent.value, spent.goal, spent.reference) == (21, "<= 10", 30)
    mean = figures["mean validation accuracy of 8 children that inherit"]
    assert (round(mean.value, 6), round(mean.reference, 6)) == (0.725, 0.7)
    assert figures["children that reach what they reach alone, on validation"].value == 1
    assert figures["largest change of an output by an operation, before training"].value == 1e-5

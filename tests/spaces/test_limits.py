"""Limits of the spaces of whole networks: defaults, reasons of refusals, and initial pools."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive import spaces
from archive.architecture.graph import Architecture, Layer
from archive.errors import InvalidArchitectureError, SettingsError
from tests.support.strategies import generators

IP = Layer("ip")
OP = Layer("op")


def mlp(widths: list[int], edges: list[tuple[int, int]] | None = None) -> Architecture:
    layers = [IP, *(Layer("relu", units) for units in widths), Layer("linear"), OP]
    return Architecture("mlp", layers, edges or [(u, u + 1) for u in range(len(layers) - 1)])


def fan(n: int) -> Architecture:
    edges = (
        [(0, u) for u in range(1, n + 1)] + [(u, n + 1) for u in range(1, n + 1)] + [(n + 1, n + 2)]
    )
    return mlp([8] * n, edges)


def test_the_defaults_are_those_of_the_paper() -> None:
    config = {
        "max_layers": 60,
        "max_mass": 1e8,
        "max_degree": 5,
        "max_edges": 200,
        "min_units": 8,
        "max_units": 1024,
    }
    assert spaces.get("cnn").config == spaces.get("mlp").config == config


@pytest.mark.parametrize(
    ("config", "network", "reason"),
    [
        ({}, mlp([8] * 58), "at most 60 layers, got 61"),
        ({"max_edges": 5}, mlp([8] * 4), "at most 5 edges, got 6"),
        ({}, fan(6), r"at most 5 edges lead out of a layer, got 6 \(layer 0\)"),
        (
            {"max_degree": 2},
            mlp([8] * 3, [(0, 1), (1, 2), (0, 2), (2, 3), (1, 3), (0, 4), (3, 4), (4, 5)]),
            "got 3",
        ),
        ({}, mlp([8, 7]), r"units must be in \[8, 1024\], got 7 \(layer 2\)"),
        ({}, mlp([1025]), r"got 1025 \(layer 1\)"),
        ({"max_mass": 100}, mlp([8, 16]), "the mass must be <= 100, got 176.8"),
        ({}, mlp([]), "a network needs a layer between"),
    ],
)
def test_each_limit_says_why(config: dict[str, Any], network: Architecture, reason: str) -> None:
    space = spaces.get("mlp", **config)
    assert not space.contains(network)
    with pytest.raises(InvalidArchitectureError, match=reason):
        space.validate(network)


def test_limits_are_inclusive() -> None:
    space = spaces.get("mlp")
    assert space.contains(mlp([8] * 57))
    assert space.contains(mlp([1024]))
    assert space.contains(fan(5))
    assert spaces.get("mlp", max_edges=6, max_layers=7).contains(mlp([8] * 4))


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"max_layers": 3}, "max_layers must be a whole number >= 4, got 3"),
        ({"max_layers": 10.0}, "max_layers must be a whole number"),
        ({"max_layers": True}, "max_layers must be a whole number"),
        ({"max_degree": 0}, "max_degree"),
        ({"max_edges": "9"}, "max_edges"),
        ({"min_units": 0}, "min_units"),
        ({"min_units": 20, "max_units": 10}, "max_units must be >= min_units = 20, got 10"),
        ({"max_mass": 0}, "max_mass must be a number > 0, got 0"),
        ({"max_mass": float("inf")}, "max_mass"),
        ({"max_mass": float("nan")}, "max_mass"),
        ({"max_mass": None}, "max_mass"),
    ],
)
def test_limits_that_make_no_sense_are_refused(config: dict[str, Any], reason: str) -> None:
    with pytest.raises(SettingsError, match=reason):
        spaces.get("cnn", **config)


def test_one_limit_written_in_two_ways_is_one_configuration() -> None:
    assert spaces.get("cnn", max_mass=1000).config == spaces.get("cnn", max_mass=1e3).config
    assert (
        spaces.get("cnn", max_mass=1000)
        == spaces.get("cnn", max_mass=1e3)
        != spaces.get("cnn", max_mass=2e3)
    )


@pytest.mark.parametrize("name", ["cnn", "mlp"])
@pytest.mark.parametrize(
    "config",
    [
        {"max_units": 64},
        {"max_mass": 5e4},
        {"max_layers": 12},
        {"max_layers": 14, "max_mass": 2e4, "max_units": 32},
        {"max_units": 4, "min_units": 2},
        {"min_units": 256},
    ],
)
def test_the_initial_pool_fits_narrower_limits(name: str, config: dict[str, Any]) -> None:
    space = spaces.get(name, **config)
    pool = space.initial_pool()
    assert len({member.key for member in pool}) == len(pool) == 10
    assert all(map(space.contains, pool))


def test_a_space_too_narrow_for_any_design_says_so() -> None:
    space = spaces.get("cnn", max_mass=0.5)
    with pytest.raises(SettingsError, match="admit no network to begin with"):
        space.initial_pool()

    with pytest.raises(SettingsError, match="admit no network to begin with"):
        space.sample(np.random.default_rng(0))


@given(
    name=st.sampled_from(["cnn", "mlp"]),
    max_layers=st.integers(4, 20),
    max_degree=st.integers(1, 3),
    max_edges=st.integers(4, 25),
    units=st.tuples(st.integers(1, 40), st.integers(0, 40)),
    rng=generators(),
)
def test_mutations_stay_inside_any_limits(
    name: str,
    max_layers: int,
    max_degree: int,
    max_edges: int,
    units: tuple[int, int],
    rng: np.random.Generator,
) -> None:
    space = spaces.get(
        name,
        max_layers=max_layers,
        max_degree=max_degree,
        max_edges=max_edges,
        min_units=units[0],
        max_units=sum(units),
        max_mass=1e5,
    )
    network = space.initial_pool()[0]
    for _ in range(4):
        network = space.mutate(network, rng).child
        space.validate(network)


def test_the_only_legal_modifier_is_found() -> None:
    # One layer of the only allowed width: only its label can change.
    space = spaces.get("mlp", max_layers=4, max_edges=3, min_units=8, max_units=8)
    network = mlp([8])
    mutation = space.mutate(network, np.random.default_rng(0))
    assert set(mutation.operations) == {"swap_label"}
    assert {neighbour.operations for neighbour in space.neighbours(network)} == {("swap_label",)}

    lone = spaces.get("cnn", max_layers=4, max_edges=3, max_mass=1.4)
    pools = [IP, Layer("max-pool", None, 2), Layer("softmax"), OP]
    images = Architecture("cnn", pools, [(0, 1), (1, 2), (2, 3)])
    names = {
        operation
        for seed in range(9)
        for operation in lone.mutate(images, np.random.default_rng(seed)).operations
    }
    assert names == {"swap_label"}

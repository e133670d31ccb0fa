"""The mutation operator: number of steps, modifiers, and networks without a legal step."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive import spaces
from archive.architecture.graph import Architecture
from archive.errors import InvalidArchitectureError
from archive.spaces.layerwise import Limits
from archive.spaces.modifiers.choices import EVERY, every
from archive.spaces.modifiers.sampled import DRAWS, STEP_PROBABILITIES, number_of_steps, steps
from tests.benchmarks.spaces import measure
from tests.support import examples, whole
from tests.support.strategies import generators, members, relabelled, space_of

NINE = [
    "inc_single",
    "dec_single",
    "inc_en_masse",
    "dec_en_masse",
    "dup_path",
    "remove_layer",
    "skip",
    "swap_label",
    "wedge_layer",
]


def test_the_nine_modifiers_are_those_of_table_6() -> None:
    assert list(DRAWS) == list(EVERY) == NINE


def test_the_number_of_steps_has_the_paper_s_probabilities() -> None:
    assert STEP_PROBABILITIES == (0.5, 0.25, 0.125, 0.075, 0.05)
    rng = np.random.default_rng(0)
    counts = Counter(number_of_steps(rng) for _ in range(40_000))
    for k, probability in enumerate(STEP_PROBABILITIES, start=1):
        assert counts[k] / 40_000 == pytest.approx(probability, abs=0.01)

    assert set(counts) == {1, 2, 3, 4, 5}


def test_the_last_number_of_steps_survives_rounding() -> None:
    class Almost:
        def random(self) -> float:
            return float(np.nextafter(1.0, 0.0))

    almost: Any = Almost()
    assert number_of_steps(almost) == 5


@pytest.mark.parametrize("name", [whole("cnn"), "mlp"])
def test_every_modifier_is_used_about_as_often(name: str) -> None:
    space = space_of(name)
    rng = np.random.default_rng(0)
    pool = space.initial_pool()
    counts: Counter[str] = Counter()
    for turn in range(1500):
        counts.update(space.mutate(pool[turn % 10], rng).operations)

    assert set(counts) == set(NINE)
    share = sum(counts.values()) / len(NINE)
    assert all(0.7 * share < count < 1.3 * share for count in counts.values()), counts


@pytest.mark.parametrize("name", [whole("cnn"), "mlp"])
@pytest.mark.parametrize("modifier", NINE)
@examples(0.5)
@given(data=st.data(), rng=generators())
def test_what_is_drawn_is_among_everything_there_is(
    name: str, modifier: str, data: st.DataObject, rng: np.random.Generator
) -> None:
    network = data.draw(members(name))
    limits = Limits(max_layers=40)
    # Longer paths make the list of all results too long for a test.
    if modifier == "dup_path" and len(network.layers) > 16:
        return

    try:
        drawn = DRAWS[modifier](network, limits, rng)
    except InvalidArchitectureError:
        return

    if drawn is not None and len(drawn.layers) <= limits.max_layers:
        keys = (child.key for found, child in every(network, limits) if found == modifier)
        assert drawn.key in keys


def test_where_nothing_is_legal_the_parent_is_the_child() -> None:
    network = spaces.get("mlp").initial_pool()[0]

    def refuse(child: Architecture) -> None:
        raise InvalidArchitectureError("no")

    found = steps(network, 3, Limits(max_layers=10), refuse, np.random.default_rng(0))
    assert (found.child, found.operations) == (network, ())


def _walk(monkeypatch: pytest.MonkeyPatch, number: int, path: str) -> tuple[str, tuple[str, ...]]:
    """Take steps from the network A to those named, and return the last one's name with the
    operations."""
    networks = dict(zip("ABC", spaces.get("mlp").initial_pool(), strict=False))
    drawn = iter(path)

    def step(*_: Any) -> tuple[Architecture, str]:
        to = next(drawn)
        return relabelled(networks[to], 1), f"to {to}"

    monkeypatch.setattr("archive.spaces.modifiers.sampled._step", step)
    found = steps(networks["A"], number, Limits(), lambda child: None, np.random.default_rng(0))
    return next(
        name for name, one in networks.items() if one.key == found.child.key
    ), found.operations


def test_steps_that_undo_each_other_are_no_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _walk(monkeypatch, 2, "BC") == ("C", ("to B", "to C"))
    assert _walk(monkeypatch, 3, "BAC") == ("C", ("to C",))
    assert _walk(monkeypatch, 5, "BCBAB") == ("B", ("to B",))
    assert _walk(monkeypatch, 4, "BCBC") == ("C", ("to B", "to C"))


def test_a_walk_that_came_back_takes_one_more_step(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _walk(monkeypatch, 2, "BAC") == ("C", ("to C",))


def test_in_a_narrow_space_no_mutation_is_its_parent() -> None:
    """One layer of two widths gives 14 networks: walks of several steps often return."""
    space = spaces.get("mlp", max_layers=4, min_units=8, max_units=9)
    rng = np.random.default_rng(0)
    parent = space.initial_pool()[0]
    for _ in range(400):
        mutation = space.mutate(parent, rng)
        assert mutation.operations
        assert mutation.child.key != parent.key
        parent = mutation.child


def test_images_are_rarely_halved_further() -> None:
    """New labels keep image sizes 19 times in 20."""
    space = space_of("cnn")
    rng = np.random.default_rng(0)
    parent = space.initial_pool()[4]
    deeper = 0
    for _ in range(400):
        child = space.mutate(parent, rng).child
        deeper += max(level or 0 for level in child.levels) > max(
            level or 0 for level in parent.levels
        )

    assert deeper < 40


def test_the_benchmark_gives_a_figure_for_each_space_and_size() -> None:
    found = list(measure(mutations=20))
    assert len(found) == 6
    assert all(row.unit == "ms" and row.value > 0 and row.goal == "<= 1" for row in found)

"""Parts of a space, and spaces that grow."""

from __future__ import annotations

import numpy as np
import pytest

from archive import space
from archive.errors import SettingsError, UnknownNameError, UsageError
from archive.parameters.growth import check_growth, join

PARAMETERS = {
    "depth": space.integer(1, 4),
    "width": space.choice([16, 32, 64]),
    "lr": space.real(1e-4, 1e-1, log=True),
    "dropout": space.real(0, 0.5, when="depth >= 2"),
    "stage": space.repeat({"op": ["conv", "skip"], "kernel": [3, 5]}, "depth"),
}
WHOLE = space.Space(PARAMETERS, constraints=["width * depth <= 128"])


def test_a_fixed_parameter_has_one_value():
    part = WHOLE.fix({"width": 64, "stage_1_op": "skip"})
    rng = np.random.default_rng(0)
    for _ in range(30):
        drawn = part.sample(rng)
        assert (drawn["width"], drawn["stage_1_op"]) == (64, "skip")
        assert drawn["depth"] <= 2
        assert WHOLE.check(drawn) == drawn
        assert part.check(part.mutate(drawn, rng))["width"] == 64

    assert space.Space.from_json(part.json()) == part
    assert part != WHOLE


def test_only_keeps_the_others():
    best = {"depth": 3, "width": 32, "dropout": 0.1}
    part = WHOLE.only(["lr", "stage"], best)
    drawn = part.sample(np.random.default_rng(0))
    assert {name: drawn[name] for name in best} == best
    assert "lr" not in part.fixed
    assert not any(name.startswith("stage") for name in part.fixed)
    # Without values, the others have their central ones; a value that was fixed before stays.
    assert WHOLE.fix({"width": 16}).only(["depth"]).fixed["width"] == 16
    assert WHOLE.only(["depth"]).fixed["width"] == WHOLE["width"].central


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: WHOLE.fix({"width": 48}), UsageError, "width must be one of 16, 32, 64, got 48"),
        (lambda: WHOLE.fix({"widht": 16}), UnknownNameError, "did you mean width"),
        (lambda: WHOLE.fix({"width": 64, "depth": 4}), UsageError, "no configuration has width=64"),
        (lambda: WHOLE.only(["lrr"]), UnknownNameError, "did you mean lr"),
        (lambda: WHOLE.only([]), UsageError, "one parameter or more"),
    ],
)
def test_wrong_parts(make, kind, message):
    with pytest.raises(kind, match=message):
        make()


@pytest.mark.parametrize(
    "changed",
    [
        {"width": space.choice([8, 16, 32, 64, 128])},
        {"lr": space.real(1e-5, 1, log=True)},
        {"depth": space.integer(1, 8)},
        {"momentum": space.real(0, 1, default=0.9)},
        {"width": [8, 16, 32, 64, 128], "wide": space.real(0, 1, when="width == 128")},
        {
            "warm": space.choice([True, False], default=False),
            "rate": space.real(0, 1, when="warm"),
            "shape": space.choice(["linear", "cosine"], when="rate > 0.5"),
        },
        {"optimiser": space.constant("sgd")},
    ],
)
def test_a_space_may_grow(changed):
    grown = space.Space({**PARAMETERS, **changed}, constraints=["width * depth <= 128"])
    check_growth(WHOLE, grown)
    rng = np.random.default_rng(0)
    for _ in range(20):
        assert grown.check(grown.supply(WHOLE.sample(rng)))


def _without(name):
    return {other: entry for other, entry in PARAMETERS.items() if other != name}


@pytest.mark.parametrize(
    ("before", "after", "fault"),
    [
        ((0, 1, 0.2), (-1, 1.3, 0.1), None),
        ((0, 1, 0.2), (0, 1, None), None),
        ((0, 1, 0.2), (0, 1, 0.3), "x has other steps: 0.2 from 0, got 0.3 from 0"),
        ((0, 1, 0.2), (-0.05, 1, 0.1), "x has other steps"),
        ((0, 1, None), (0, 1, 0.1), "x has other steps: none, got 0.1 from 0"),
    ],
)
def test_the_grid_of_a_real_may_become_finer(before, after, fault):
    old, new = (
        space.Space(x=space.real(low, high, step=step)) for low, high, step in (before, after)
    )
    if fault is None:
        check_growth(old, new)
        return

    with pytest.raises(SettingsError, match=fault):
        check_growth(old, new)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (_without("lr"), "the parameter lr is missing"),
        ({**PARAMETERS, "lr": space.real(1e-3, 1e-1, log=True)}, "lr has narrower bounds"),
        ({**PARAMETERS, "lr": space.real(1e-4, 1e-1)}, "lr has another scale"),
        ({**PARAMETERS, "lr": space.integer(1, 3)}, "lr is of another kind"),
        ({**PARAMETERS, "width": [16, 32]}, "width no longer has the option 64"),
        ({**PARAMETERS, "depth": space.integer(0, 4, step=2)}, "depth has other steps"),
        ({**PARAMETERS, "dropout": space.real(0, 0.5)}, "dropout has another condition"),
        ({**PARAMETERS, "momentum": space.real(0, 1)}, "momentum needs a default"),
        ({**PARAMETERS, "wide": space.real(0, 1, when="width == 64")}, "wide needs a default"),
        ({**PARAMETERS, "high": space.real(0, 1, when="lr > 0.01")}, "high needs a default"),
        ({**PARAMETERS, "width": space.ordinal([16, 32, 64])}, "width is ordered now"),
        (
            {**PARAMETERS, "lr": space.real(1e-4, 1e-1, log=True, default=0.01)},
            "lr has another default or prior",
        ),
    ],
)
def test_any_other_change_is_refused(parameters, message):
    changed = space.Space(parameters, constraints=["width * depth <= 128"])
    with pytest.raises(SettingsError, match=message):
        check_growth(WHOLE, changed)


def test_constraints_stay():
    with pytest.raises(SettingsError, match="is new or missing"):
        check_growth(WHOLE, space.Space(PARAMETERS))


def test_a_constant_may_become_searched():
    before = space.Space(width=64, lr=space.real(0, 1))
    check_growth(before, space.Space(width=[32, 64], lr=space.real(0, 1)))
    with pytest.raises(SettingsError, match="width no longer has the value 64"):
        check_growth(before, space.Space(width=[16, 32], lr=space.real(0, 1)))


def test_a_join_has_what_both_spaces_have_got():
    first = space.Space(
        {**PARAMETERS, "width": [16, 32, 64, 8], "lr": space.real(1e-5, 0.1, log=True)}
    )
    second = space.Space(
        {**PARAMETERS, "width": [128, 16, 32, 64], "beta": space.real(0, 1, default=0)}
    )
    whole = join(first, second)
    assert whole == join(second, first) == join(whole, first) == join(second, whole)
    assert set(whole["width"].domain.options) == {8, 16, 32, 64, 128}
    assert (whole["lr"].domain.low, whole["beta"].central) == (1e-5, 0)
    assert join(first, first) == first


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (space.real(0, 1, step=0.2), space.real(-0.1, 1, step=0.3), space.real(-0.1, 1, step=0.1)),
        (space.real(0, 1, step=0.2), space.real(0, 2), space.real(0, 2)),
        (space.integer(0, 12, step=4), space.integer(2, 20, step=6), space.integer(0, 20, step=2)),
        (space.constant(3), space.integer(1, 4), space.integer(1, 4)),
        (space.ordinal([1, 2]), space.ordinal([0, 1, 2]), space.ordinal([0, 1, 2])),
        (space.ordinal([0, 1]), space.ordinal([1, 2]), None),
        (space.choice([0, 1]), space.integer(0, 1), None),
        (space.constant(3), space.constant(4), None),
        (space.group({"a": [1]}), space.choice([1]), None),
    ],
)
def test_joins_of_one_parameter(first, second, expected):
    spaces = [space.Space(x=first), space.Space(x=second)]
    if expected is not None:
        assert join(*spaces) == space.Space(x=expected) == join(*reversed(spaces))
        return

    with pytest.raises(SettingsError, match="x"):
        join(*spaces)

"""Arithmetic of rungs: their epochs, and the promotions."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.constraints import parse
from archive.errors import UsageError
from archive.queue.successive_halving import RungStanding, RungStudy, promotable
from archive.rungs import Rungs, epochs_of
from archive.store.records import Result, State, Study

THREE = Rungs((2, 6, 18), 3)


def standing(number, *values, rung=None, state=State.PRUNED):
    return RungStanding(
        f"s#{number}", number, state, len(values) - 1 if rung is None else rung, values
    )


def judged(number, value, violation):
    """A proposal that paused at the first rung, with the violation of its constraints there."""
    return RungStanding(f"s#{number}", number, State.PRUNED, 0, (value,), violations=(violation,))


def numbers(chosen):
    return [one.number for one in chosen]


def test_rungs_end_with_the_whole_training():
    assert (
        Rungs.below(18, [2, 6], 3)
        == Rungs.below(18, [2, 6, 18], 3)
        == Rungs.geometric(18, 3, 3)
        == THREE
    )
    assert Rungs.geometric(16, 3, 4).epochs == (1, 4, 16)
    study = Study("s", "t", "t/1", "mlp", config={"rungs": THREE.as_config()})
    assert Rungs.of(study.config) == THREE
    assert [epochs_of(study.config, rung) for rung in range(3)] == [2, 6, None]
    assert epochs_of(Study("s", "t", "t/1", "mlp").config, 0) is None


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Rungs.below(18, [6, 2]), "got 6, 2, 18"),
        (lambda: Rungs.below(18, [18]), "got 18"),
        (lambda: Rungs.below(18, [0, 3]), "got 0, 3, 18"),
        (lambda: Rungs.below(18, [6, 20]), "protocol's 18 epochs, got 20"),
        (
            lambda: Rungs.geometric(60, 99, 3),
            r"99 rungs, reduced by 3 each, need 3\^98 epochs, "
            r"got 60",
        ),
        (lambda: Rungs.geometric(60, 10**12, 3), r"need 3\^999999999999 epochs, got 60"),
        (lambda: Rungs.geometric(60, 4, 10**6), r"need 1000000\^3 epochs, got 60"),
        (
            lambda: Rungs.geometric(16, 4, 3),
            "need 27 epochs, got 16: choose fewer rungs, a smaller reduction, or a pr",
        ),
        (
            lambda: Rungs.geometric(6, 4, 2),
            "need 8 epochs, got 6: choose fewer rungs, or a protocol of more epochs$",
        ),
        (lambda: Rungs.geometric(16, 1, 3), "at least 2 rungs, .* got 1"),
        (lambda: Rungs((1, 2), 1), "at least 2, got 1"),
        (lambda: Rungs.of({"rungs": "x"}), "must be epochs and a reduction, got 'x'"),
        (
            lambda: Rungs.of({"rungs": {"epochs": [1, [2]], "reduction": 3}}),
            "must be epochs and a reduction",
        ),
    ],
)
def test_invalid_rungs_are_refused(make, said):
    with pytest.raises(UsageError, match=said):
        make()


def test_the_best_third_is_promoted():
    paused = [standing(0, 0.5), standing(1, 0.9), standing(2, 0.7)]
    assert numbers(promotable(THREE, paused[:2], maximise=True)) == []
    assert numbers(promotable(THREE, paused, maximise=True)) == [1]
    assert numbers(promotable(THREE, paused, maximise=False)) == [0]


def test_promoted_proposals_still_count_at_lower_rungs():
    gone = [standing(0, 0.9, rung=1, state=State.RUNNING), standing(1, 0.8), standing(2, 0.7)]
    assert promotable(THREE, gone, maximise=True) == []
    # A sixth result makes room for a second one.
    more = [*gone, standing(3, 0.85), standing(4, 0.1), standing(5, 0.2)]
    assert numbers(promotable(THREE, more, maximise=True)) == [3]


def test_every_rung_promotes_its_own():
    upper = [standing(n, 0.5, value) for n, value in enumerate((0.6, 0.9, 0.7))]
    assert numbers(promotable(THREE, upper, maximise=True)) == [1]


def test_a_failed_promotion_is_not_repeated():
    lost = standing(0, 0.9, rung=1, state=State.PRUNED)
    assert promotable(THREE, [lost, standing(1, 0.5), standing(2, 0.4)], maximise=True) == []


def test_equal_values_and_those_that_are_none():
    even = [standing(n, 0.5) for n in range(3)]
    assert numbers(promotable(THREE, even, maximise=True)) == [0]
    without = [standing(0, math.nan), standing(1, math.inf), standing(2, 0.1)]
    assert numbers(promotable(THREE, without, maximise=True)) == [2]
    assert promotable(THREE, [standing(n, math.nan) for n in range(3)], maximise=True) == []


def test_networks_that_violate_a_constraint_rank_behind_all_others():
    limited = [judged(0, 0.9, 0.5), judged(1, 0.8, 0.1), judged(2, 0.1, 0.0)]
    assert numbers(promotable(THREE, limited, maximise=True)) == [2]
    assert numbers(promotable(THREE, limited, maximise=False)) == [2]
    # Six results have two places: the second one goes to the smallest violation, whatever its
    # value.
    more = [*limited, judged(3, 0.95, math.inf), judged(4, 0.2, 0.2), judged(5, 0.7, math.inf)]
    assert numbers(promotable(THREE, more, maximise=True)) == [2, 1]
    # Where no quantity is known, the value decides.
    unknown = [judged(n, value, math.inf) for n, value in enumerate((0.5, 0.9, 0.7))]
    assert numbers(promotable(THREE, unknown, maximise=True)) == [1]


def test_every_rung_has_violations_of_its_own():
    both = [
        RungStanding(f"s#{n}", n, State.PRUNED, 1, (0.5, value), violations=violations)
        for n, (value, violations) in enumerate(
            [(0.9, (0.0, 0.3)), (0.6, (0.7, 0.0)), (0.7, (0.0, 0.0))]
        )
    ]
    assert numbers(promotable(THREE, both, maximise=True)) == [2]


@given(
    st.lists(
        st.tuples(
            st.sampled_from([0.0, 0.5, 1.0, math.nan]),
            st.sampled_from([0.0, 0.0, 0.1, 2.0, math.inf]),
        ),
        min_size=1,
        max_size=20,
    ),
    st.integers(2, 4),
    st.booleans(),
)
def test_the_promoted_lose_against_fewer_than_the_places(results, reduction, maximise):
    """The rule of Deb, pair by pair, as an oracle."""

    def wins(one, other):
        (value, violation), (others, violations) = results[one], results[other]
        if violation != violations:
            return violation < violations

        better = value > others if maximise else value < others
        return better or (value == others and one < other)

    standings = [judged(n, value, violation) for n, (value, violation) in enumerate(results)]
    usable = [n for n, (value, _) in enumerate(results) if math.isfinite(value)]
    places = len(results) // reduction
    expected = {n for n in usable if sum(wins(other, n) for other in usable if other != n) < places}
    assert {
        *numbers(promotable(Rungs((1, 2), reduction), standings, maximise=maximise))
    } == expected


def test_constrained_quantities_and_their_violations_by_rung():
    limits = (parse("latency_ms<=5"), parse("accuracy>=0.8"))
    study = RungStudy(THREE, objective="accuracy", constraints=limits)
    assert study.constrained(Result(0.7, {"latency_ms": 6.0})) == [6.0, 0.7]
    unknown = study.constrained(Result(0.7, {"accuracy": 0.75}))
    assert math.isnan(unknown[0]) and unknown[1] == 0.75
    told = study.violations([6.0, 0.8, 4.0, 0.4], 3)
    assert told == (pytest.approx(0.2), pytest.approx(0.5), math.inf)
    assert RungStudy(THREE).violations([], 2) == ()


@given(
    st.lists(
        st.tuples(*[st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0, math.nan])] * 3),
        min_size=1,
        max_size=40,
    ),
    st.integers(2, 4),
    st.booleans(),
)
def test_results_one_after_the_other_promote_as_the_papers_workers_would(
    curves, reduction, maximise
):
    """Algorithm 2, word for word: a free worker requests a job, and the top rungs are searched
    first."""
    rungs = Rungs((1, 2, 4), reduction)
    sign = 1 if maximise else -1
    ours: dict[int, RungStanding] = {}
    done: list[dict[int, float]] = [{}, {}, {}]
    promoted: list[set[int]] = [set(), set()]
    fresh = iter(range(len(curves)))
    waiting: list[int] = []
    while True:
        theirs = _get_job(done, promoted, reduction, sign)
        if theirs is None and (number := next(fresh, None)) is not None:
            theirs = (number, 0)
            ours[number] = RungStanding(str(number), number, State.WAITING, 0, ())
            waiting.append(number)

        if theirs is None:
            assert not waiting
            return

        # The archive's waits already: the last result has promoted it, and no other.
        assert waiting == [theirs[0]] and ours[theirs[0]].rung == theirs[1]
        number, rung = theirs
        waiting.clear()
        done[rung][number] = curves[number][rung]
        before = ours[number]
        state = State.PRUNED if rung < 2 else State.COMPLETE
        ours[number] = RungStanding(
            str(number), number, state, rung, (*before.values, curves[number][rung])
        )
        for one in promotable(rungs, ours.values(), maximise=maximise):
            ours[one.number] = RungStanding(
                one.id, one.number, State.WAITING, one.rung + 1, one.values
            )
            waiting.append(one.number)


def _get_job(done, promoted, reduction, sign):
    for rung in (1, 0):
        ranked = sorted(
            (n for n, v in done[rung].items() if math.isfinite(v)),
            key=lambda n: (-sign * done[rung][n], n),
        )
        for number in ranked[: len(done[rung]) // reduction]:
            if number not in promoted[rung]:
                promoted[rung].add(number)
                return number, rung + 1

    return None

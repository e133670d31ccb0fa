"""Arithmetic of rungs: their epochs, and the promotions."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.errors import UsageError
from archive.queue.successive_halving import Rungs, RungStanding, epochs_of, promotable
from archive.store.records import State, Study

THREE = Rungs((2, 6, 18), 3)


def standing(number, *values, rung=None, state=State.PRUNED):
    return RungStanding(f"s#{number}", number, state, len(values) - 1 if rung is None else rung, values)


def numbers(chosen):
    return [one.number for one in chosen]


def test_rungs_end_with_the_whole_training():
    assert Rungs.below(18, [2, 6], 3) == Rungs.below(18, [2, 6, 18], 3) == Rungs.geometric(18, 3, 3) == THREE
    assert Rungs.geometric(16, 3, 4).epochs == (1, 4, 16)
    study = Study("s", "t", "t/1", "mlp", config={"rungs": THREE.as_config()})
    assert Rungs.of(study.config) == THREE
    assert [epochs_of(study, rung) for rung in range(3)] == [2, 6, None]
    assert epochs_of(Study("s", "t", "t/1", "mlp"), 0) is None


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Rungs.below(18, [6, 2]), "got 6, 2, 18"),
        (lambda: Rungs.below(18, [18]), "got 18"),
        (lambda: Rungs.below(18, [0, 3]), "got 0, 3, 18"),
        (lambda: Rungs.below(18, [6, 20]), "protocol's 18 epochs, got 20"),
        (lambda: Rungs.geometric(16, 4, 3), "no 4 rungs"),
        (lambda: Rungs.geometric(16, 1, 3), "no 1 rungs"),
        (lambda: Rungs((1, 2), 1), "at least 2, got 1"),
        (lambda: Rungs.of({"rungs": "x"}), "must be epochs and a reduction, got 'x'"),
        (lambda: Rungs.of({"rungs": {"epochs": [1, [2]], "reduction": 3}}), "must be epochs and a reduction"),
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


@given(
    st.lists(st.tuples(*[st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0, math.nan])] * 3), min_size=1, max_size=40),
    st.integers(2, 4),
    st.booleans(),
)
def test_results_one_after_the_other_promote_as_the_papers_workers_would(curves, reduction, maximise):
    """Algorithm 2, word for word: a free worker requests a job, and the top rungs are searched first."""
    rungs, sign = Rungs((1, 2, 4), reduction), 1 if maximise else -1
    ours: dict[int, RungStanding] = {}
    done: list[dict[int, float]] = [{}, {}, {}]
    promoted: list[set[int]] = [set(), set()]
    fresh = iter(range(len(curves)))
    waiting: list[int] = []
    while True:
        theirs = _get_job(done, promoted, reduction, sign)
        if theirs is None and (number := next(fresh, None)) is not None:
            theirs, ours[number] = (number, 0), RungStanding(str(number), number, State.WAITING, 0, ())
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
        ours[number] = RungStanding(str(number), number, state, rung, (*before.values, curves[number][rung]))
        for one in promotable(rungs, ours.values(), maximise=maximise):
            ours[one.number] = RungStanding(one.id, one.number, State.WAITING, one.rung + 1, one.values)
            waiting.append(one.number)


def _get_job(done, promoted, reduction, sign):
    for rung in (1, 0):
        ranked = sorted(
            (n for n, v in done[rung].items() if math.isfinite(v)), key=lambda n: (-sign * done[rung][n], n)
        )
        for number in ranked[: len(done[rung]) // reduction]:
            if number not in promoted[rung]:
                promoted[rung].add(number)
                return number, rung + 1
    return None

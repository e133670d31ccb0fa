"""Borders of rungs: the promotions of all results of the study, from a few of them."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.constraints import parse
from archive.database.user_query import run_query
from archive.queue import promotions
from archive.queue.promotions import StudyBorders
from archive.queue.successive_halving import RungResult, RungStanding, RungStudy, promotable
from archive.queue.updates import Completion
from archive.rungs import Rungs
from archive.store.records import Result, State
from tests.support.stores import cells, propose

LIMIT = parse("latency_ms<=5")
EPOCHS = (2, 6, 18)
values = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0, math.nan, math.inf])


@given(
    curves=st.lists(
        st.tuples(values, values, values, st.sampled_from([1.0, 6.0, 9.0])), min_size=1, max_size=60
    ),
    trend=st.sampled_from([-1.0, 0.0, 1.0]),
    reduction=st.integers(2, 4),
    maximise=st.booleans(),
    constrained=st.booleans(),
    nearest=st.integers(1, 4),
    seed=st.integers(0, 10**6),
)
def test_the_results_beside_the_borders_promote_as_all_results_do(
    curves, trend, reduction, maximise, constrained, nearest, seed
):
    study = RungStudy(
        Rungs(EPOCHS, reduction), maximise, constraints=(LIMIT,) if constrained else ()
    )
    rng = random.Random(seed)
    known = {}
    waiting = {
        number: RungStanding(f"s#{number:05d}", number, State.WAITING, 0, ())
        for number in range(len(curves))
    }
    measured = {number: () for number in waiting}
    kept = StudyBorders.of(study, [])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(promotions, "FEWEST_NEAREST", nearest)
        patch.setattr(promotions.math, "isqrt", lambda finished: 0)
        while waiting:
            # One transaction stores the results of one trainer or of several.
            for number in rng.sample(sorted(waiting), min(len(waiting), rng.choice([1, 1, 3]))):
                one = waiting.pop(number)
                partial = one.rung < 2 and rng.random() < 0.9
                told = Result(
                    curves[number][one.rung] + trend * number,
                    {"latency_ms": curves[number][3]},
                    partial=partial,
                )
                result = RungResult(one.id, "token", one.rung, told, one.values, measured[number])
                known[number] = after = result.standing(study)
                measured[number] = tuple(result._constrained(study)) if constrained else ()
                kept.insert(after, len(one.values))

            promoted = kept.promote()
            expected = promotable(study.rungs, known.values(), maximise=maximise)
            if promoted is None:
                kept = StudyBorders.of(study, known.values())
                promoted = kept.promote()

            assert sorted(promoted) == sorted(one.number for one in expected)
            kept = StudyBorders.parse(study, kept.dump())
            for one in expected:
                later = replace(one, state=State.WAITING, rung=one.rung + 1)
                # A promoted proposal may fail for good.
                lost = rng.random() < 0.1
                known[one.number] = replace(later, state=State.PRUNED) if lost else later
                if not lost:
                    waiting[one.number] = later


def test_a_proposal_that_goes_on_by_itself_is_not_promoted_any_more():
    study = RungStudy(Rungs(EPOCHS, 3))
    paused = [
        RungStanding(f"s#{n:05d}", n, State.PRUNED, 0, (value,))
        for n, value in enumerate((0.5, 0.9))
    ]
    kept = StudyBorders.of(study, paused)
    assert kept.promote() == []
    # Its late result at the second rung arrives.
    kept.insert(RungStanding("s#00001", 1, State.PRUNED, 1, (0.9, 0.95)), 1)
    kept.insert(RungStanding("s#00002", 2, State.PRUNED, 0, (0.1,)), 0)
    assert kept.promote() == []


def test_few_results_are_kept_of_many():
    study = RungStudy(Rungs(EPOCHS, 3))
    many = [RungStanding(f"s#{n:05d}", n, State.PRUNED, 0, (float(n),)) for n in range(10000)]
    kept = StudyBorders.of(study, many)
    assert len(kept.promote()) == 3333
    assert len(kept.dump()) < 10000


@pytest.fixture
def looks(monkeypatch):
    """The number of results that each look at a whole study has read."""
    counts = []
    whole = StudyBorders.of

    def of(study, standings):
        rows = list(standings)
        counts.append(len(rows))
        return whole(study, rows)

    monkeypatch.setattr(promotions.StudyBorders, "of", of)
    return counts


def ends(archive, value):
    held = archive.proposals.claim("w", study="study", lease_seconds=600.0)
    told = Result(value, epochs=EPOCHS[held.proposal.rung])
    partial = held.proposal.rung < 2
    assert archive.proposals.settle(
        [Completion(held.id, held.token, told, partial, held.proposal.rung)]
    ) == [True]
    return held.proposal.number


@pytest.mark.every_server
def test_a_result_reads_no_other_results_of_the_study_except_after_a_users_write(
    archive, connection, looks
):
    propose(
        archive,
        cells(24),
        config={"rungs": Rungs(EPOCHS, 3).as_config()},
        objective="valid_accuracy",
    )
    order = [ends(archive, value) for value in (0.5, 0.9, 0.7, 0.8)]
    assert (order, looks) == ([0, 1, 2, 1], [1])
    run_query(connection, "MATCH (p:Proposal {number: 2}) SET p.rung_values = [0.2]", write=True)
    order = [ends(archive, value) for value in (0.6, 0.1, 0.65, 0.85)]
    assert order == [3, 4, 5, 5]
    # Without the write, number 2 would have been the second of six.
    assert looks == [1, 4]
    assert archive.proposals.get("study#00002").state is State.PRUNED

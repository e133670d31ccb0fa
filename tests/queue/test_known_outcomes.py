"""Proposals that are created with their results, on each server: all of a batch, or none."""

from __future__ import annotations

import pytest

from archive.errors import UnknownNameError
from archive.store.records import Result, State, Weights
from tests.support.stores import Suggestion, answer, cells, count, study, suggest


@pytest.fixture
def agent(archive):
    archive.studies.create(study(budget=4))
    return archive.proposals.register_agent("random", {}, "1")


def test_results_and_reasons_are_stored_with_their_proposals(archive, agent):
    a, b, c = cells(3)
    result = Result(
        0.5, {"accuracy": 0.5}, epochs=12, seconds=3.0, weights=Weights("file:w", "00", 8)
    )
    basis = {"observations": {}, "pending": "", "failed": "", "wanted": 3}
    answered = [
        (Suggestion(a, mean=0.25), result),
        (Suggestion(b), "no value"),
        (Suggestion(c, parent=a), Result(0.75)),
    ]
    ids = answer(archive, "study", agent, answered, after=0, basis=basis, seconds=1.5)
    assert ids == ["study#00000", "study#00001", "study#00002"]
    first, failed, last = archive.proposals.list("study")
    assert [one.state for one in (first, failed, last)] == [
        State.COMPLETE,
        State.FAILED,
        State.COMPLETE,
    ]
    assert (failed.reason, first.reason, first.mean, first.seconds, first.based_on) == (
        "no value",
        None,
        0.25,
        1.5,
        basis,
    )
    assert first.request == last.request and None not in (first.finished, failed.finished)
    seen = archive.studies.evaluations("study")
    assert [(one.id, one.value, one.architecture.key) for one in seen] == [
        (ids[0], 0.5, a.key),
        (ids[2], 0.75, c.key),
    ]
    assert (seen[0].metrics, seen[0].epochs, seen[0].seconds) == ({"accuracy": 0.5}, 12, 3.0)
    assert archive.weights.of_evaluation(ids[0]).uri == "file:w"
    assert count(archive.connection, "()-[:MORPHED_INTO]->()") == 1
    # They are ordinary proposals: none waits, and none is proposed twice.
    assert archive.proposals.claim("worker", study="study") is None
    assert archive.proposals.create("study", agent, suggest([a, b, c])) == []


def test_each_keeps_its_own_result_where_repeats_are_left_out(archive, agent):
    a, b = cells(2)
    archive.proposals.create("study", agent, suggest([a]))
    answered = [
        (Suggestion(a), Result(1.0)),
        (Suggestion(b), Result(2.0)),
        (Suggestion(b), Result(3.0)),
    ]
    (id_,) = answer(archive, "study", agent, answered, after=1)
    assert [(one.id, one.value) for one in archive.studies.evaluations("study")] == [(id_, 2.0)]
    # A requested repeat is another evaluation of the same architecture.
    (again,) = answer(archive, "study", agent, answered[2:], after=2, unique=False)
    assert [one.value for one in archive.studies.evaluations("study")] == [2.0, 3.0]
    assert again == "study#00002"


def test_the_budget_and_other_searches_come_first(archive, agent):
    a, b, c, d, e = cells(5)
    archive.proposals.create("study", agent, suggest([a, b]))
    answered = [(Suggestion(one), Result(1.0)) for one in (c, d, e)]
    assert answer(archive, "study", agent, answered, after=1) == []
    assert len(archive.proposals.list("study")) == 2
    assert answer(archive, "study", agent, answered, after=2) == ["study#00002", "study#00003"]
    assert answer(archive, "study", agent, [], after=4) == []
    with pytest.raises(UnknownNameError, match="study"):
        answer(archive, "other", agent, answered, after=0)

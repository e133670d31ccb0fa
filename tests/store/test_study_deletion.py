"""Deletion of a study on each server: complete, and without effect on other studies."""

from __future__ import annotations

from functools import partial

import pytest

from archive.errors import UnknownNameError, UsageError
from archive.exchange.dump import dump
from archive.exchange.load import load
from archive.store.evaluations import Evaluations
from archive.store.records import Result, Study, Weights
from archive.store.studies import deletion
from archive.store.weights import Policy
from tests.support.stores import answer, cells, count, evaluate, propose, study, suggest


def fill(archive, name, values=(0.5, 0.75, 0.25)):
    archive.studies.create(study(name))
    agent = archive.proposals.register_agent("random", {}, "1")
    answered = [
        (one, Result(value, {"accuracy": value}))
        for one, value in zip(suggest(cells(9)), values, strict=False)
    ]
    answer(archive, name, agent, answered, after=0)


@pytest.mark.every_server
def test_a_deleted_study_is_gone_and_its_name_is_free(archive):
    fill(archive, "one")
    fill(archive, "two", [0.1, 0.2])
    propose(archive, cells(6)[4:], "one")
    planned = archive.studies.deletion("one")
    assert (planned.proposals, planned.evaluations, planned.running) == (5, 3, 0)
    assert archive.studies.delete("one") == planned
    assert archive.studies.names() == ["two"]
    assert archive.studies.evaluations("one") == archive.proposals.list("one") == []
    assert [one.value for one in archive.studies.evaluations()] == [0.1, 0.2]
    assert (
        count(archive.connection, "(:Proposal)") == count(archive.connection, "(:Evaluation)") == 2
    )
    # Three of the results and two of the proposals.
    assert count(archive.connection, "(:Architecture)") == 5
    with pytest.raises(UnknownNameError, match="study"):
        archive.studies.delete("one")

    fill(archive, "one", [0.9])
    assert [one.value for one in archive.studies.evaluations("one")] == [0.9]
    assert archive.studies.list()[1].best == 0.9


def test_results_of_another_direction_may_follow_the_last_study_of_a_task(archive):
    evaluations = Evaluations(archive.connection, archive.architectures)
    for name in ("one", "two"):
        fill(archive, name)

    add = partial(
        evaluations.add, "digits", "digits/1", [("table/0", cells(1)[0].key, Result(0.5))]
    )
    archive.studies.delete("one")
    with pytest.raises(
        UsageError, match="with direction maximise, got results with direction minimise"
    ):
        add(direction="minimise")

    archive.studies.delete("two")
    add(direction="minimise")
    # A result keeps the direction.
    fill(archive, "three")
    archive.studies.delete("three")
    with pytest.raises(
        UsageError, match="with direction minimise, got results with direction maximise"
    ):
        add(direction="maximise")


def test_results_that_repeat_a_deleted_one_stay_and_say_so(archive):
    fill(archive, "one")
    archive.studies.create(study("two"))
    agent = archive.proposals.register_agent("random", {}, "1")
    suggestions = suggest(cells(2))
    answers = archive.answers.known(archive.studies.get("two"), suggestions)
    archive.proposals.create("two", agent, suggestions, outcomes=answers)
    archive.studies.warm_start("two", ["one"])
    planned = archive.studies.deletion("one")
    assert (planned.repeated, planned.learners) == (2, ("two",))
    archive.studies.delete("one")
    left = archive.studies.evaluations("two")
    assert [one.value for one in left] == [0.5, 0.75]
    assert [one.answered_from for one in left] == ["one#00000 (deleted)", "one#00001 (deleted)"]
    assert archive.studies.sources("two") == []


class Meddling:
    """A connection that lets another search add to the study whenever a batch has found it
    empty."""

    def __init__(self, connection, add) -> None:
        self._connection = connection
        self._add = add
        self.read = connection.read

    def write(self, work, **how):
        done = self._connection.write(work, **how)
        if done == 0:
            self._add()

        return done


@pytest.mark.every_server
def test_a_search_that_goes_on_meanwhile_cannot_keep_it(archive):
    fill(archive, "one")
    agent = archive.proposals.register_agent("random", {}, "1")
    late = iter(cells(9)[5:8])

    def add():
        # A search with the old budget.
        for network in late:
            archive.studies.set_budget("one", 100)
            assert len(archive.proposals.create("one", agent, suggest([network]))) == 1
            return

    deletion.delete(Meddling(archive.connection, add), "one")
    assert next(late, None) is None
    assert count(archive.connection, "(:Proposal)") == count(archive.connection, "(:Study)") == 0


def test_an_interrupted_deletion_goes_on(archive, monkeypatch):
    fill(archive, "one")
    monkeypatch.setattr(deletion, "BATCH", 2)
    batch = deletion._batch
    calls = []

    def killed(tx, query, **parameters):
        calls.append(query)
        if len(calls) > 1:
            raise KeyboardInterrupt

        return batch(tx, query, **parameters)

    monkeypatch.setattr(deletion, "_batch", killed)
    with pytest.raises(KeyboardInterrupt):
        archive.studies.delete("one")

    assert archive.studies.get("one").budget == 0
    monkeypatch.setattr(deletion, "_batch", batch)
    archive.studies.delete("one")
    assert archive.studies.names() == []


def test_weights_of_a_deleted_study_are_collected(archive):
    archive.studies.create(study("one"))
    (proposal,) = propose(archive, cells(1), "one")
    claim = archive.proposals.claim("w", study="one")
    weights = Weights("file:///weights/a", "0" * 64, 10)
    archive.proposals.complete(proposal.id, claim.token, Result(0.5, weights=weights))
    archive.studies.delete("one")
    (holding,) = archive.retention.holdings(Policy(5, 0.0), "file:")
    assert (holding.weights, holding.evaluations, holding.reason) == (weights, (), "")
    assert archive.retention.forget(Policy(5, 0.0), [weights.uri]) == [weights.uri]


def test_a_dump_brings_a_deleted_study_back(archive, tmp_path):
    evaluate(archive, [0.5, 0.75])
    before = [repr(one) for one in archive.studies.evaluations("study")]
    dump(archive.connection, tmp_path / "a.gz", studies=["study"])
    archive.studies.delete("study")
    load(archive.connection, tmp_path / "a.gz")
    assert [repr(one) for one in archive.studies.evaluations("study")] == before
    assert isinstance(archive.studies.get("study"), Study)

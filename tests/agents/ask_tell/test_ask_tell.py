"""Ask and tell: leases, repeated results, lost leases, enqueued networks, interruptions."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from archive import agents, frames, spaces
from archive.agents import study as open_study
from archive.architecture import codec
from archive.architecture.genotypes.codec import to_genotype
from archive.errors import (
    CodecError,
    InvalidArchitectureError,
    LeaseLostError,
    SearchError,
    StudyConflictError,
    UnknownNameError,
    UsageError,
)
from archive.plots.data.curves import learning_curves
from archive.plots.figures.curves import draw
from archive.spaces.darts.published import PUBLISHED
from archive.store.records import State, Study
from tests.support.stores import cells, evaluate

SPACE = spaces.get("nasbench201")


@pytest.fixture
def study(archive):
    return agents.study(archive, "mine", "nasbench201", seed=3)


def states(archive, name="mine"):
    return [proposal.state for proposal in archive.proposals.list(name)]


def keys(asked):
    return [each.architecture.functional_key for each in asked]


@pytest.mark.every_server
def test_the_first_told_result_is_kept(archive, study):
    first, second = study.ask("random", 2)
    assert [first.proposal.number, second.proposal.number] == [0, 1]
    assert states(archive) == [State.RUNNING] * 2
    # A trainer cannot claim a leased proposal.
    assert archive.proposals.claim("trainer", study="mine") is None
    study.report(first, 0, {"accuracy": 0.1})
    study.report(first, 1, {"accuracy": 0.2})
    study.report(first, 1, {"accuracy": 0.3})
    assert archive.proposals.list("mine")[0].curve == {"epoch": [0, 1], "accuracy": [0.1, 0.3]}
    assert study.tell(first, 0.5, metrics={"test": 0.4}, seconds=7)
    assert study.tell(first, 0.5)
    assert not study.tell(first.id, 0.6)
    assert study.tell(second.proposal, 0.25)
    evaluations = study.evaluations()
    assert [each.value for each in evaluations] == [0.5, 0.25]
    assert evaluations[0].metrics == {"value": 0.5, "test": 0.4}
    assert evaluations[0].curve["accuracy"] == [0.1, 0.3]
    assert evaluations[0].seconds == 7
    assert (evaluations[0].task, evaluations[0].protocol) == ("mine", "mine/own")
    assert study.best().id == first.id


def test_the_same_seed_asks_for_the_same(archive, study):
    again = agents.study(archive, "again", "nasbench201", seed=3)
    for _ in range(3):
        (one,), (other,) = study.ask("evolution"), again.ask("evolution")
        assert keys([one]) == keys([other])
        for trial, where in ((one, study), (other, again)):
            where.tell(trial, 0.5)


def test_networks_of_ones_own_count_too(archive, study):
    own, asked_for = cells(2)
    assert study.tell(own, 0.75)
    assert study.tell(own, 0.75)
    assert not study.tell(own, 0.5)
    # The other asker holds a lease, too: the first result is recorded.
    study.enqueue(asked_for)
    (held,) = study.ask("random")
    assert keys([held]) == [asked_for.functional_key]
    assert study.tell(asked_for, 0.125)
    assert not study.tell(held, 0.25)
    assert [each.value for each in study.evaluations()] == [0.75, 0.125]
    (fresh,) = study.ask("random")
    assert fresh.architecture.functional_key not in (own.functional_key, asked_for.functional_key)


def test_a_known_network_is_found_without_the_other_proposals(archive, study, monkeypatch):
    own, other = cells(2)
    study.tell(own, 0.75)
    study.tell(other, 0.5)
    monkeypatch.setattr(archive.proposals, "list", lambda *_: pytest.fail("reads all proposals"))
    assert study.tell(other, 0.5)
    assert not study.tell(own, 0.5)


def test_an_id_of_no_proposal_is_told_apart_from_an_empty_study(study):
    study.ask("random", 1)
    for id_ in ("mine#1", cells(1)[0].key):
        with pytest.raises(
            UnknownNameError,
            match=f"unknown proposal '{id_}': an id is STUDY#NUMBER with five digits",
        ):
            study.tell(id_, 1.0)


def test_a_told_result_needs_no_budget(archive):
    small = agents.study(archive, "small", "nasbench201", budget=1)
    first, second = cells(2)
    assert small.tell(first, 0.5)
    assert small.ask("random", 2) == []
    ways = r"by archive search --study small --budget N, or in Python by archive\.studies\.set_budget\('small', N\)$"
    with pytest.raises(UsageError, match=f"has spent its budget of 1 evaluation: raise it {ways}"):
        small.enqueue(second)

    assert small.tell(second, 0.25)
    assert small.record.budget == 2


def test_what_is_enqueued_comes_first_by_priority(archive, study):
    low, high, raised = (cells(3)[at] for at in range(3))
    study.enqueue(low, 1)
    study.enqueue(high, 2)
    number = study.enqueue(raised, 0).number
    assert study.enqueue(raised, 3).priority == 3
    assert study.enqueue(raised, 3).number == number
    asked = [study.ask("random")[0] for _ in range(3)]
    assert keys(asked) == [each.functional_key for each in (raised, high, low)]
    study.tell(asked[0], 0.5)
    assert study.enqueue(raised).state is State.COMPLETE
    assert len(archive.proposals.list("mine")) == 3


def test_a_genotype_is_enqueued_as_text(archive):
    study = agents.study(archive, "genotypes", "darts")
    published = PUBLISHED["DARTS_V2"]
    assert (
        study.enqueue(f"DARTS_V2 = {published.text}").architecture_key == published.architecture.key
    )
    with pytest.raises(InvalidArchitectureError, match="must be of space darts, got nasnet"):
        study.enqueue(PUBLISHED["NASNet"].text)

    (asked,) = study.ask("bananas")
    assert to_genotype(asked.architecture.canonical) == to_genotype(
        published.architecture.canonical
    )
    # A stored network is the same genotype: the labels of cells, and the order of nodes in
    # canonical form.
    read = archive.architectures.get(published.architecture.key)
    assert to_genotype(read) == to_genotype(asked.architecture.canonical)


def test_what_is_enqueued_may_be_written_as_on_the_command_line(archive, study):
    string, text, known = cells(3)
    archive.architectures.add([known])
    written = [codec.to_nasbench201(string), f" {codec.to_json(text)}\n", known.key[:12]]
    actual = [study.enqueue(each).architecture_key for each in written]
    assert actual == [string.key, text.key, known.key]
    for wrong in ("foo", "", None, 7):
        with pytest.raises(
            UsageError,
            match=f"JSON text, its NAS-Bench-201 string, its genotype or a key of the archive, got {wrong!r}",
        ):
            study.enqueue(wrong)

    for wrong in ("|a|", "{", '{"schema": 1}'):
        with pytest.raises(CodecError):
            study.enqueue(wrong)

    assert len(archive.proposals.list("mine")) == 3


def test_a_lost_lease_is_asked_for_again_and_loses_no_result(archive, study):
    (first,) = study.ask("random", lease_seconds=0.001)
    (again,) = study.ask("random")
    assert again.id == first.id
    with pytest.raises(LeaseLostError):
        study.report(first, 0, {"accuracy": 0.1})

    assert study.tell(first, 0.5)
    assert not study.tell(again, 0.25)
    assert states(archive) == [State.COMPLETE]


def test_a_value_that_is_not_finite_fails_the_proposal(archive, study):
    first, second, third = study.ask("random", 3)
    assert not study.tell(first, math.nan)
    study.fail(second, "out of paper")
    study.fail(second, "out of paper")
    with pytest.raises(UsageError, match="value must be a number, got 'high'"):
        study.tell(third, "high")

    with pytest.raises(UsageError, match="value must be a number, got 1000"):
        study.tell(third, 10**400)

    with pytest.raises(UsageError, match="value must be a finite number, got inf"):
        study.tell(third.architecture, math.inf)

    assert states(archive) == [State.FAILED, State.FAILED, State.RUNNING]
    assert [each.reason for each in archive.proposals.list("mine")[:2]] == [
        "the value is nan",
        "out of paper",
    ]
    (fourth,) = study.ask("random")
    assert not set(keys([fourth])) & set(keys([first, second, third]))


def test_bad_input_is_refused(archive, study):
    (asked,) = study.ask("random")
    for step in (-1, "1", 1.5, True, 2**53, 2**62, 2**70):
        with pytest.raises(
            UsageError, match=rf"step must be an integer >= 0 and < 2\^53, got {step!r}"
        ):
            study.report(asked, step, {"accuracy": 0.5})

    with pytest.raises(
        UsageError, match="the name of a metric must be at most 480 characters long, got 481: mm"
    ):
        study.report(asked, 0, {"m" * 481: 0.5})

    study.report(asked, 0, {"accuracy": 0.5})
    for metrics in ({}, {"epoch": 1.0}):
        with pytest.raises(
            UsageError, match="a step needs metrics with names other than epoch, got"
        ):
            study.report(asked, 1, metrics)

    for seconds in (-3, -1e-9, math.nan, math.inf, "soon"):
        with pytest.raises(
            UsageError, match=f"seconds must be a finite number >= 0, got {seconds!r}"
        ):
            study.tell(asked, 0.5, seconds=seconds)

        with pytest.raises(UsageError, match="seconds must be"):
            study.tell(cells(1)[0], 0.5, seconds=seconds)

    assert len(archive.proposals.list("mine")) == 1
    for metrics in ({1: 2.0}, {"": 2.0}, {" loss": 2.0}):
        with pytest.raises(
            UsageError, match="a metric needs a name, a text without a blank at an end, got"
        ):
            study.tell(asked, 0.5, metrics=metrics)

        with pytest.raises(UsageError, match="a metric needs a name"):
            study.report(asked, 1, metrics)

    with pytest.raises(
        UsageError, match=r"metrics must be a mapping of names to numbers, got \[0\.5\]"
    ):
        study.tell(asked, 0.5, metrics=[0.5])

    for n in (0, 1.5, "2"):
        with pytest.raises(
            UsageError, match=f"a whole number of architectures, at least one, got n = {n!r}"
        ):
            study.ask("random", n)

    with pytest.raises(UsageError, match="a lease lasts a number of seconds, got nan"):
        study.ask("random", lease_seconds=math.nan)

    with pytest.raises(UsageError, match="must search the study's space"):
        study.ask(agents.get("random", spaces.get("cnn")))

    with pytest.raises(InvalidArchitectureError, match="of space nasbench201, got cnn"):
        study.enqueue(spaces.get("cnn").initial_pool()[0])

    with pytest.raises(UsageError, match="priority must be a finite number, got nan"):
        study.enqueue(cells(1)[0], math.nan)

    (other,) = evaluate(archive, [0.5], "other")
    with pytest.raises(UsageError, match="must be of the study 'mine', got other#00000"):
        study.tell(other, 0.5)

    with pytest.raises(UsageError, match="has no budget"):
        study.run(lambda _: 1.0)

    with pytest.raises(UsageError, match="at least 1 evaluation, got 0"):
        study.run(lambda _: 1.0, 0)


def test_a_step_may_lack_metrics_of_other_steps(archive, study):
    (asked,) = study.ask("random")
    for epoch in range(5):
        study.report(asked, epoch, {"train_loss": 1 / (epoch + 1)})
        if epoch % 2:
            study.report(asked, epoch, {"valid_loss": 2 / (epoch + 1)})

    study.report(asked, 0, {"train_loss": 0.75})
    (view,) = archive.studies.snapshot("mine").proposals
    # Views show the last value that is known.
    assert view.latest == {"train_loss": 0.2, "valid_loss": 0.5}
    study.tell(asked, 0.5)
    (curve,) = [one.curve for one in study.evaluations()]
    assert (curve["epoch"], curve["train_loss"]) == (
        [0, 1, 2, 3, 4],
        [0.75, 1 / 2, 1 / 3, 1 / 4, 1 / 5],
    )
    gaps = [math.nan, 1.0, math.nan, 0.5, math.nan]
    np.testing.assert_array_equal(curve["valid_loss"], gaps)
    np.testing.assert_array_equal(frames.curves(archive, "mine")["valid_loss"], gaps)
    drawn = draw(learning_curves(archive, "mine", "valid_loss")).axes[0].lines[0]
    assert drawn.get_xydata().tolist() == [[1.0, 1.0], [3.0, 0.5]]


def test_a_study_is_opened_again_as_it_is(archive, study):
    again = open_study(archive, "mine")
    assert again.space == SPACE
    assert again.record == study.record
    with pytest.raises(StudyConflictError, match="exists with direction maximise, got minimise"):
        open_study(archive, "mine", direction="minimise")

    with pytest.raises(StudyConflictError, match="exists with the space"):
        open_study(archive, "mine", "cnn")

    with pytest.raises(UsageError, match="there is no study 'new' yet: a new one needs a space"):
        open_study(archive, "new")


def test_run_evaluates_fails_and_goes_on(archive):
    study = agents.study(archive, "mine", "nasbench201", direction="minimise", seed=1)
    seen = []

    def objective(architecture):
        seen.append(architecture.functional_key)
        if len(seen) == 2:
            raise ValueError("too wide")

        if len(seen) == 4:
            raise KeyboardInterrupt

        return math.nan if len(seen) == 3 else len(architecture.layers)

    with pytest.raises(KeyboardInterrupt):
        study.run(objective, 3, "random")

    best = study.run(objective, 3, "random")
    # The next run begins with the interrupted proposal.
    assert seen[3] == seen[4]
    assert len(set(seen)) == len(seen) - 1 == 5
    assert states(archive) == [
        State.COMPLETE,
        State.FAILED,
        State.FAILED,
        State.COMPLETE,
        State.COMPLETE,
    ]
    reasons = [each.reason for each in archive.proposals.list("mine") if each.reason]
    line = objective.__code__.co_firstlineno + 3
    assert reasons == [f"ValueError: too wide (test_ask_tell.py, line {line})", "the value is nan"]
    assert best.value == min(each.value for each in study.evaluations())
    assert study.run(objective, 3, "random").id == best.id
    assert len(seen) == 6


def test_run_says_for_which_leases_it_waits(archive, study, monkeypatch, caplog):
    """A killed process holds its proposals for an hour: the run must not wait for them without a
    word."""
    (held,) = study.ask("random")
    sleeps = []

    def sleep(seconds):
        sleeps.append(seconds)
        if len(sleeps) == 3:
            study.tell(held, 0.5)

    monkeypatch.setattr("archive.agents.ask_tell.run.QUIET_SECONDS", 0.0, raising=False)
    monkeypatch.setattr("time.sleep", sleep)
    study.run(lambda _: 1.0, 1, "random")
    (line,) = [
        each.getMessage()
        for each in caplog.records
        if each.name.startswith("archive.agents.ask_tell")
    ]
    worker = archive.proposals.get(held.id).worker
    assert re.fullmatch(
        rf"the study 'mine' waits for 1 leased proposal \({held.id} of {worker} until \d\d:\d\d:\d\d\); if a process "
        rf"that holds one was killed, the search continues with another network after: archive proposal cancel {held.id}",
        line,
    )


def test_run_gives_up_where_everything_fails(archive, study):
    with pytest.raises(
        SearchError, match=r"20 proposals of the study 'mine' failed .*ZeroDivisionError"
    ):
        study.run(lambda _: 1 / 0, 50, "random")

    # The same call continues once the objective is repaired.
    assert study.run(lambda _: 0.5, 3, "random").value == 0.5


def test_a_result_of_a_deleted_study_is_not_told_to_a_new_one_of_its_name(archive, study):
    (old,) = study.ask("random")
    archive.studies.delete("mine")
    again = agents.study(archive, "mine", "nasbench201", seed=4)
    (new,) = again.ask("random")
    assert new.id == old.id and new.architecture != old.architecture
    for told in (old, old.proposal):
        with pytest.raises(
            UsageError, match="mine#00000 is of another network by now: its study was deleted"
        ):
            again.tell(told, 0.75)

    assert states(archive) == [State.RUNNING]
    assert again.tell(new, 0.5)


def test_a_study_of_another_tasks_protocol_is_refused_and_not_stored(archive):
    protocol = "digits/1+recipe:mine"
    with pytest.raises(
        UsageError, match=r"'digits/1\+recipe:mine' is of the task digits, not of 'csv:a.csv#price'"
    ):
        agents.study(archive, "mine", "mlp", task="csv:a.csv#price", protocol=protocol)

    assert archive.studies.names() == []
    # One that an earlier version has stored is opened as before.
    stored = Study(
        "old",
        "csv:a.csv#price",
        protocol,
        "mlp",
        "value",
        budget=10,
        space_config=spaces.get("mlp").config,
    )
    archive.studies.create(stored)
    agents.study(archive, "old", protocol=protocol)

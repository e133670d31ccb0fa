"""Runs that a program tells of when they have ended."""

from dataclasses import replace

import pytest

from archive import agents, space, spaces
from archive.errors import StoreUnavailableError, UsageError
from archive.runs.delivery import deliver_all
from archive.runs.run_folder import pending_runs
from archive.runs.told import telling
from archive.runs.told.telling import keep_told, record_told
from archive.runs.told.told_run import ToldRun
from archive.store.records import State, Study
from tests.support.stores import cells

WHOLE = ToldRun(
    "s",
    {"val_loss": 0.5, "size": 10},
    values={"lr": 0.1, "api_key": "very-secret-text"},
    program="train.py",
    curve={"step": [10, 20], "val_loss": [0.9, 0.6], "acc": [None, 0.1]},
    motivation="a larger step",
    seed=3,
    seconds=60.0,
    model="a model",
)


@pytest.fixture(autouse=True)
def home(archive, tmp_path, monkeypatch):
    """Keep the folders of runs of each test apart."""
    monkeypatch.setattr(telling, "runs_of", lambda _: tmp_path / "runs")
    # Tests deliver themselves: a process would deliver the runs of the server's home.
    monkeypatch.setattr(telling, "start_delivery", lambda _: (tmp_path / "started").touch())
    return tmp_path


def pending(home):
    return [folder.path.name for folder in pending_runs(home / "runs")]


@pytest.mark.every_server
def test_a_told_run_is_on_record_as_a_recorded_one(archive, home):
    outcome = record_told(archive, WHOLE)
    assert outcome.new and outcome.note is None and pending(home) == []
    run = outcome.run
    assert (run.study, run.value, run.direction, run.seed) == ("s", 0.5, "minimise", 3)
    assert (run.seconds, run.motivation) == (60.0, "a larger step")
    assert run.values == {"program": "train.py", "lr": 0.1}
    evaluation = archive.studies.evaluation(run.run)
    assert evaluation.curve["epoch"] == [10, 20] and evaluation.curve["val_loss"] == [0.9, 0.6]
    assert evaluation.metrics["acc"] == 0.1 and evaluation.metrics["size"] == 10.0
    agent = "MATCH (g:Agent)-[:MADE]->(p:Proposal {id: $id}) RETURN g.kind, g.config"
    ((kind, config),) = archive.query(agent, {"id": run.run}).rows
    assert kind == "language-model" and "a model" in config

    child = ToldRun("s", {"val_loss": 0.25}, parent="best", values={"lr": 0.2}, diff="+x = 1\n")
    made = record_told(archive, child).run
    assert (made.parent, made.gain, made.changed) == (run.run, 0.25, ["? +1 -0"])
    assert made.program == "train.py" and made.seconds is None
    repeat = record_told(
        archive, replace(child, parent=run.run, seed=2, metrics={"val_loss": 0.3})
    ).run
    # Without a difference, the source files are those of the parent.
    again = record_told(archive, replace(child, parent=made.run, diff=None, seed=9)).run
    assert (repeat.repeats, again.repeats) == (2, 3)
    assert again.values == made.values


def test_a_repeated_call_adds_nothing_and_a_token_is_of_one_run(archive, home):
    first = record_told(archive, replace(WHOLE, token="mine"))
    again = record_told(archive, replace(WHOLE, token="mine"))
    assert (again.id, again.new, again.run) == (first.id, False, first.run)
    with pytest.raises(UsageError, match="'mine' stands for another run, s#00000: give each"):
        record_told(archive, replace(WHOLE, token="mine", seed=4))

    record_told(archive, replace(WHOLE, token="other"))
    assert len(archive.proposals.list("s")) == 2
    # Another machine has no folder of it.
    (home / "runs").rename(home / "elsewhere")
    assert record_told(archive, replace(WHOLE, token="mine")).run.run == first.run.run


def test_a_failure_is_a_result_and_waits_for_its_study(archive, home):
    failed = ToldRun("s", reason="out of memory: token hf_abcdefghijklmnopqrstuv", values={"lr": 9})
    waiting = record_told(archive, failed)
    assert waiting.run is None and "until its study begins, with its first run" in waiting.note
    record_told(archive, WHOLE)
    assert (home / "started").exists()
    (proposal,) = deliver_all(archive, pending_runs(home / "runs"))
    assert proposal.state == State.FAILED
    assert proposal.reason == "out of memory: token ***"
    assert record_told(archive, failed).run.run == proposal.id


def test_a_run_is_kept_while_the_database_is_away(archive, home, monkeypatch):
    def refuse(*_, **__):
        raise StoreUnavailableError("no answer")

    record_told(archive, WHOLE)
    later = replace(WHOLE, seed=4)
    with monkeypatch.context() as patched:
        patched.setattr(type(archive.proposals), "create", refuse)
        outcome = record_told(archive, later)

    assert outcome.run is None and "until the database answers" in outcome.note
    assert pending(home) == [outcome.id]
    assert record_told(archive, later).run.seed == 4
    assert pending(home) == []


def test_runs_that_were_kept_without_an_archive_are_delivered_in_their_order(archive, home):
    away = StoreUnavailableError("no answer")
    first = keep_told(home, WHOLE, away)
    child = replace(WHOLE, metrics={"val_loss": 0.25}, parent=first.id, program=None)
    second = keep_told(home, child, away)
    assert first.run is None and "until the database answers" in second.note
    assert sorted(pending(home)) == sorted([first.id, second.id])
    assert not keep_told(home, WHOLE, away).new
    with pytest.raises(UsageError, match="a run has metrics, or the reason why it failed"):
        keep_told(home, ToldRun("s"), away)

    made = deliver_all(archive, pending_runs(home / "runs"))
    assert [proposal.request for proposal in made] == [first.id, second.id]
    run = record_told(archive, child).run
    assert (run.run, run.parent, run.program) == (made[1].id, made[0].id, "train.py")


def test_a_study_that_is_away_at_its_check_keeps_the_run(archive, home, monkeypatch):
    def refuse(*_, **__):
        raise StoreUnavailableError("no answer")

    with monkeypatch.context() as patched:
        patched.setattr(type(archive.studies), "names", refuse)
        assert record_told(archive, WHOLE).run is None

    assert record_told(archive, WHOLE).run.value == 0.5


def test_a_study_with_a_space_takes_its_members_and_no_others(archive, home):
    archive.studies.create(Study("cells", "t", "t/1", "nasbench201", "acc", budget=2))
    run = record_told(archive, ToldRun("cells", {"acc": 0.5}, network=cells(1)[0])).run
    assert archive.proposals.get(run.run).architecture_key == cells(1)[0].key
    history = archive.studies.history("cells")
    assert [seen.value for seen in history] == [0.5]
    outside = spaces.get("mlp").initial_pool()[0]
    for wrong in ({"network": outside}, {"values": {"lr": 1}}, {}):
        with pytest.raises(UsageError):
            record_told(archive, ToldRun("cells", {"acc": 0.5}, **wrong))

    record_told(archive, ToldRun("cells", {"acc": 0.6}, network=cells(2)[1], parent="0"))
    with pytest.raises(UsageError, match="has spent its budget of 2 evaluations: raise it by"):
        record_told(archive, ToldRun("cells", {"acc": 0.7}, network=cells(3)[2]))

    assert len(archive.proposals.list("cells")) == 2 and pending(home) == []


def test_values_of_a_space_of_parameters_are_a_configuration(archive):
    searched = space.Space(lr=space.real(0, 1), width=space.integer(1, 9, default=4))
    agents.study(archive, "knobs", searched, objective="acc")
    run = record_told(archive, ToldRun("knobs", {"acc": 0.5}, values={"lr": 0.25})).run
    assert run.values == {"lr": 0.25, "width": 4}
    # A result belongs to no guessed value.
    for wrong in ({"lr": 2}, {"width": 3}, {"lr": 0.5, "depth": 1}):
        with pytest.raises(UsageError):
            record_told(archive, ToldRun("knobs", {"acc": 0.5}, values=wrong))

    assert len(archive.proposals.list("knobs")) == 1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"metrics": {}, "curve": {}}, "a run has metrics, or the reason why it failed"),
        ({"metrics": {"size": 1.0}, "curve": {}}, "metrics of the run: size"),
        ({"metrics": {"val_loss": float("nan")}}, "a run that diverged has a reason instead"),
        ({"metrics": {"val_loss": True}}, "'val_loss' must be a finite number, got True"),
        ({"metrics": {"\n": 1.0}}, "a metric needs a name"),
        ({"metrics": {f"m{n}": 1.0 for n in range(201)}}, "at most 200 metrics"),
        (
            {"objective": "acc", "direction": "maximise", "curve": {}},
            "the run has no value of 'acc'",
        ),
        ({"curve": {"step": [1], "val_loss": [1.0, 2.0]}}, "step 1, val_loss 2"),
        ({"curve": {"step": [0.5], "val_loss": [1.0]}}, "steps of a curve are whole numbers"),
        ({"curve": {"val_loss": ["x"]}}, "has numbers and nulls, got 'x'"),
        ({"values": {"": 1}}, "a value needs a name"),
        ({"values": {"x": "y" * 70_000}}, "at most 65536 letters"),
        ({"reason": " "}, "the reason of a failure is empty"),
        ({"diff": "prose"}, "has no changed line, as 'git diff' writes them: 'prose'"),
        ({"parent": "nothing"}, "the parent of a run is best, last"),
        ({"seed": 2**63}, "a seed must be a whole number"),
        ({"seconds": float("inf")}, "seconds of a run"),
        ({"study": "a#b"}, "a new study needs a name"),
        ({"model": "m" * 500}, "the name of the model must be at most"),
    ],
)
def test_garbage_is_refused_in_one_line_and_leaves_nothing(archive, home, wrong, message):
    with pytest.raises(UsageError) as refusal:
        record_told(archive, replace(WHOLE, **wrong))

    assert message in str(refusal.value) and "\n" not in str(refusal.value)
    assert not list((home / "runs").glob("told-*")) and pending(home) == []
    assert "s" not in archive.studies.names()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"metrics": {"acc": 1.0}}, "the run has no value of 'val_loss'; its metrics: acc"),
        ({"objective": "acc"}, "the study 's' judges by val_loss, got 'acc'"),
        ({"parent": "7"}, "s#00007"),
    ],
)
def test_what_a_study_cannot_have_is_refused(archive, home, wrong, message):
    record_told(archive, WHOLE)
    with pytest.raises(UsageError, match=message):
        record_told(archive, ToldRun(**{**vars(WHOLE), "curve": {}, **wrong}))

    assert len(archive.proposals.list("s")) == 1 and pending(home) == []

"""From folders of runs to the archive, and what was tried."""

import json
import os
import sys
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

from archive import agents, space
from archive.agents import recommendation
from archive.architecture import codec
from archive.queries.runs import find_runs, runs_of_network
from archive.runs import delivery
from archive.runs.delivery import deliver_all
from archive.runs.life_cycle import RunRequest
from archive.runs.recorded_command import PreparedRun
from archive.runs.run_folder import RunFolder, RunRecord, now, pending_runs
from archive.spaces.named_values import named_values
from archive.store.records import State
from tests.support.networks.block_nets import residual_net


@pytest.fixture
def runs(archive, store_settings, tmp_path, monkeypatch):
    """Records runs and delivers them: `runs.write(…)` without a program, `runs.run(…)` with one."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PATH", "")
    home = tmp_path / "home"

    def deliver():
        return deliver_all(archive, pending_runs(home / "runs"))

    def write(recording=False, **values):
        made = RunFolder.create(home / "runs")
        if not recording:
            made.release()

        record = {"study": "s", "program": "t.py", "started": now() - 1000, "finished": now()}
        made.write(RunRecord(**{"id": made.id, "metrics": {"loss": 1.0}, **record, **values}))
        return made

    def run(code, *arguments, **request):
        (folder / "train.py").write_text(code)
        command = [sys.executable, "train.py", *arguments]
        configuration = replace(store_settings, home=home)
        PreparedRun(command, RunRequest(study="s", **request), configuration).run()
        return deliver()

    return SimpleNamespace(write=write, run=run, deliver=deliver, home=home)


@pytest.mark.every_server
def test_a_run_is_a_proposal_with_its_result_and_its_change(archive, runs):
    (first,) = runs.run("print('epoch 1 loss: 0.5')\n", "--lr", "1", "--seed", "3")
    (second,) = runs.run(
        "print('epoch 1 loss: 0.25')\n", "--lr", "2", motivation="a larger step", parent="best"
    )
    study = archive.studies.get("s")
    assert (study.space, study.objective, study.direction) == ("program", "loss", "minimise")
    evaluation = archive.studies.evaluation(first.id)
    assert (evaluation.value, evaluation.seed, evaluation.curve["loss"]) == (0.5, 3, [0.5])

    cypher = (
        "MATCH (p:Proposal {id: $id})-[:HAS_TEXT]->(t:RunText) RETURN p.parameter_lr, "
        "p.derived_from, p.changed, t.diff, p.exit_status, t.log_end, p.motivation"
    )
    (row,) = archive.query(cypher, {"id": second.id}).rows
    assert list(row[:3]) == [2, first.id, ["train.py +1 -1"]]
    assert "-print('epoch 1 loss: 0.5')\n+print('epoch 1 loss: 0.25')" in row[3]
    assert list(row[4:]) == [0, "epoch 1 loss: 0.25\n", "a larger step"]
    (morph,) = archive.query("MATCH ()-[m:MORPHED_INTO]->() RETURN m.operations").rows
    assert morph[0] == ["lr: 1 -> 2", "train.py +1 -1"]

    (found,), count = find_runs(archive.connection, ["LARGER"])
    assert (found.run, found.gain, count) == (second.id, 0.25, 1)
    assert find_runs(archive.connection, ["0.5'"], since=now() + 10_000) == ([], 0)


def test_a_delivery_that_is_repeated_changes_nothing(archive, runs):
    made = runs.write()
    (proposal,) = runs.deliver()
    assert runs.deliver() == []
    # The process may have ended after the transaction.
    record = made.read()
    assert record.proposal == proposal.id
    made.write(replace(record, proposal=None))
    (made.path.parent / "pending" / made.id).touch()
    assert [again.id for again in runs.deliver()] == [proposal.id]
    assert len(archive.proposals.list("s")) == 1


def test_runs_that_differ_in_their_seeds_repeat_one_configuration(archive, runs):
    for seed in range(3):
        runs.write(seed=seed, values={"lr": 0.1}, metrics={"loss": float(seed)})

    first, *repeats = runs.deliver()
    assert {repeat.architecture_key for repeat in repeats} == {first.architecture_key}
    assert [first.repeat, *(repeat.repeat for repeat in repeats)] == [False, True, True]
    assert len(archive.studies.evaluations("s")) == 3


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"reason": "ended with status 1: diverged", "status": 1}, "ended with status 1: diverged"),
        ({"metrics": {"acc": 1.0}}, "the run has no value of loss; its metrics: acc"),
        ({"metrics": {}}, "the run has no value of loss; its metrics: none"),
    ],
)
def test_a_run_without_a_value_fails_with_its_reason(archive, runs, values, reason):
    runs.write()
    runs.write(values={"lr": 2}, curve={"epoch": [1.0], "loss": [9.0]}, **values)
    _, failed = runs.deliver()
    assert (failed.state, failed.reason) == (State.FAILED, reason)


def test_a_study_begins_with_the_first_run_that_has_a_metric(archive, runs):
    runs.write(metrics={"cpu_seconds": 1.0}, reason="ended with status 2", values={"lr": 1})
    assert runs.deliver() == []
    runs.write(metrics={"val_acc": 0.5, "loss": 1.0}, values={"lr": 2})
    assert len(runs.deliver()) == 2
    assert archive.studies.get("s").objective == "val_acc"


def test_a_run_whose_recorder_was_killed_is_a_result_with_its_reason(archive, runs):
    runs.write()
    killed = runs.write(finished=None, metrics={}, values={"lr": 2})
    (killed.path / "log.head").write_text("epoch 1 loss: 0.75\nepoch 2 loss: 0.5\n")
    with (killed.path / "run.json").open() as file:
        assert '"finished": null' in file.read()

    _, failed = runs.deliver()
    assert failed.reason == "killed: its recorder ended without a word"
    cypher = (
        "MATCH (p:Proposal {id: $id})-[:HAS_TEXT]->(t:RunText) "
        "RETURN p.curve_loss, p.cause, t.log_end"
    )
    (row,) = archive.query(cypher, {"id": failed.id}).rows
    assert list(row) == [[0.75, 0.5], "crash", "epoch 1 loss: 0.75\nepoch 2 loss: 0.5\n"]


def test_a_run_that_the_archive_refuses_holds_no_other(archive, runs, capsys):
    runs.write()
    refused = runs.write(curve={"epoch": [1.0, 2.0], "loss": [1.0]}, values={"lr": 2})
    runs.write(study="no#name")
    runs.write(values={"lr": [2**70, "\udcff"]}, command=["\udcff"], folder="/\udcff")
    runs.write(parent="x#y")
    assert len(runs.deliver()) == 3
    assert f"the run in {refused.path} is not delivered: the lists of a curve" in (
        capsys.readouterr().err
    )
    assert len(list(pending_runs(runs.home / "runs"))) == 2


def test_a_study_of_a_search_takes_its_members_and_other_runs_stand_beside_it(
    archive, runs, capsys
):
    searched = space.Space(lr=space.real(0, 1))
    agents.study(archive, "s", searched, objective="loss", direction="minimise", budget=1)
    runs.write(values={"lr": 0.5, "epochs": 3})
    (other,) = runs.deliver()
    assert other.id == "s-runs#00000" and "'s-runs': " in capsys.readouterr().err
    beside = archive.studies.get("s-runs")
    assert (beside.space, beside.objective, beside.direction) == ("program", "loss", "minimise")
    runs.write(values={"lr": 0.5})
    assert [proposal.id for proposal in runs.deliver()] == ["s#00000"]
    assert [seen.value for seen in archive.studies.history("s")] == [1.0]
    # Its budget is spent.
    runs.write(values={"lr": 0.25})
    assert [proposal.id for proposal in runs.deliver()] == ["s-runs#00001"]
    assert runs.deliver() == []


def test_a_killed_run_has_what_its_program_told(archive, runs):
    killed = runs.write(finished=None, metrics={}, objective="loss", pattern=r"L(?P<loss>\d+)")
    (killed.path / "log.head").write_text("L3 other: 4\n")
    (killed.path / "told.json").write_text('{"values": {"lr": 2}, "motivation": "x", "odd": 1}')
    runs.deliver()
    record = killed.read()
    assert (record.values, record.motivation, record.metrics) == ({"lr": 2}, "x", {"loss": 3.0})


@pytest.mark.parametrize(
    ("changes", "steps", "accuracy"),
    [
        ({}, [2.0, 1.0], 0.5),
        ({"host": "elsewhere"}, None, None),
        ({"command": []}, None, None),
        ({"started": now() - 600_000}, [2.0, 1.0], None),
    ],
)
def test_a_killed_run_has_the_files_that_its_program_wrote(archive, runs, changes, steps, accuracy):
    """A later program wrote metrics.json where the last sign of the run is minutes old."""
    writer = pytest.importorskip("tensorboard.summary.writer.event_file_writer")
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary

    folder = runs.home.parent / "work"
    record = {"command": ["t.py"], "host": os.uname().nodename, "folder": str(folder), **changes}
    killed = runs.write(finished=None, metrics={}, objective="loss", **record)
    killed.write_processes([os.getpid()])
    for path in killed.path.iterdir():
        os.utime(path, times=(changes.get("started", now()) / 1000,) * 2)

    for name, values in {"mine": (2.0, 1.0), "other": (7.0, 8.0)}.items():
        events = writer.EventFileWriter(str(folder / name))
        for step, value in enumerate(values):
            summary = Summary(value=[Summary.Value(tag="loss", simple_value=value)])
            events.add_event(Event(step=step, wall_time=time.time(), summary=summary))

        events.close()

    (path,) = (folder / "other").iterdir()
    path.rename(path.with_name(path.name.replace(f".{os.getpid()}.", ".1.")))
    (folder / "metrics.json").write_text('{"val_acc": 0.5}')
    runs.deliver()
    record = killed.read()
    assert record.curve.get("loss") == steps
    assert record.metrics.get("val_acc") == accuracy
    assert record.reason.startswith("killed")


def test_a_run_that_goes_on_is_left_alone(archive, runs):
    folder = runs.write(finished=None, objective="loss", recording=True)
    assert runs.deliver() == []
    folder.release()
    (killed,) = runs.deliver()
    assert killed.reason.startswith("killed")


def test_the_file_of_a_run_may_have_names_of_another_version(archive, runs):
    folder = runs.write()
    document = json.loads((folder.path / "run.json").read_text())
    (folder.path / "run.json").write_text(json.dumps({**document, "pid": 1, "later": 2}))
    assert len(runs.deliver()) == 1


@pytest.mark.parametrize(
    ("parent", "number"),
    [("best", 1), ("last", 2), ("0", 0), ("#1", 1), ("s#2", 2), ("9", None), ("gone", None)],
)
def test_a_parent_is_named_in_any_form(archive, runs, parent, number):
    for value in (3.0, 1.0, 2.0):
        runs.write(metrics={"loss": value}, values={"lr": value})

    runs.deliver()
    runs.write(parent=parent, values={"lr": 9.0}, started=now())
    runs.deliver()
    ((derived,),) = archive.query("MATCH (p:Proposal {number: 3}) RETURN p.derived_from").rows
    assert derived == (None if number is None else f"s#{number:05d}")


@pytest.mark.parametrize(("parent", "number"), [("best", 0), ("last", 1)])
def test_best_and_last_are_those_at_the_start_of_a_run(archive, runs, parent, number):
    begin = now()
    for value, finished in ((1.0, begin - 20), (2.0, begin - 10), (0.5, begin + 10)):
        runs.write(metrics={"loss": value}, values={"lr": value}, finished=finished)

    runs.write(parent=parent, values={"lr": 9.0}, started=begin, finished=begin + 20)
    runs.deliver()
    ((derived,),) = archive.query("MATCH (p:Proposal {number: 3}) RETURN p.derived_from").rows
    assert derived == f"s#{number:05d}"


def test_the_network_of_a_run_is_what_its_configuration_builds(archive, runs):
    network = residual_net()
    for width in (1, 2):
        made = runs.write(values={"width": width})
        document = {"architecture": codec.to_dict(network), "key": network.functional_key}
        made.write_network(document)

    first, second = runs.deliver()
    found = runs_of_network(archive.connection, network.functional_key)
    assert {run.run for run in found} == {first.id, second.id}
    configuration = archive.architectures.get(first.architecture_key)
    assert archive.builds.network_of(configuration).key == network.key


def test_two_deliveries_at_once_store_a_run_once(archive, store_settings, runs, monkeypatch):
    runs.write()
    calls = []

    def deliver(opened):
        # Another process asks while this one is at work, and leaves it a note.
        calls.append(len(calls))
        if len(calls) == 1:
            assert delivery.deliver_home(settings) == []

        return []

    settings = replace(store_settings, home=runs.home)
    monkeypatch.setattr(delivery, "deliver_all", deliver)
    monkeypatch.setattr("archive.api.connect", lambda _: _Opened(archive))
    delivery.deliver_home(settings)
    assert calls == [0, 1]


class _Opened:
    def __init__(self, archive):
        self.archive = archive

    def __enter__(self):
        return self.archive

    def __exit__(self, *_):
        return None


def test_values_of_runs_are_never_called_exact(archive, runs):
    """A program has randomness of its own: one run of each configuration says nothing of it."""
    for rate in (1.0, 2.0):
        runs.write(values={"lr": rate}, metrics={"loss": rate})

    runs.deliver()
    study = archive.studies.get("s")
    reasons = []
    assert recommendation.of_study(archive, study, reasons.append) is None
    assert "repeat the best runs with other seeds" in str(reasons[0])
    (best, _) = archive.studies.evaluations("s")
    assert best.architecture.space == "program"
    assert named_values("program", {}, best.architecture)["lr"] == 1.0

"""Tabular tasks: names, answers, and a daemon that trains nothing."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from archive import spaces
from archive.architecture import codec
from archive.errors import SettingsError, TrainingError, UnknownNameError, UsageError
from archive.queue import workers
from archive.spaces.tables.reader import Table
from archive.store.records import State, Study
from archive.trainer.daemon.options import TrainerOptions
from archive.trainer.daemon.trainer import Trainer
from archive.trainer.tasks import registry
from archive.trainer.trial.devices import Device
from tests.support.stores import suggest

CELLS = spaces.get("nasbench201").members()


@pytest.fixture
def table(tmp_path):
    """A table of forty cells; the last one's accuracy is not known."""
    path = tmp_path / "my table.v2.csv"
    lines = [
        f"{codec.to_nasbench201(cell)},{at if at < 39 else ''},{100 + at},{-at},x"
        for at, cell in enumerate(CELLS[:40])
    ]
    path.write_text("\n".join(["arch_str,accuracy,train_time_s,-loss,note", *lines]))
    return path


def test_a_table_is_a_task(table, monkeypatch):
    monkeypatch.chdir(table.parent)
    task = registry.get(f"table:{table.name}#accuracy")
    # Another process finds it from another folder.
    assert task.name == f"table:{table}#accuracy"
    assert registry.get(task.name) == task
    monkeypatch.chdir("/")
    assert (
        registry.get(f"table:{table.parent}/../{table.parent.name}/{table.name}#accuracy") == task
    )
    assert (task.label, task.objective, task.direction) == (
        "my table-accuracy",
        "accuracy",
        "maximise",
    )
    space = task.search_space()
    assert space == task.search_space("nasbench201") == spaces.get("nasbench201", table=str(table))
    result = task.answer(CELLS[3])
    assert (result.value, result.seconds, result.metrics) == (3.0, 103.0, {"accuracy": 3.0})
    minimised = registry.get(f"table:{table}#-accuracy")
    assert (minimised.label, minimised.direction) == ("my table--accuracy", "minimise")
    assert registry.get(f"table:{table}#-loss").direction == "maximise"
    assert task.protocol().name == f"table/{Table.load(table).sha256[:12]}"
    with pytest.raises(UnknownNameError, match="protocol of the task"):
        task.protocol("table/0")


def test_network_outside_the_table_fails(table):
    task = registry.get(f"table:{table}#accuracy")
    with pytest.raises(TrainingError, match="does not hold the architecture"):
        task.answer(CELLS[40])

    with pytest.raises(TrainingError, match="has no accuracy for"):
        task.answer(CELLS[39])

    with pytest.raises(TrainingError, match="of space nasbench201, got one of cnn"):
        task.answer(spaces.get("cnn").initial_pool()[0])

    with pytest.raises(UsageError, match="holds networks of the space nasbench201, got 'cnn'"):
        task.search_space("cnn")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "table:{}",
            "names no column: its task is table:.*#COLUMN; its columns are arch_str, accuracy",
        ),
        (
            "table:{}#",
            "names no column: its task is table:.*#COLUMN; its columns are arch_str, accuracy",
        ),
        ("table:#accuracy", "is named as table:PATH#COLUMN"),
        ("table:{}.gz#accuracy", "cannot read the table"),
        (
            "table:~nobody-of-this-name/x.csv#accuracy",
            "no home folder of ~nobody-of-this-name is known",
        ),
        ("table:{}#acuracy", "did you mean accuracy"),
        ("table:{}#note", "'note' of .* holds no numbers"),
    ],
)
def test_unusable_name_of_a_table_is_explained(table, name, message):
    with pytest.raises(UsageError, match=message):
        registry.get(name.format(table))


def test_official_tasks_answer_in_fractions(official):
    task = registry.get("nb201-cifar10")
    table = Table.named("nb201")
    cell = table.architectures[100]
    short = task.answer(cell)
    long = task.answer(cell, "nb201/200")
    assert task.protocol().name == "nb201/12"
    assert short.value == pytest.approx(table.column("cifar10_valid_12ep")[100] / 100)
    assert long.value == pytest.approx(table.column("cifar10_valid_200ep")[100] / 100)
    assert long.metrics["test_accuracy"] == pytest.approx(
        table.column("cifar10_test_200ep")[100] / 100
    )
    assert (short.epochs, long.epochs) == (12, 200)
    assert short.seconds == long.seconds == table.cost()[100]
    other = registry.get("nb201-cifar100").answer(cell)
    assert other.value == pytest.approx(table.column("cifar100_valid_12ep")[100] / 100)
    assert task.search_space() == spaces.get("nasbench201")


def test_results_have_the_costs_of_networks(official, tmp_path):
    cell = Table.named("nb201").architectures[0]
    told = registry.get("nb201-cifar10").answer(cell).metrics
    assert told.keys() == {
        *("valid_accuracy", "test_accuracy", "params", "flops"),
        *("latency_ms_2080ti_256", "latency_ms_raspi4", "latency_ms_eyeriss"),
    }
    assert (told["params"], told["flops"]) == (129310, 17958600)
    sample = registry.get("nb101").answer(Table.named("nb101").architectures[0])
    assert sample.metrics["params"] == Table.named("nb101").column("params")[0]

    path = tmp_path / "costs.csv"
    path.write_text(
        f"arch_str,params,flops,params_left,score\n{codec.to_nasbench201(CELLS[0])},7,,3,0.5\n"
    )
    assert registry.get(f"table:{path}#score").answer(CELLS[0]).metrics == {
        "score": 0.5,
        "params": 7.0,
    }
    assert registry.get(f"table:{path}#-params").answer(CELLS[0]).metrics == {"params": 7.0}


def test_what_is_not_finite_is_no_result_and_no_cost(tmp_path):
    path = tmp_path / "infinite.csv"
    rows = [
        f"{codec.to_nasbench201(CELLS[0])},0.5,inf",
        f"{codec.to_nasbench201(CELLS[1])},inf,1.5",
    ]
    path.write_text("\n".join(["arch_str,score,params_millions", *rows]))
    task = registry.get(f"table:{path}#score")
    assert task.answer(CELLS[0]).metrics == {"score": 0.5}
    with pytest.raises(TrainingError, match="has no score for"):
        task.answer(CELLS[1])


def test_the_sample_of_nasbench101_is_its_own_space(official):
    task = registry.get("nb101")
    space = task.search_space("nasbench101")
    assert space.config == {"table": "nb101"}
    cell = space.members()[5]
    assert task.answer(cell).value == space.table.column("val_acc_108ep")[5]
    assert task.answer(cell, "nb101/4").value == space.table.column("val_acc_4ep")[5]


def test_an_official_table_that_is_not_here(monkeypatch):
    monkeypatch.delenv("ARCHIVE_DATA_DIR", raising=False)
    with pytest.raises(SettingsError, match="nb201 is not found"):
        registry.get("nb201-cifar10").answer(CELLS[0])

    with pytest.raises(SettingsError, match="nb201 is not found"):
        registry.get("nb201-cifar10").search_space()


def propose(archive, table, networks, name="study", **settings):
    task = registry.get(f"table:{table}#accuracy")
    protocol = task.protocol().name
    archive.studies.create(
        Study(name, task.name, protocol, "nasbench201", task.objective, budget=100)
    )
    agent = archive.proposals.register_agent("random", {}, "1")
    archive.proposals.create(name, agent, suggest(networks, **settings))


def test_the_daemon_answers_from_the_table(archive, table, tmp_path, monkeypatch):
    finder = "archive.trainer.daemon.placement.devices.find"
    monkeypatch.setattr(finder, lambda _: pytest.fail("asked for a device"))
    monkeypatch.setattr(
        "archive.trainer.trial.process.TrialProcess.__init__",
        lambda *_: pytest.fail("started a process"),
    )
    propose(archive, table, [*CELLS[:5], CELLS[39], CELLS[50]])
    options = TrainerOptions(study="study", slots=2, idle_seconds=0.1, data_folders=(tmp_path,))
    tally = Trainer(archive, options, home=tmp_path / "trainer").run()
    assert (tally.complete, tally.failed, tally.returned) == (5, 2, 0)
    evaluations = archive.studies.evaluations("study")
    assert [each.value for each in evaluations] == [0, 1, 2, 3, 4]
    assert [each.seconds for each in evaluations] == [100, 101, 102, 103, 104]
    failed = archive.proposals.list("study", [State.FAILED])
    assert "has no accuracy for" in failed[0].reason
    assert "does not hold the architecture" in failed[1].reason
    assert all(each.attempts == 0 for each in failed)
    assert workers.statuses(archive.connection)[0].device == "table (no training)"


def test_a_table_has_no_choice_of_hyperparameters(archive, table, tmp_path):
    propose(archive, table, CELLS[:1], hyperparameters={"learning_rate": 0.1})
    Trainer(
        archive,
        TrainerOptions(study="study", idle_seconds=0.1, data_folders=(tmp_path,)),
        home=tmp_path / "trainer",
    ).run()
    (failed,) = archive.proposals.list("study", [State.FAILED])
    assert "no choice of learning_rate" in failed.reason


def test_table_result_outlives_an_outage(archive, table, tmp_path, monkeypatch):
    from archive.errors import StoreUnavailableError

    propose(archive, table, CELLS[:2])
    monkeypatch.setattr("archive.trainer.daemon.client.store_link.BACKOFF_SECONDS", 0.05)
    settle = archive.proposals.settle
    calls = []

    def away(*arguments):
        calls.append(arguments)
        if len(calls) == 1:
            raise StoreUnavailableError("away")

        return settle(*arguments)

    monkeypatch.setattr(archive.proposals, "settle", away)
    Trainer(
        archive,
        TrainerOptions(study="study", idle_seconds=0.3, data_folders=(tmp_path,)),
        home=tmp_path / "trainer",
    ).run()
    assert [each.value for each in archive.studies.evaluations("study")] == [0, 1]
    assert not list((tmp_path / "trainer" / "outbox").glob("*.json"))


def test_results_in_scaled_time_are_delayed(archive, table, tmp_path):
    propose(archive, table, CELLS[:3])
    own = {"study": "study", "slots": 2, "data_folders": (tmp_path,)}
    patient = Trainer(archive, TrainerOptions(**own, scale=1.0), home=tmp_path / "trainer")
    patient.observers.append(lambda event: len(patient.in_flight) == 1 and patient.stop())
    assert patient.run().returned == 2
    assert [(each.state, each.attempts) for each in archive.proposals.list("study")] == [
        (State.WAITING, 0)
    ] * 3
    hasty = Trainer(
        archive, TrainerOptions(**own, scale=1e-3, idle_seconds=0.1), home=tmp_path / "trainer"
    )
    assert hasty.run().complete == 3
    assert [each.value for each in archive.studies.evaluations("study")] == [0, 1, 2]


def test_a_daemon_without_the_table_leaves_it_to_others(archive, table, tmp_path, monkeypatch):
    cpu = Device("cpu", "cpu", "none", 1 << 40)
    monkeypatch.setattr("archive.trainer.daemon.placement.devices.find", lambda request: [cpu])
    propose(archive, table, CELLS[:1])
    table.unlink()
    options = TrainerOptions(idle_seconds=0.1, device="cpu", once=True, data_folders=(tmp_path,))
    Trainer(archive, options, home=tmp_path / "trainer").run()
    (proposal,) = archive.proposals.list("study")
    assert proposal.state is State.WAITING
    assert f"cannot read {table}: No such file" in proposal.reason


def test_table_result_needs_no_torch(table):
    code = (
        "import sys; from archive.trainer.daemon import trainer; from archive.trainer.tasks "
        "import registry as tasks;"
        "task = tasks.get(sys.argv[1]); task.answer(task.search_space().members()[0]);"
        "assert not {'torch', 'sklearn', 'scipy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, f"table:{table}#accuracy"], check=True)


def test_noise_is_another_one_for_each_query(table):
    plain = registry.get(f"table:{table}#accuracy")
    task = registry.get(f"table:{table}#accuracy~2.5")
    assert task == registry.get(task.name) == plain.with_noise("2.5")
    results = [task.answer(CELLS[3], query=str(at)) for at in range(400)]
    values = np.array([result.value for result in results])
    assert abs(values.mean() - 3.0) < 0.5 and 2.2 < values.std() < 2.8
    assert len({result.seed for result in results}) == 400
    # A repeated completion has one value; another network at the same query has another error.
    assert task.answer(CELLS[3], query="7") == results[7]
    assert task.answer(CELLS[4], query="7").value - 4.0 != results[7].value - 3.0
    assert (
        results[7].metrics["accuracy"] == results[7].value
        and results[7].environment["noise"] == 2.5
    )
    assert task.truth(CELLS[3].functional_key)[0] == 3.0
    assert plain.answer(CELLS[3]).seed is None


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("nb201-cifar10~no", "noise of nb201-cifar10 must be a positive number, got 'no'"),
        ("nb201-cifar10~-1", "must be a positive number"),
        ("digits~0.1", "only results of a table can have noise added"),
    ],
)
def test_noise_that_cannot_be_added(name, reason):
    with pytest.raises(UsageError, match=reason):
        registry.get(name)


def test_a_column_may_have_the_name_of_noise(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(f"arch_str,a,a~2\n{codec.to_nasbench201(CELLS[5])},1,2\n")
    assert registry.get(f"table:{path}#a~2").noise == 0.0
    assert registry.get(f"table:{path}#a~3").noise == 3.0


@pytest.mark.parametrize(
    ("name", "size", "best"),
    [
        ("transnas-scene", 1948, 0.5494),
        ("transnas-object", 1948, 0.4559),
        ("transnas-autoencoder", 1948, 0.5753),
    ],
)
def test_tasks_of_one_space_without_pooling(official, name, size, best):
    task = registry.get(name)
    space = task.search_space()
    assert len(space.members()) == size
    assert not any(layer.op == "avg_pool_3x3" for cell in space.members() for layer in cell.layers)
    # Optuna and other agents over decisions are not offered the operation that no network has.
    assert len(space.decisions().decisions[0].choices) == 4
    values = task.scale * task.table.column(task.protocol().column)
    assert values.max() == pytest.approx(best, abs=1e-4)


@pytest.mark.whole
@pytest.mark.lasts(8)
def test_a_chain_of_choices_is_a_task(official):
    task = registry.get("nbmacro")
    space = task.search_space()
    assert space == spaces.get("choices") and len(task.table) == space.size
    assert task.table.space_config == space.config
    cell = space.built([int(digit) for digit in "11111221"])
    assert task.answer(cell).value == pytest.approx(0.9230333, abs=1e-6)

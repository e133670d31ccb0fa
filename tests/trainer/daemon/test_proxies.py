"""Proxies that daemons measure beside their trials: complete, measured once, and harmless to
trials."""

from __future__ import annotations

import math
import signal
import threading

import psutil
import pytest

from archive import spaces
from archive.store.records import State
from archive.trainer.daemon import proxy_process
from archive.trainer.daemon.options import Tally, TrainerOptions
from archive.trainer.daemon.trainer import Trainer
from archive.trainer.proxies import registry as proxies
from archive.trainer.proxies.measurement import SOURCE, ProxyMeasurement, sample_of
from archive.trainer.tasks import registry
from tests.support import faulty, wait_until
from tests.support.commands import CELLS, serving, table
from tests.support.commands import propose as propose_cells
from tests.support.daemons import NETS, propose, states
from tests.support.networks.nets import net

ALL = {*proxies.names(), "params", "flops"}


def scores(archive, networks):
    keys = [network.key for network in networks]
    return archive.proxies.of_networks("diabetes", "diabetes/1", SOURCE, keys)


def measured(archive):
    """Return the time of each measurement by network."""
    found = archive.query("MATCH (a:Architecture)-[m:MEASURED]->(:Task) RETURN a.key, m.created")
    return dict(found.rows)


def sample(count):
    return sample_of(spaces.get("mlp"), count)


@pytest.fixture
def run(archive, tmp_path):
    """Lets a daemon work until there is nothing to do."""

    def run(**options) -> Tally:
        own = {
            "threads": 1,
            "device": "cpu",
            "idle_seconds": 0.3,
            "parting_seconds": 120.0,
            **options,
        }
        return Trainer(archive, TrainerOptions(**own), home=tmp_path / "trainer").run()

    return run


@pytest.mark.lasts(8)
def test_trained_networks_and_a_sample_are_measured_once(archive, run):
    propose(archive, NETS)
    with serving(archive, study="study", proxies=4):
        wait_until(lambda: len(measured(archive)) == 7, 60, "all measurements")
        wait_until(lambda: states(archive) == [State.COMPLETE] * 3, 60, "all trials")

    found = scores(archive, [*NETS, *sample(4)])
    assert len(found) == 7 and all({*each} == ALL for each in found.values())
    # The process measures what the command measures.
    task = registry.get("diabetes")
    own = ProxyMeasurement(task, task.protocol())(NETS[1])
    known = {name: value for name, value in own.items() if math.isfinite(value)}
    assert {
        name: value for name, value in found[NETS[1].key].items() if value is not None
    } == pytest.approx(known, rel=1e-4)
    # Another study and another trainer have nothing to measure but what is new.
    before = measured(archive)
    new = net("mlp", "relu/24 linear")
    propose(archive, [*NETS[:1], new], name="other")
    assert run(proxies=4).complete == 2
    after = measured(archive)
    assert after.keys() - before.keys() == {new.key}
    assert {key: after[key] for key in before} == before


@pytest.mark.lasts(6)
def test_without_the_option_nothing_is_measured(archive, run):
    propose(archive, NETS[:1])
    run()
    assert not measured(archive)


@pytest.mark.lasts(8)
def test_a_killed_measurement_costs_neither_the_trial_nor_the_daemon(
    archive, run, monkeypatch, caplog
):
    """As where memory runs out: the trials go on, and the log says it once."""
    monkeypatch.setitem(
        registry.registry._loaded, "faulty", faulty.faulty(faulty.is_killed_when_measured)
    )
    propose(archive, NETS, "faulty")
    with caplog.at_level("WARNING", "archive.trainer"):
        assert run(proxies=3, study="study") == Tally(complete=3)

    (line,) = [each.getMessage() for each in caplog.records if "proxies" in each.getMessage()]
    assert "task=faulty" in line and f"status -{signal.SIGKILL:d}" in line
    assert not measured(archive)


@pytest.mark.whole
@pytest.mark.lasts(8)
def test_a_network_that_ends_the_process_is_left_out(archive, run, monkeypatch, caplog):
    """The process of the measurement is killed once; the next network gets another one."""
    victims = []
    ask = proxy_process.MeasurementProcess._ask

    def killing(self, request):
        if request is not None and not victims:
            victims.append(request[0].key)
            psutil.Process(self._running[1].pid).kill()

        return ask(self, request)

    monkeypatch.setattr(proxy_process.MeasurementProcess, "_ask", killing)
    propose(archive, NETS)
    with caplog.at_level("WARNING", "archive.trainer"):
        assert run(proxies=0) == Tally(complete=3)

    (line,) = [each.getMessage() for each in caplog.records if "proxies" in each.getMessage()]
    assert f"architecture={victims[0]}" in line
    assert measured(archive).keys() == {each.key for each in NETS} - {*victims}
    # The next trainer tries it again.
    propose(archive, [each for each in NETS if each.key in victims], name="other")
    run(proxies=0)
    assert measured(archive).keys() == {each.key for each in NETS}


@pytest.mark.lasts(6)
def test_a_table_is_answered_and_advises_the_import(archive, run, tmp_path, caplog):
    propose_cells(archive, table(tmp_path), 3)
    with caplog.at_level("WARNING", "archive.trainer"):
        assert run(proxies=5, study="study", data_folders=(str(tmp_path),)) == Tally(complete=3)

    (line,) = [each.getMessage() for each in caplog.records if "proxies" in each.getMessage()]
    assert "archive import proxies" in line
    assert not measured(archive) and len(CELLS) > 3


@pytest.mark.whole
@pytest.mark.lasts(25)
def test_a_killed_trainer_leaves_whole_scores_and_another_goes_on(archive, start, tmp_path):
    propose(archive, [])
    first = start(study="study", proxies=16)
    wait_until(lambda: measured(archive), 90, "the first measurement")
    processes = psutil.Process(first.pid).children(recursive=True)
    first.kill()
    first.wait()
    before = measured(archive)
    assert 0 < len(before) < 16
    assert all({*each} == ALL for each in scores(archive, sample(16)).values())
    _, alive = psutil.wait_procs(processes, 10)
    assert not alive
    # Two trainers share the rest.
    homes = [tmp_path / name for name in ("second", "third")]
    with (
        serving(archive, homes[0], study="study", proxies=16),
        serving(archive, homes[1], study="study", proxies=16),
    ):
        wait_until(lambda: len(measured(archive)) == 16, 300, "the rest of the sample")

    after = measured(archive)
    assert after.keys() == {each.key for each in sample(16)}
    assert {key: after[key] for key in before} == before


def test_a_study_created_again_under_its_name_is_measured_for_its_own_task(archive, tmp_path):
    propose(archive, [])
    first = archive.studies.get("study")
    archive.studies.delete("study")
    propose(archive, [], task="digits")
    second = archive.studies.get("study")
    measurer = Trainer(archive, TrainerOptions(device="cpu", proxies=2), home=tmp_path)._proxies
    tasks = [measurer._work_of(study).task.name for study in (first, second, first)]
    assert tasks == ["diabetes", "digits", "diabetes"]
    assert [len(work) for work in measurer._works.values()] == [2, 2]


@pytest.mark.lasts(6)
def test_a_stop_waits_for_no_sample(archive, tmp_path):
    propose(archive, [])
    options = TrainerOptions(
        threads=1, device="cpu", study="study", proxies=500, parting_seconds=600.0
    )
    trainer = Trainer(archive, options, home=tmp_path)
    thread = threading.Thread(target=trainer.run)
    thread.start()
    wait_until(lambda: measured(archive), 90, "the first measurement")
    trainer.stop()
    thread.join(60)
    assert not thread.is_alive()

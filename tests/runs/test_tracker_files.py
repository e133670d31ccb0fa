"""Files for TensorBoard and Weights & Biases that recorded programs write."""

import os
import platform
import sys

import pytest

from archive import settings
from archive.runs import tracker_files
from archive.runs.life_cycle import RunRequest
from archive.runs.measurements import Measurements
from archive.runs.recorded_command import PreparedRun

WRITER = """
import struct, sys, time
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter

writer = EventFileWriter(sys.argv[1])
for step in range(3):
    value = Summary.Value(tag="val/loss x", simple_value=float(sys.argv[2]) / (step + 1))
    writer.add_event(Event(step=step, wall_time=time.time(), summary=Summary(value=[value])))

writer.close()
"""

WANDB = """
import wandb
with wandb.init(mode="offline", project="p") as run:
    for step in range(3):
        run.log({"val": {"acc": step / 4}})
"""


@pytest.fixture
def configuration(tmp_path, monkeypatch):
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / "write.py").write_text(WRITER)
    return settings.load(home=tmp_path / "home")


def record(configuration, *command):
    return PreparedRun(command, RunRequest(study="s"), configuration).run().record


def test_event_files_that_appear_are_metrics(configuration, tmp_path):
    run = record(configuration, sys.executable, "write.py", "logs/a", "3")
    assert run.metrics["val/loss x"] == 1.0
    assert run.curve == {"epoch": [0.0, 1.0, 2.0], "val/loss x": [3.0, 1.5, 1.0]}

    # Those of an earlier run stay with it, and a shell's child is the program's.
    script = f"sleep 0.3; {sys.executable} write.py logs/b 6; sleep 0.3"
    run = record(configuration, "/bin/sh", "-c", script)
    assert run.curve["val/loss x"] == [6.0, 3.0, 2.0]
    assert "val/loss x" not in record(configuration, "/bin/true").metrics


def test_event_files_of_a_program_beside_it_are_not_taken(configuration, tmp_path):
    """The other program is one of this test, whose process has another id."""
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    run = record(configuration, sys.executable, "write.py", "logs/a", "3")
    EventFileWriter("logs/b").close()
    (name,) = os.listdir("logs/b")
    measurements = Measurements()
    tracker_files.read_tracker_files(tmp_path / "work", run.started, {1}, measurements)
    assert measurements.latest == {}
    assert f".{platform.node()}.{os.getpid()}." in name


@pytest.mark.parametrize(
    "name", ["events.out.tfevents.1.elsewhere.1.0", "events.out.tfevents.1.host"]
)
def test_files_without_a_known_writer_are_taken(configuration, tmp_path, name):
    run = record(configuration, sys.executable, "write.py", "logs/a", "3")
    (written,) = os.listdir("logs/a")
    os.rename(f"logs/a/{written}", f"logs/a/{name}")
    measurements = Measurements()
    tracker_files.read_tracker_files(tmp_path / "work", run.started, {1}, measurements)
    assert measurements.latest == {"val/loss x": 1.0}


def test_what_cannot_be_read_is_named_and_loses_no_run(configuration, monkeypatch, capfd):
    code = "open('x.tfevents.1', 'w').write('no events'); print('loss: 1')"
    run = record(configuration, sys.executable, "-c", code)
    assert run.metrics["loss"] == 1.0
    assert "x.tfevents.1 is not read: x.tfevents.1 has no events" in capfd.readouterr().err
    monkeypatch.setattr(tracker_files, "MOST_BYTES", 1)
    run = record(configuration, sys.executable, "-c", code)
    assert run.metrics["loss"] == 1.0
    assert "are not read: a run has at most" in capfd.readouterr().err


@pytest.mark.lasts(8)
def test_an_offline_run_of_wandb_is_metrics(configuration, monkeypatch):
    monkeypatch.setenv("WANDB_SILENT", "true")
    run = record(configuration, sys.executable, "-c", WANDB)
    assert run.metrics["val.acc"] == 0.5
    assert run.curve["val.acc"] == [0.0, 0.25, 0.5]

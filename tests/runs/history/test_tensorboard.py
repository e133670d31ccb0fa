"""Runs in event files that torch's `SummaryWriter` writes."""

import shutil
import sys

import pytest

from archive.errors import SettingsError, UsageError
from archive.runs.history.mlflow_runs import read_mlflow
from archive.runs.history.tensorboard_runs import read_events, read_tensorboard
from archive.runs.history.wandb_runs import read_wandb
from archive.runs.imported import import_history
from archive.runs.measurements import MOST_POINTS


def write_run(folder, scalars=3, **settings):
    """Write the event files of a run."""
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(folder)) as writer:
        for step in range(scalars):
            writer.add_scalar("val/loss x", 1 / (step + 1), step)

        writer.add_scalar("nan", float("nan"), 0)
        writer.add_text("note", "hello")
        if settings:
            writer.add_hparams(settings, {"hp/best": 0.25})

    return folder


def test_a_folder_is_a_run_with_its_settings(archive, tmp_path):
    write_run(tmp_path / "logs" / "run a", lr=0.1, seed=3, opt="adam")
    write_run(tmp_path / "logs" / "b", scalars=0)
    history = read_tensorboard(tmp_path / "logs")
    runs = {run.motivation: run for run in history.runs}
    assert runs.keys() == {"run a", "b"}
    run = runs["run a"]
    assert run.values == {"lr": 0.1, "opt": "adam"}
    assert run.seed == 3
    assert run.curve["val/loss x"] == pytest.approx([1, 0.5, 1 / 3])
    assert run.metrics["hp/best"] == 0.25
    assert 0 <= run.finished - run.started < 60_000
    assert history.left_out == ["texts, media and histograms: 1 (note/text_summary)"]
    imported = import_history(archive, "s", history, objective="val/loss x", direction="minimise")
    assert (imported.added, imported.without_value) == (2, 1)

    # The folder may move, and get more runs.
    (tmp_path / "logs").rename(tmp_path / "moved")
    write_run(tmp_path / "moved" / "c", lr=0.2)
    shutil.copytree(tmp_path / "moved" / "b", tmp_path / "moved" / "copy of b")
    history = read_tensorboard(tmp_path / "moved")
    assert "copies of other folders: 1 (copy of b)" in history.left_out
    assert import_history(archive, "s", history).added == 1


def test_scalars_of_several_names_are_metrics_of_one_run(tmp_path):
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(tmp_path / "a")) as writer:
        writer.add_scalars("loss/all", {"train": 0.5, "val": 0.75}, 1)
        writer.add_scalar("lr", 0.5, 1)

    (run,) = read_tensorboard(tmp_path).runs
    assert run.metrics == {"lr": 0.5, "loss/all/train": 0.5, "loss/all/val": 0.75}
    assert run.curve["loss/all/val"] == [0.75]


def test_trials_of_one_writer_are_runs_of_their_own(tmp_path):
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(tmp_path)) as writer:
        for trial in range(2):
            name = f"17959343{trial}.5"
            writer.add_hparams({"lr": trial + 0.5}, {"loss": 1.0 * trial}, run_name=name)

    runs = read_tensorboard(tmp_path).runs
    assert [run.values for run in runs] == [{"lr": 0.5}, {"lr": 1.5}]


@pytest.mark.parametrize("kept", [0, 5, 40, 500, 1000])
def test_a_file_that_is_cut(tmp_path, kept):
    write_run(tmp_path / "good")
    path = next(write_run(tmp_path / "cut", scalars=30).iterdir())
    whole = len(list(read_events(path)))
    path.write_bytes(path.read_bytes()[:kept])
    history = read_tensorboard(tmp_path)
    cut = [run for run in history.runs if run.motivation == "cut"]
    if kept < 100:
        # No more than its head.
        assert cut == []
        assert any("cut" in text or "tfevents" in text for text in history.left_out)
    else:
        assert 0 < len(cut[0].curve["epoch"]) < whole

    assert len(history.runs) == 1 + len(cut)


@pytest.mark.parametrize(
    ("name", "message"),
    [("missing", "there is no"), ("empty", "has no event files of TensorBoard")],
)
def test_a_folder_of_another_kind_is_one_line(tmp_path, name, message):
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=message):
        read_tensorboard(tmp_path / name)


def test_a_file_of_another_kind_is_named(tmp_path):
    (tmp_path / "x.tfevents.1").write_bytes(b"no events at all, but long enough for a length")
    (text, _) = read_tensorboard(tmp_path).left_out
    assert "x.tfevents.1 has no events of TensorBoard" in text


def test_a_hundred_thousand_steps(tmp_path):
    """The package's own records, written without its writer, which takes a minute."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.record_writer import RecordWriter

    with (tmp_path / "events.out.tfevents.1").open("wb") as file:
        writer = RecordWriter(file)
        head = Event(wall_time=1.0, file_version="brain.Event:2").SerializeToString()
        writer.write(head)
        frame = None
        for step in range(100_000):
            value = Summary.Value(tag="loss", simple_value=float(step))
            values = [value]
            if step % 1000 == 999:
                values.append(Summary.Value(tag="val", simple_value=0.5))

            event = Event(wall_time=1.0, step=step, summary=Summary(value=values))
            content = event.SerializeToString()
            # Checksums are not read.
            frame = len(content).to_bytes(8, "little") + b"0000" + content + b"0000"
            file.write(frame)

    (run,) = read_tensorboard(tmp_path).runs
    assert run.metrics == {"loss": 99_999.0, "val": 0.5}
    assert len(run.curve["epoch"]) <= MOST_POINTS + 100
    # A validation every thousand steps stays whole.
    assert run.curve["val"].count(0.5) == 100


@pytest.mark.parametrize(
    ("module", "read", "name"),
    [
        ("tensorboard.compat.proto.event_pb2", read_tensorboard, "x.tfevents.1"),
        ("wandb.proto", read_wandb, "run-x.wandb"),
        ("mlflow", read_mlflow, "1/meta.yaml"),
    ],
)
def test_a_missing_package_is_named(tmp_path, monkeypatch, module, read, name):
    monkeypatch.setitem(sys.modules, module, None)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_bytes(b"x")
    extra = module.partition(".")[0]
    with pytest.raises(SettingsError, match=rf"needs it: pip install 'nas-archive\[{extra}\]'"):
        read(tmp_path if extra != "mlflow" else str(tmp_path))

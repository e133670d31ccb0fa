"""Programs under a recorder: real processes, also hostile ones."""

import errno
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

from archive import settings
from archive.errors import UsageError
from archive.runs import known_runs, run_log
from archive.runs.life_cycle import RunRequest
from archive.runs.recorded_command import PreparedRun
from archive.runs.run_folder import RunFolder, pending_runs


@pytest.fixture
def configuration(tmp_path, monkeypatch):
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return settings.load(home=tmp_path / "home")


def run(configuration, code, *arguments, **request):
    command = [sys.executable, "-c", code, *arguments]
    return PreparedRun(command, RunRequest(study="s", **request), configuration).run()


def test_what_a_program_is_given_and_brings(configuration, capfd):
    code = "import sys; print('epoch 1 loss: 0.5'); print('acc=0.25', file=sys.stderr)"
    recorded = run(configuration, code, "--lr", "0.1", "--seed", "4", motivation="try")
    record = recorded.record
    assert (record.status, record.reason, record.seed) == (0, None, 4)
    assert record.values == {"lr": 0.1}
    assert record.metrics["loss"] == 0.5
    assert record.metrics["acc"] == 0.25
    assert record.metrics["peak_memory_bytes"] > 1e6
    assert record.curve == {"epoch": [1.0], "loss": [0.5]}
    assert record.environment["packages"]["torch"]
    assert recorded.folder.read() == record
    # It is passed on as it is.
    out, error = capfd.readouterr()
    assert (out, error) == ("epoch 1 loss: 0.5\n", "acc=0.25\n")


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("raise ValueError('diverged')", "ended with status 1: ValueError: diverged"),
        ("import sys; sys.exit(7)", "ended with status 7"),
        ("import os; os.kill(os.getpid(), 9)", "ended by signal SIGKILL"),
    ],
)
def test_a_failure_has_its_reason(configuration, code, reason):
    assert run(configuration, code).record.reason == reason


def test_a_program_that_runs_too_long_is_ended(configuration):
    record = run(configuration, "import time; time.sleep(60)", limit=0.3).record
    assert record.reason == "ended after its limit of 0.3 s"
    assert record.cause == "limit"


def test_a_program_that_cannot_be_started_leaves_no_run(configuration):
    prepared = PreparedRun(["./missing.sh"], RunRequest("s"), configuration)
    with pytest.raises(UsageError, match=r"missing\.sh.* cannot be started"):
        prepared.run()

    assert list(pending_runs(configuration.home / "runs")) == []


def test_binary_and_huge_output_is_bounded(configuration, monkeypatch, capfd):
    monkeypatch.setattr(run_log, "HEAD_BYTES", 1 << 10)
    monkeypatch.setattr(run_log, "PART_BYTES", 1 << 18)
    code = (
        "import os, random; noise = random.Random(0).randbytes; "
        "[os.write(1, noise(1 << 18)) for _ in range(8)]; print('\\nloss: 3')"
    )
    recorded = run(configuration, code)
    capfd.readouterr()
    assert recorded.record.metrics["loss"] == 3.0
    assert len(recorded.record.metrics) == 3
    sizes = [path.stat().st_size for path in recorded.folder.path.glob("log.*")]
    assert sum(sizes) <= (1 << 10) + 2 * (1 << 18)
    assert run_log.read_end(recorded.folder.path).endswith("loss: 3\n")


def test_a_process_that_is_left_behind_does_not_hold_the_recorder(configuration):
    code = "import subprocess; subprocess.Popen(['sleep', '30']); print('loss: 1')"
    begin = time.monotonic()
    assert run(configuration, code).record.metrics["loss"] == 1.0
    assert time.monotonic() - begin < 20


def test_a_process_that_is_left_behind_may_go_on_to_write(configuration, capfd):
    code = (
        "import subprocess; "
        "subprocess.Popen(['timeout', '30', 'sh', '-c', 'while echo x; do sleep 0.05; done']); "
        "print('loss: 1')"
    )
    begin = time.monotonic()
    assert run(configuration, code).record.metrics["loss"] == 1.0
    assert time.monotonic() - begin < 20


def test_the_limit_holds_for_a_program_without_output_and_for_its_children(configuration):
    command = ["sh", "-c", "exec >child 2>&1; sleep 60 & echo $!; wait"]
    record = PreparedRun(command, RunRequest("s", limit=0.3), configuration).run().record
    assert record.cause == "limit"
    with open("child") as file:
        child = file.read().strip()

    for _ in range(100):
        if not os.path.exists(f"/proc/{child}"):
            break

        time.sleep(0.05)
    else:
        pytest.fail("a child of the program goes on after the limit")


def test_a_signal_of_a_scheduler_is_for_the_program(configuration):
    code = (
        "import os, signal, time\n"
        "signal.signal(signal.SIGUSR1, lambda *_: print('loss: 3', flush=True) or os._exit(0))\n"
        "os.kill(os.getppid(), signal.SIGUSR1)\n"
        "time.sleep(30)"
    )
    record = run(configuration, code).record
    assert (record.status, record.metrics["loss"]) == (0, 3.0)


def test_a_reader_that_does_not_wait_gets_all_output(configuration):
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    received = []

    def read():
        time.sleep(0.2)
        while content := os.read(read_end, 1 << 16):
            received.append(content)

    reader = threading.Thread(target=read)
    reader.start()
    command = [sys.executable, "-c", "print('x' * 300_000)"]
    PreparedRun(command, RunRequest("s"), configuration).run(write_end)
    os.close(write_end)
    reader.join()
    os.close(read_end)
    assert len(b"".join(received)) == 300_001


def test_a_full_disk_ends_the_log_and_not_the_program(configuration, monkeypatch, capfd):
    def fill(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(run_log.RunLog, "_write", fill)
    record = run(configuration, "print('loss: 1')").record
    assert (record.status, record.metrics["loss"]) == (0, 1.0)
    assert "the log of the run has an end: No space left on device" in capfd.readouterr().err


@pytest.mark.parametrize("pattern", ["/etc/*", "", ".", "a\0b", "x**y/*"])
def test_a_pattern_of_files_that_cannot_be_kept_is_refused_before_the_start(configuration, pattern):
    with pytest.raises(UsageError, match="--keep takes"):
        run(configuration, "print('loss: 1')", keep=(pattern,))

    assert list(pending_runs(configuration.home / "runs")) == []


def test_a_file_that_cannot_be_kept_loses_no_run(configuration, monkeypatch, capfd):
    def refuse(path, _):
        raise PermissionError(errno.EACCES, "Permission denied", path)

    monkeypatch.setattr(shutil, "copyfile", refuse)
    record = run(configuration, "open('m.txt', 'w'); print('loss: 1')", keep=("*.txt",)).record
    assert (record.kept, record.metrics["loss"]) == ([], 1.0)
    assert "m.txt is not kept: Permission denied" in capfd.readouterr().err


def test_a_secret_in_a_line_without_an_end_is_masked(configuration, monkeypatch, capfd):
    monkeypatch.setenv("SOME_API_KEY", "very-secret-value")
    code = f"import os; print('x ' * {(1 << 15) - 4}, os.environ['SOME_API_KEY'], 'y ' * 9000)"
    recorded = run(configuration, code)
    assert b"very" not in (recorded.folder.path / "log.head").read_bytes()
    capfd.readouterr()


def test_secrets_are_kept_nowhere(configuration, monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "very-secret-value")
    code = (
        "import archive, os, sys; print('key', os.environ['SOME_API_KEY'], sys.argv)\n"
        "with archive.record(config={'token': sys.argv[2], 'said': f'by {sys.argv[2]}'}): pass"
    )
    recorded = run(configuration, code, "--token", "another-secret", motivation="x")
    for path in configuration.home.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert b"very-secret-value" not in content, path
            assert b"another-secret" not in content, path

    assert recorded.record.values == {"said": "by ***"}


def test_files_with_metrics_and_files_to_keep(configuration):
    code = (
        "import json; open('metrics.jsonl', 'w').write('{\"step\": 2, \"loss\": 0.125}\\n'); "
        "open('model.txt', 'w').write('weights')"
    )
    recorded = run(configuration, code, keep=("*.txt", "../*"))
    assert recorded.record.metrics["loss"] == 0.125
    assert recorded.record.kept == ["model.txt"]
    assert (recorded.folder.path / "kept" / "model.txt").read_text() == "weights"


def test_the_same_program_with_the_same_values_is_known(configuration):
    code = "print('loss: 1')"
    first = run(configuration, code, "--lr", "1", "--seed", "1")
    second = run(configuration, code, "--lr", "1", "--seed", "2")
    other = run(configuration, code, "--lr", "2")
    assert first.earlier == other.earlier == []
    assert [known.run for known in second.earlier] == [first.record.id]


PROGRAM = """
import archive
with archive.record("inner", config={"width": 3}, why="wider", minimise="loss") as run:
    for step in range(250):
        run.log(step, {"loss": 1 / (1 + step)})
    %s
"""


def test_a_python_program_records_itself(configuration, tmp_path):
    # The process of the delivery would start a server.
    environment = {**os.environ, "ARCHIVE_HOME": str(configuration.home)}
    code = "from archive.runs import life_cycle; life_cycle.start_delivery = lambda _: None\n"
    done = subprocess.run(
        [sys.executable, "-c", code + PROGRAM % "raise RuntimeError('lost')"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    (folder,) = pending_runs(configuration.home / "runs")
    record = folder.read()
    assert (record.study, record.motivation, record.objective) == ("inner", "wider", "loss")
    assert record.reason == "RuntimeError: lost"
    assert record.values == {"width": 3}
    assert len(record.curve["loss"]) == 250


def test_within_a_recorded_command_it_adds_to_that_run(configuration):
    recorded = run(configuration, PROGRAM % "", "--lr", "1", motivation="from the command")
    assert len(list(pending_runs(configuration.home / "runs"))) == 1
    record = recorded.record
    assert (record.study, record.motivation, record.objective) == ("s", "from the command", "loss")
    assert record.values == {"lr": 1, "width": 3}
    assert record.metrics["loss"] == 1 / 250


@pytest.fixture
def recording(configuration, monkeypatch):
    """Records runs of this process, which no process delivers; returns how to read the last."""
    from archive.runs import life_cycle
    from archive.runs.recording import record

    monkeypatch.setattr(life_cycle, "start_delivery", lambda _: None)

    def opened(**options):
        return record("s", settings=configuration, **options)

    def last():
        *_, folder = pending_runs(configuration.home / "runs")
        return folder.read()

    return SimpleNamespace(open=opened, last=last)


def test_values_that_no_server_holds_become_texts_and_secrets_are_left_out(recording, monkeypatch):
    monkeypatch.setenv("SOME_TOKEN", 'very"secret')
    nested = {"password": "hunter22", "lr": 1, "list": ['a very"secret']}
    config = {"nan": math.nan, "large": 2**70, "half": "\udcff", "api_key": 12345678, "in": nested}
    with recording.open(config=config, seed=np.int64(3)) as opened:
        opened.set(token="another-secret", text="x" * 100_000)

    record = recording.last()
    assert len(record.values.pop("text")) < 10_100
    assert record.values == {
        "nan": "nan",
        "large": str(2**70),
        "half": "?",
        "in": {"lr": 1, "list": ["a ***"]},
    }
    assert record.seed == 3


@pytest.mark.parametrize(
    ("leave", "reason"),
    [(lambda: sys.exit(0), None), (sys.exit, None), (lambda: sys.exit(2), "SystemExit: 2")],
)
def test_a_program_that_exits_within_the_block_fails_by_its_status(recording, leave, reason):
    with pytest.raises(SystemExit), recording.open():
        leave()

    assert recording.last().reason == reason


def test_a_full_disk_ends_the_metrics_and_not_the_training(recording, capfd):
    with recording.open() as opened:
        opened._logged.close()
        opened._logged = open("/dev/full", "w")
        for step in range(250):
            opened.log(step, {"loss": 1.0})

    assert recording.last().reason is None
    assert capfd.readouterr().err.count("the metrics of the run have an end: No space") == 1


def test_a_child_of_a_fork_that_leaves_the_block_ends_no_run(recording):
    with recording.open() as opened:
        pid = os.fork()
        if not pid:
            opened.close(SystemExit(1))
            os._exit(0)

        os.waitpid(pid, 0)
        assert recording.last().finished is None
        opened.log(0, {"loss": 1.0})

    assert recording.last().metrics == {"loss": 1.0}


def test_a_process_that_outlives_its_run_records_one_of_its_own(
    configuration, recording, monkeypatch
):
    ended = run(configuration, "pass")
    monkeypatch.setenv("ARCHIVE_RUN", str(ended.folder.path))
    with recording.open() as opened:
        opened.log(0, {"loss": 1.0})

    assert opened.id != ended.record.id
    assert recording.last().metrics == {"loss": 1.0}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seed": "x"}, "a seed must be a whole number"),
        ({"parent": "bset"}, "the parent of a run is best, last"),
        ({"parent": "../runs"}, "the parent of a run is best, last"),
        ({"parent": "x#y"}, "a proposal is named STUDY#NUMBER"),
        ({"task": ""}, "the name of the task is empty"),
        ({"minimise": "x" * 1000}, "the name of the metric must be at most"),
    ],
)
def test_what_cannot_be_delivered_is_refused_before_the_start(recording, options, message):
    with pytest.raises(UsageError, match=message), recording.open(**options):
        pytest.fail("the block begins")


def test_a_current_folder_that_is_gone_is_one_line(recording, tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(UsageError, match="current folder cannot be read"), recording.open():
        pytest.fail("the block begins")


def test_a_metric_that_is_no_number_is_refused(recording):
    with recording.open() as opened:
        for value in (10**400, np.ones(2), "x", None):
            with pytest.raises(UsageError, match="must be a number"):
                opened.log(0, {"loss": value})


def test_the_network_is_named_before_it_trains(configuration, capfd):
    import torch
    from torch import nn

    from archive.runs.recording import record

    def train(activation):
        with record("nets", settings=configuration) as opened:
            model = nn.Sequential(nn.Linear(4, 3), activation, nn.Linear(3, 1)).double().train()
            known = opened.model(model, torch.zeros(2, 4))
            assert model.training
            assert next(model.parameters()).dtype == torch.float64
            opened.log(0, {"loss": 1.0})
            return known

    from archive.runs import life_cycle

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(life_cycle, "start_delivery", lambda _: None)
        assert train(nn.ReLU()) == []
        assert train(nn.GELU()) == []
        (known,) = train(nn.ReLU(inplace=True))

    assert known.study == "nets"
    assert "this network was trained before, by" in capfd.readouterr().err


def test_a_recorder_that_is_killed_ends_its_program(configuration, tmp_path):
    code = (
        "import time, os, sys; print('pid', os.getpid(), flush=True); print('loss: 2', flush=True); "
        "time.sleep(60)"
    )
    recorder = (
        "import sys; from archive import settings; "
        "from archive.runs.life_cycle import RunRequest; "
        "from archive.runs.recorded_command import PreparedRun; "
        f"PreparedRun([sys.executable, '-c', {code!r}], RunRequest('s'), settings.load()).run()"
    )
    environment = {**os.environ, "ARCHIVE_HOME": str(configuration.home)}
    process = subprocess.Popen(
        [sys.executable, "-c", recorder], env=environment, stdout=subprocess.PIPE, text=True
    )
    pid = int(process.stdout.readline().split()[1])
    assert process.stdout.readline() == "loss: 2\n"
    (folder,) = pending_runs(configuration.home / "runs")
    assert folder.is_recording()
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    for _ in range(200):
        if not os.path.exists(f"/proc/{pid}"):
            break

        time.sleep(0.05)
    else:
        pytest.fail("the program goes on without its recorder")

    assert folder.read().finished is None
    assert not folder.is_recording()
    assert pid in folder.processes()


def test_a_line_that_was_cut_by_a_kill_hides_no_other(tmp_path):
    known_runs.add(tmp_path, known_runs.KnownRun("a", "s", "f1", metrics={"loss": 1.0}))
    with (tmp_path / known_runs.NAME).open("a") as file:
        file.write('{"run": "cut", "finger\n')

    known_runs.add(tmp_path, known_runs.KnownRun("b", "s", "f1"))
    assert [known.run for known in known_runs.find(tmp_path, fingerprint="f1")] == ["a", "b"]


def test_a_folder_without_a_readable_run_is_none(tmp_path):
    (tmp_path / "run.json").write_text(json.dumps({"id": "x", "strange": 1}))
    assert RunFolder(tmp_path).read() is None

"""Measurements that are cut off: the figures up to then are shown, and neither a server nor a
folder is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile

import pytest

from archive.server import embedded
from archive.server.temporary import OWNER, PREFIX, temporary_archive

# `drawing` with a measurement that needs an archive, and does not end.
NEVER_ENDING = """
import signal, sys, time
from tests.benchmarks import drawing
from archive.benchmarks.measurement import Figure
from archive.server import embedded
from archive.server.temporary import temporary_archive

def measure():
    with temporary_archive() as own:
        if {starts}:
            embedded.ensure_running(own)
        for number in range(100_000):
            yield Figure(f"picture {{number}}", 0.5, "s", "<= 1")
            time.sleep({pause})

drawing.measure = measure
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
from tests.benchmarks.programs import main
main(["drawing", *sys.argv[1:]])
"""


def cut_off(number, folder, *options, starts=False):
    """Run the measurement, send a signal after its first figure, and return the process with its
    output."""
    code = NEVER_ENDING.format(starts=starts, pause=60)
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    variables = {**os.environ, "TMPDIR": str(folder)}
    process = subprocess.Popen([sys.executable, "-c", code, *options], env=variables, **streams)
    assert process.stderr.readline() == "measuring: drawing\n"
    assert process.stderr.readline() == "  picture 0, 0.5, s, <= 1\n"
    process.send_signal(number)
    return process, *process.communicate(timeout=60)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_all_and_shows_the_figures_up_to_then(tmp_path, number):
    options = ["--json"] if number == signal.SIGHUP else []
    process, out, errors = cut_off(number, tmp_path, *options)
    assert process.returncode == 128 + number
    assert errors.strip() == "interrupted: the figures up to here are shown"
    # Half a JSON document is none.
    assert ("picture 0" in out) == (not options) and bool(out) == (not options)
    assert not list(tmp_path.iterdir())


@pytest.mark.whole
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_server(tmp_path, number):
    process, _, _ = cut_off(number, tmp_path, starts=True)
    assert process.returncode == 128 + number
    assert not list(tmp_path.iterdir())


def test_a_reader_that_has_gone_ends_the_measurement(tmp_path):
    code = NEVER_ENDING.format(starts=False, pause=0)
    variables = {**os.environ, "TMPDIR": str(tmp_path)}
    process = subprocess.Popen([sys.executable, "-c", code], env=variables, stderr=subprocess.PIPE)
    process.stderr.readline()
    process.stderr.close()
    assert process.wait(60) == 0
    assert not list(tmp_path.iterdir())


def test_what_a_killed_measurement_left_is_removed_by_the_next(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    process, _, _ = cut_off(signal.SIGKILL, tmp_path)
    assert process.returncode == -signal.SIGKILL
    (abandoned,) = tmp_path.iterdir()
    foreign = tmp_path / f"{PREFIX}foreign"
    foreign.mkdir()
    stopped = []
    monkeypatch.setattr(embedded, "stop", lambda own: stopped.append(own.home))
    with temporary_archive() as first, temporary_archive() as second:
        assert {path.name for path in tmp_path.iterdir()} == {
            foreign.name,
            first.home.name,
            second.home.name,
        }
        assert (first.home / OWNER).read_text().split()[0] == str(os.getpid())

    assert stopped == [abandoned, second.home, first.home]
    assert list(tmp_path.iterdir()) == [foreign]

"""Logs of trials: of bounded size, with their last lines for errors."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

from archive.trainer.storage.file_names import TAIL_BYTES
from archive.trainer.trial import log as triallog
from tests.support import ROOT


def test_tail_is_the_end_of_the_log_and_bounded(tmp_path):
    log = tmp_path / "a.log"
    assert triallog.tail(log) == triallog.tail(None) == ""
    log.write_text("".join(f"line {k}\n" for k in range(1000)))
    assert triallog.tail(log, 3) == "line 997\nline 998\nline 999"
    log.write_bytes(b"x" * 100_000 + b"\xff end")
    tail = triallog.tail(log)
    assert tail.endswith("\ufffd end")
    assert len(tail) <= TAIL_BYTES
    log.write_text("".join(f"line {k} {'x' * 200}\n" for k in range(1000)))
    tail = triallog.tail(log)
    assert TAIL_BYTES - 300 < len(tail) <= TAIL_BYTES
    assert tail.startswith("line 98")


@pytest.mark.parametrize("length", [900, 3_900, 4_100, 50_000])
def test_a_long_line_does_not_displace_the_lines_before_it(tmp_path, length):
    log = tmp_path / "a.log"
    modules = "Extension modules: " + "m" * length + " (total: 181)"
    log.write_text("Fatal Python error: Segmentation fault\n  File 'a.py'\n\n" + modules + "\n")
    tail = triallog.tail(log)
    assert tail.startswith("Fatal Python error: Segmentation fault\n")
    assert tail.endswith(" (total: 181)")
    assert "Extension modules: m" in tail
    assert len(tail) <= TAIL_BYTES


def test_a_log_is_cut_at_a_line_and_keeps_its_end(tmp_path):
    path = tmp_path / "a.log"
    path.write_text("".join(f"line {k:05d}\n" for k in range(1000)))
    log = os.open(path, os.O_RDWR | os.O_APPEND)
    triallog.cut(log, most=20_000)
    assert path.stat().st_size == 11_000
    triallog.cut(log, most=10_000)
    os.write(log, b"and on\n")
    os.close(log)
    first, *lines = path.read_text().splitlines()
    assert first == "[older lines were dropped]"
    assert lines == [f"line {k:05d}" for k in range(1000 - len(lines) + 1, 1000)] + ["and on"]
    assert 4_900 < path.stat().st_size < 5_100


def test_all_that_a_process_prints_is_in_its_log_in_order(tmp_path):
    code = f"""
        import logging, os, subprocess, sys
        from pathlib import Path
        from archive.trainer.trial import log as triallog
        triallog.capture(Path({str(tmp_path)!r}) / "deep" / "a.log")
        print("one")
        os.write(2, b"two\\n")
        logging.getLogger("archive.trainer").info("three")
        subprocess.run(["echo", "four"])
        sys.stderr.write("five\\n")
        assert "torch" not in sys.modules
        os._exit(0)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], cwd=ROOT, capture_output=True, check=True
    )
    assert done.stdout == done.stderr == b""
    lines = (tmp_path / "deep" / "a.log").read_text().splitlines()
    assert [line.split()[-1] for line in lines] == ["one", "two", "three", "four", "five"]

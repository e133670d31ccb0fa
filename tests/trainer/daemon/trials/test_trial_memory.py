"""The memory of a trial: pages that its processes share count once, and those of all processes
together."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from types import SimpleNamespace

import pytest

from archive.trainer.daemon import trial_limits
from archive.trainer.daemon.in_flight import InFlight
from archive.trainer.daemon.options import TrainerOptions
from archive.trainer.daemon.trainer import DelayedResult
from archive.trainer.daemon.trial_limits import TrialMemory
from tests.support import wait_until

MIB = 1 << 20

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="proportional shares of memory exist on Linux only"
)


@pytest.fixture
def family(monkeypatch):
    """Id of a process that leads a session, with 64 MiB that its three children share, and the pipe
    that ends them.

    After a line on the pipe each child has 64 MiB of its own.
    """
    monkeypatch.setattr(trial_limits, "MEASURE_SECONDS", 0.0)
    monkeypatch.setattr(trial_limits, "_LARGEST_SHARE", 1e9)
    code = """
        import os, sys
        shared = bytearray(os.urandom(1 << 20) * 64)
        told, tell = os.pipe()
        # A pipe for each purpose: a child that has grown must not read the byte of another one.
        parent_lives, parent = os.pipe()
        for _ in range(3):
            if os.fork() == 0:
                os.close(parent)
                os.read(told, 1)
                own = shared.copy()
                os.write(1, b"own\\n")
                os.read(parent_lives, 1)
                sys.exit()
        print("ready", flush=True)
        sys.stdin.readline()
        os.write(tell, b"...")
        sys.stdin.readline()
    """
    command = [sys.executable, "-S", "-c", textwrap.dedent(code)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout.readline() == "ready\n"
        yield process
        process.stdin.close()


def grow(family) -> None:
    family.stdin.write("\n")
    family.stdin.flush()
    assert [family.stdout.readline() for _ in range(3)] == ["own\n"] * 3


def test_shared_pages_count_once(family):
    memory = TrialMemory((family.pid,))
    assert memory.measure(1 << 40) > 4 * 64 * MIB
    assert 64 * MIB < memory.measure(100 * MIB) < 100 * MIB
    grow(family)
    assert memory.measure(100 * MIB) > 4 * 64 * MIB


def test_a_trial_has_a_limit_of_memory(family):
    each = InFlight(
        None, SimpleNamespace(pid=family.pid, pids=(family.pid,), due=None, enforces_limits=False)
    )  # type: ignore[arg-type]
    options = TrainerOptions(memory_bytes=200 * MIB)
    assert each.excess(options) is None
    grow(family)
    reason = each.excess(options)
    assert reason.startswith("the trial took ") and reason.endswith(
        "more than its limit of 209715200 (--memory-limit)"
    )
    assert each.excess(TrainerOptions()) is None
    assert InFlight(None, DelayedResult(None, 60.0)).excess(options) is None  # type: ignore[arg-type]


def test_a_trial_that_has_ended_takes_nothing(family):
    memory = TrialMemory((family.pid,))
    grow(family)
    os.killpg(family.pid, 9)
    family.wait()
    # Its children end a moment later.
    wait_until(lambda: memory.measure(1) < 64 * MIB, what="the end of the children")

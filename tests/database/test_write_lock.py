"""Write lock: shared or exclusive turns, between threads and processes, with a bounded wait."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from archive.database import write_lock
from archive.database.write_lock import WriteLock
from tests.support.stores import everywhere

HOLD = """
import sys, time
from pathlib import Path
from archive.database.write_lock import WriteLock
with WriteLock(Path(sys.argv[1])).turn(alone=True):
    print("held", flush=True)
    time.sleep(600)
"""


def test_short_turns_overlap_and_long_ones_do_not(tmp_path):
    inside = [0, 0]
    most = [0, 0]
    clashes = []
    guard = threading.Lock()

    def work(number):
        own = WriteLock(tmp_path)
        for at in range(6):
            alone = (number + at) % 4 == 0
            with own.turn(alone=alone):
                with guard:
                    inside[alone] += 1
                    most[alone] = max(most[alone], inside[alone])
                    clashes.extend([inside[:]] if inside[1] and sum(inside) > 1 else [])

                time.sleep(0.003)
                with guard:
                    inside[alone] -= 1

    everywhere(work)
    assert (clashes, most[1], inside) == ([], 1, [0, 0])
    assert most[0] > 1


def test_writers_of_one_lane_run_one_after_the_other_beside_all_others(tmp_path):
    inside = dict.fromkeys("ab-", 0)
    most = dict.fromkeys("ab-", 0)
    together = set()
    guard = threading.Lock()

    def work(number):
        own = WriteLock(tmp_path)
        lane = "ab-"[number % 3]
        for _ in range(6):
            with own.turn(alone=False, lane=None if lane == "-" else lane):
                with guard:
                    inside[lane] += 1
                    most[lane] = max(most[lane], inside[lane])
                    together.add("".join(sorted(name for name in inside if inside[name])))

                time.sleep(0.003)
                with guard:
                    inside[lane] -= 1

    everywhere(work)
    assert (most["a"], most["b"], inside) == (1, 1, dict.fromkeys("ab-", 0))
    assert most["-"] > 1
    assert any(names.endswith("ab") for names in together)


def test_a_killed_process_releases_its_locks(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, tmp_path], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "held\n"
        free = threading.Event()
        waiting = threading.Thread(target=lambda: enter(tmp_path, free))
        waiting.start()
        assert not free.wait(0.1)
        process.kill()
        assert free.wait(30)
        waiting.join()


def enter(folder, free):
    with WriteLock(folder).turn(alone=True):
        free.set()


def test_a_turn_that_never_ends_is_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(write_lock, "PATIENCE_SECONDS", 0.05)
    own = WriteLock(tmp_path)
    with own.turn(alone=True), own.turn(alone=True), own.turn(alone=False):
        pass


def test_a_turn_ends_though_a_process_that_was_forked_within_it_lives_on(tmp_path):
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("needs /proc")

    own = WriteLock(tmp_path)
    with own.turn(alone=True):
        held = [int(name) for name in os.listdir("/proc/self/fd") if is_a_lock(name, tmp_path)]
        copies = [os.dup(handle) for handle in held]

    assert len(copies) == 2
    # With no patience, a writer proceeds without a turn, so the locks themselves are checked.
    for copy in copies:
        with Path(f"/proc/self/fd/{copy}").open("r+b") as another:
            fcntl.flock(another, fcntl.LOCK_EX | fcntl.LOCK_NB)

        os.close(copy)


def is_a_lock(name, folder):
    path = f"/proc/self/fd/{name}"
    return os.path.lexists(path) and os.readlink(path).startswith(f"{folder}/turn.")


def test_a_missing_folder_does_not_block_writers(tmp_path):
    with WriteLock(tmp_path / "missing").turn(alone=True):
        assert not (tmp_path / "missing").exists()

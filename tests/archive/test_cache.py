"""Disk cache: damaged, foreign and outdated files, several writers, the bound on the size."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from archive import cache

ARRAYS = {"numbers": np.arange(6.0).reshape(2, 3), "names": np.array([b"a", b"bc"], "S2")}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def kept(home: Path) -> list[Path]:
    return sorted((home / "cache" / "numbers").glob("*"))


def read(home: Path, identity: str = "one") -> cache.Arrays | None:
    return cache.read("numbers", identity, home)


def write(home: Path, identity: str = "one", size: int | None = None) -> None:
    cache.write(
        "numbers", identity, ARRAYS if size is None else {"numbers": np.zeros(size, np.uint8)}, home
    )


def test_what_is_written_is_read(home):
    assert read(home) is None
    write(home)
    found = read(home)
    assert found is not None and found.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert found[name].dtype == array.dtype and np.array_equal(found[name], array)

    assert read(home, "two") is None


def test_the_folder_is_that_of_the_environment(home, monkeypatch):
    monkeypatch.setenv("ARCHIVE_HOME", str(home))
    cache.write("numbers", "one", ARRAYS)
    assert len(kept(home)) == 1 and cache.read("numbers", "one") is not None


def test_nobody_else_can_read_the_files(home):
    write(home)
    modes = [
        stat.S_IMODE(place.stat().st_mode)
        for place in (home / "cache", home / "cache" / "numbers", *kept(home))
    ]
    assert modes == [0o700, 0o700, 0o600]


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_a_file_that_is_cut_off_counts_as_missing(home, share):
    write(home)
    (file,) = kept(home)
    content = file.read_bytes()
    file.write_bytes(content[: int(share * len(content))])
    assert read(home) is None
    write(home)
    assert read(home) is not None


def test_a_file_with_a_changed_byte_counts_as_missing(home):
    write(home)
    (file,) = kept(home)
    content = bytearray(file.read_bytes())
    content[content.index(np.float64(5.0).tobytes())] ^= 1
    file.write_bytes(content)
    assert read(home) is None


def test_a_file_of_another_identity_counts_as_missing(home):
    write(home, "two")
    shutil.copy(cache.path("numbers", "two", home), cache.path("numbers", "one", home))
    assert read(home) is None


def test_pickles_are_never_loaded(home):
    write(home)
    (file,) = kept(home)
    np.savez(file, identity=np.frombuffer(b"one", np.uint8), numbers=np.array([{"a": 1}], object))
    assert read(home) is None


def test_a_file_of_other_code_is_not_read(home, monkeypatch):
    write(home)
    monkeypatch.setattr(cache, "fingerprint", lambda: "another")
    assert read(home) is None


def test_the_fingerprint_changes_with_any_module(tmp_path):
    package = tmp_path / "archive"
    shutil.copytree(
        Path(cache.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__")
    )

    def fingerprint() -> str:
        code = "from archive import cache; print(cache.fingerprint())"
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        return subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            cwd=tmp_path,
            check=True,
            capture_output=True,
            text=True,
        ).stdout

    before = fingerprint()
    assert before == fingerprint()
    with (package / "kernels" / "profile.py").open("a") as module:
        module.write("# another line\n")

    assert fingerprint() != before


def test_the_oldest_files_go_first(home, monkeypatch):
    monkeypatch.setattr(cache, "MOST_BYTES", 12_000)
    for age, identity in enumerate(["new", "middle", "old"]):
        write(home, identity, 3000)
        os.utime(cache.path("numbers", identity, home), (10**9 - age, 10**9 - age))

    # A read makes it the most recent.
    assert read(home, "old") is not None
    write(home, "last", 3000)
    assert read(home, "middle") is None
    assert all(read(home, identity) is not None for identity in ("new", "old", "last"))


def test_what_a_killed_writer_left_behind_goes(home):
    write(home)
    left = kept(home)[0].with_name("killed.part")
    current = kept(home)[0].with_name("writing.part")
    left.touch()
    current.touch()
    os.utime(left, (10**9, 10**9))
    write(home, "two")
    assert current in kept(home) and left not in kept(home)


def test_a_home_that_cannot_be_written_to_is_no_error(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    write(blocked / "home")
    assert read(blocked / "home") is None


def test_several_processes_write_and_read_one_file(home):
    code = (
        "import sys, numpy as np; from pathlib import Path; from archive import cache\n"
        "for turn in range(100):\n"
        "    cache.write('numbers', 'one', {'numbers': np.arange(10_000)}, Path(sys.argv[1]))\n"
        "    found = cache.read('numbers', 'one', Path(sys.argv[1]))\n"
        "    assert found is not None and np.array_equal(found['numbers'], np.arange(10_000))\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, str(home)]) for _ in range(3)]
    assert [process.wait(120) for process in running] == [0, 0, 0]
    assert len(kept(home)) == 1

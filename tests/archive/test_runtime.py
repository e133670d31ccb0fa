"""Cores that a process may use: its affinity, and the quotas of its control groups, in made-up file
trees."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest

from archive import runtime

V2 = "31 24 0:28 {top} {point} rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
V1 = "33 24 0:30 {top} {point} rw,nosuid - cgroup cgroup rw,cpu,cpuacct\n"
OTHER = (
    "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n34 24 0:31 / /sys/fs/cgroup/memory rw - cgroup "
    "cgroup rw,memory\n"
)


@pytest.fixture(autouse=True)
def sixteen_cores(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16)), raising=False)


def tree(root: Path, group: str, mounts: str, **files: str) -> Path:
    """Write the files of a process that sees these groups; the names of files have `__` for `/`."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(group)
    (root / "proc/self/mountinfo").write_text(OTHER + mounts)
    for name, content in files.items():
        path = root / "sys/fs/cgroup" / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)

    return root


def v2(at, group, top="/", **quotas):
    files = {
        "cpu.max" if name == "root" else f"{name}__cpu.max": quota for name, quota in quotas.items()
    }
    return tree(at, f"0::{group}\n", V2.format(top=top, point="/sys/fs/cgroup"), **files)


def v1(at, group, top="/", **quotas):
    files = {}
    for name, (quota, period) in quotas.items():
        folder = "cpu,cpuacct" if name == "root" else f"cpu,cpuacct__{name}"
        files |= {
            f"{folder}__cpu.cfs_quota_us": f"{quota}\n",
            f"{folder}__cpu.cfs_period_us": f"{period}\n",
        }

    groups = f"5:memory:/else\n4:cpu,cpuacct:{group}\n1:name=systemd:/\n0::/\n"
    return tree(at, groups, V1.format(top=top, point="/sys/fs/cgroup/cpu,cpuacct"), **files)


@pytest.mark.parametrize(
    ("group", "top", "quotas", "expected"),
    [
        ("/", "/", {"root": "400000 100000\n"}, 4),
        ("/", "/", {"root": "max 100000\n"}, 16),
        ("/", "/", {}, 16),
        ("/", "/", {"root": "3200000 100000\n"}, 16),
        ("/", "/", {"root": "250000 100000\n"}, 2),
        ("/", "/", {"root": "50000 100000\n"}, 1),
        ("/", "/", {"root": "300000\n"}, 3),
        ("/", "/", {"root": "garbage"}, 16),
        # The smallest quota of a group and those above it counts.
        ("/a/b", "/", {"a": "300000 100000", "a__b": "800000 100000"}, 3),
        ("/a/b", "/", {"a": "max 100000", "a__b": "600000 50000"}, 12),
        ("/a/b", "/", {"a__c": "100000 100000"}, 16),
        # The host's path of the group that the container has mounted as its root.
        ("/docker/ab12", "/docker/ab12", {"root": "500000 100000"}, 5),
        ("/docker/ab12/job", "/docker/ab12", {"root": "max 100000", "job": "700000 100000"}, 7),
        ("/../other", "/", {"root": "600000 100000"}, 6),
    ],
)
def test_quotas_of_version_2(tmp_path, group, top, quotas, expected):
    assert runtime.count_cores(v2(tmp_path, group, top, **quotas)) == expected


@pytest.mark.parametrize(
    ("group", "top", "quotas", "expected"),
    [
        ("/", "/", {"root": (400000, 100000)}, 4),
        ("/", "/", {"root": (-1, 100000)}, 16),
        ("/", "/", {"root": (0, 0)}, 16),
        ("/a/b", "/", {"root": (-1, 100000), "a": (200000, 100000), "a__b": (-1, 100000)}, 2),
        ("/docker/ab12", "/docker/ab12", {"root": (150000, 50000)}, 3),
        ("/docker/ab12", "/", {"docker__ab12": (900000, 100000)}, 9),
    ],
)
def test_quotas_of_version_1(tmp_path, group, top, quotas, expected):
    assert runtime.count_cores(v1(tmp_path, group, top, **quotas)) == expected


def test_an_affinity_below_the_quota_decides(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 5})
    assert runtime.count_cores(v2(tmp_path, "/", root="400000 100000")) == 2


def test_a_system_without_such_files_has_no_quota(tmp_path, monkeypatch):
    assert runtime.count_cores(tmp_path) == 16
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert runtime.count_cores(tmp_path) == 1


def test_no_part_counts_cores_by_itself():
    """No other module counts cores: it would ignore affinity and quotas."""
    folders = ("archive", "agents", "kernels", "trainer", "cli")
    root = Path(runtime.__file__).parent.parent
    counting = {
        str(path.relative_to(root))
        for folder in folders
        for path in (root / folder).rglob("*.py")
        if "cpu_count(" in path.read_text() or "sched_getaffinity(" in path.read_text()
    }
    assert {
        path for path in counting if path.count("/") == 1 or not path.startswith("archive/")
    } == {"archive/runtime.py"}


@pytest.fixture(autouse=True)
def collecting():
    gc.enable()
    yield
    gc.enable()


def test_it_rests_within_and_works_again_afterwards():
    with runtime.pause_gc():
        assert not gc.isenabled()
        with runtime.pause_gc():
            assert not gc.isenabled()

        assert not gc.isenabled()

    assert gc.isenabled()


def test_it_works_again_after_an_error():
    @runtime.pause_gc()
    def fails():
        assert not gc.isenabled()
        raise ValueError

    for _ in range(2):
        with pytest.raises(ValueError):
            fails()

        assert gc.isenabled()


def test_who_had_it_off_finds_it_off():
    gc.disable()
    with runtime.pause_gc():
        pass

    assert not gc.isenabled()

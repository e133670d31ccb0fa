"""The log of a run stays within its bound, and keeps its beginning and its end."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.runs import run_log
from archive.runs.run_log import RunLog, log_files, read_end


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(run_log, "HEAD_BYTES", 50)
    monkeypatch.setattr(run_log, "PART_BYTES", 80)


@given(st.lists(st.binary(max_size=200), max_size=30))
def test_any_output_is_kept_within_the_bound(tmp_path_factory, parts):
    folder = tmp_path_factory.mktemp("log")
    with RunLog(folder) as log:
        for part in parts:
            log.write(part)

    whole = b"".join(parts)
    kept = b"".join(path.read_bytes() for path in log_files(folder))
    assert len(kept) <= 50 + 2 * 80
    assert kept[:50] == whole[:50]
    assert whole.endswith(kept[50:])
    if len(whole) <= 50 + 80:
        assert kept == whole


def test_the_end_begins_with_a_line(tmp_path):
    with RunLog(tmp_path) as log:
        for number in range(100):
            log.write(f"line {number}\n".encode())

    end = read_end(tmp_path, 30)
    assert end.startswith("line 9")
    assert end.endswith("line 99\n")
    assert len(end) <= 30

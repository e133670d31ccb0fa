"""Logs of trainers in messages: the place, and the lines that have the reason."""

from __future__ import annotations

import pytest

from archive.launchers import base
from archive.launchers.base import describe_log


@pytest.mark.parametrize(
    ("code", "shown"),
    [(base.UNFIT_CODE, "cannot train: no file"), (1, "b | c | cannot train: no file")],
)
def test_the_reason_of_a_trainer_is_shown_without_what_is_before_it(tmp_path, code, shown):
    log = tmp_path / "study-0.log"
    assert describe_log(log, code) == f"see {log}: "
    log.write_text("a\nb\nc\ncannot train: no file\n")
    assert describe_log(log, code) == f"see {log}: {shown}"


def test_a_log_that_cannot_be_read_hides_no_failure(tmp_path):
    assert describe_log(tmp_path, 1) == f"see {tmp_path}: the log cannot be read: Is a directory"


def test_of_a_long_log_the_end_is_read(tmp_path):
    log = tmp_path / "study-0.log"
    log.write_text("".join(f"line {number}\n" for number in range(20_000)) + "ä" * 3000)
    assert describe_log(log, base.UNFIT_CODE).endswith("ä" * 900)
    assert len(describe_log(log, 1)) < 2500

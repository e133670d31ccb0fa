"""Logs of trainers in messages: the place, and the lines that have the reason."""

from __future__ import annotations

import pytest

from archive.launchers import base
from archive.launchers.logs import tail


@pytest.mark.parametrize(
    ("code", "shown"), [(base.UNFIT_CODE, "cannot train: no file"), (1, "b | c | cannot train: no file")]
)
def test_the_reason_of_a_trainer_is_shown_without_what_is_before_it(tmp_path, code, shown):
    log = tmp_path / "study-0.log"
    assert tail(log, code) == f"see {log}: "
    log.write_text("a\nb\nc\ncannot train: no file\n")
    assert tail(log, code) == f"see {log}: {shown}"

"""A whole study under kill -9 of random processes, the server among them."""

import pytest

from tests.support.faults.kill_everything import Study, run, verdict, wrong


@pytest.mark.whole
@pytest.mark.lasts(58)
def test_nothing_is_lost_or_doubled_when_processes_are_killed(tmp_path):
    study = Study(tmp_path, task="diabetes", space="mlp", budget=12)
    try:
        run(study, kills=6, timeout=600, seed=1, pause=(1.0, 8.0))
        assert wrong(verdict(study), study.budget) == [], study.killed
    finally:
        study.stop()

    assert len(study.killed) == 6

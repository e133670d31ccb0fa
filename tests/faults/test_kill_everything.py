"""A whole study under kill -9 of random processes, the server among them."""

import pytest

from tests.support import WHOLE
from tests.support.faults.kill_everything import Study, run, verdict, wrong


@pytest.mark.lasts(30)
def test_nothing_is_lost_or_doubled_when_processes_are_killed(tmp_path):
    budget, kills = (12, 6) if WHOLE else (4, 2)
    study = Study(tmp_path, task="diabetes", space="mlp", budget=budget)
    try:
        run(study, kills=kills, timeout=600, seed=1, pause=(1.0, 8.0))
        assert wrong(verdict(study), study.budget) == [], study.killed
    finally:
        study.stop()
    assert len(study.killed) == kills

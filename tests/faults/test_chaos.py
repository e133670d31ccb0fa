"""Kills of workers and of the server at the same time: a small run every day, a larger one in the
whole matrix.

The full size is `chaos.py` by hand.
"""

import pytest

from tests.support import WHOLE
from tests.support.faults.chaos import STORES, Plan, run


@pytest.mark.whole
@pytest.mark.lasts(16)
@pytest.mark.parametrize("server", ["embedded"])
def test_nothing_is_lost_or_doubled(tmp_path, server):
    tabular, real, kills = (40, 4, 6) if WHOLE else (12, 2, 2)
    plan = Plan(
        workers=4,
        tabular=tabular,
        real=real,
        kills=kills,
        restarts=1,
        lease=3.0,
        tasks=("diabetes",),
    )
    with STORES[server](tmp_path) as store:
        outcome = run(plan, store)

    assert outcome.wrong == []
    assert outcome.counts["COMPLETE"] + outcome.counts.get("FAILED", 0) == tabular + real
    assert outcome.counts["COMPLETE"] >= tabular
    assert outcome.killed["server"] == 1
    assert outcome.killed.total() > 1

"""The agents' benchmark runs and says what it should; how long things take is not a test's business."""

from __future__ import annotations

from archive import agents
from archive.agents.benchmarks import proposals


def test_rows():
    rows = proposals.measure(observations=11, repeats=1)
    assert len({row.name for row in rows}) == len(rows) == 2 * len(agents.names())
    assert all(row.value > 0 and row.unit == "s" for row in rows)
    assert {row.goal for row in rows if "nasbot" in row.name} == {"<= 3"}

"""How often a worker searches for expired leases."""

from types import SimpleNamespace

import pytest

from archive.queue.claimer import FEW_WORKERS, SEARCH_SECONDS, SEARCH_SECONDS_A_WORKER, _pause


@pytest.mark.parametrize("others", [0, FEW_WORKERS, FEW_WORKERS + 1, 40])
@pytest.mark.parametrize("whole", [False, True])
def test_all_workers_together_search_at_a_steady_rate(others, whole):
    pause = _pause(SimpleNamespace(whole=whole), others)
    if others <= FEW_WORKERS:
        assert pause == (SEARCH_SECONDS if whole else 0.0)
    else:
        # Of n workers, each searches once in n times a quarter of a second.
        assert pause == max(others * SEARCH_SECONDS_A_WORKER, SEARCH_SECONDS * whole)

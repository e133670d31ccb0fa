"""Controls of a comparison of warm starts: cold starts again, with the same first networks and
other draws."""

from __future__ import annotations

import math
import zlib

import numpy as np
import pytest

from archive.agents.transfer.evidence import FIRST
from archive.searches.comparison import plan
from archive.searches.comparison.plan import Problem
from archive.searches.comparison.run import search
from archive.store.records import Result
from tests.benchmarks.transfer.plan import TransferPlan, copy_starts
from tests.benchmarks.transfer.rows import FROM, Excess, rows
from tests.benchmarks.transfer.scenarios import TARGET, scenarios
from tests.support.listed import score, small_table

BUDGET = FIRST + 4


@pytest.fixture(scope="module")
def space(tmp_path_factory):
    return small_table(tmp_path_factory.mktemp("table"), count=30)


@pytest.fixture(params=[0.0, 0.1], ids=["exact", "noisy"])
def comparison(request, space):
    # No network reaches the best value, so that every search has its whole budget.
    best = 1.0 + max(map(score, space.members()))
    truth = {cell.functional_key: (score(cell), math.nan) for cell in space.members()}

    def answer(cell, query=""):
        return Result(score(cell) + request.param * (zlib.crc32(query.encode()) % 7))

    def problem(task):
        named = (
            task,
            task,
            f"{task}/1",
            space.name,
            space.config,
            "value",
            "maximise",
            best,
            30,
            1.0,
            "points",
        )
        return Problem(*named, answer, request.param, truth.__getitem__)

    run = f"noise-{request.param}"
    return TransferPlan(
        plan.contestant("tw"),
        problem,
        scenarios(["sampled"]),
        2,
        BUDGET,
        run,
        shrink=10,
        controls=2,
    )


@pytest.mark.whole
def test_a_control_has_the_first_networks_of_its_cold_start_and_then_draws_others(
    archive, space, comparison
):
    for job in comparison.cold(TARGET):
        search(archive, job, space)

    pairs = list(comparison.control_pairs())
    assert [cold for _, cold in pairs] == 2 * comparison.cold(TARGET)
    assert len({job.study.name for pair in pairs for job in pair}) == 4 + 2
    for _ in range(2):  # again, as after an interruption
        copy_starts(archive, comparison)
        for control, _ in pairs:
            search(archive, control, space)

    for control, cold in pairs:
        once, again = (
            [(one.architecture, one.value) for one in archive.studies.evaluations(job.study.name)]
            for job in (cold, control)
        )
        assert len(once) == len(again) == BUDGET
        assert once[:FIRST] == again[:FIRST]
        assert once[FIRST:] != again[FIRST:]

    results = rows(archive, comparison)
    assert [(one.scenario, one.seeds) for one in results] == [
        ("cold", 2),
        ("cold-again-1", 2),
        ("cold-again-2", 2),
    ]
    assert results[0].regret[1] == results[1].regret[1] == results[2].regret[1]


@pytest.mark.parametrize("behind", [0.25, 0.1, 0.34])
def test_an_amount_that_all_seeds_are_behind_by_has_no_standard_error(behind):
    cold = np.zeros((3, FROM + 1))
    same = cold + behind
    assert Excess.of(same, cold) == (pytest.approx(behind), None, None)
    assert Excess.of(cold, same) == (0.0, 0.0, 0.0)
    # The differences are equal, and the regrets are not.
    apart = np.arange(3.0)[:, None] + cold
    assert Excess.of(apart + behind, apart) == pytest.approx(
        (behind, None, behind * math.sqrt(3.0))
    )

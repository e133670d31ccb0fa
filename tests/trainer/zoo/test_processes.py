"""Processes that build networks: a bad model costs one line."""

from __future__ import annotations

from functools import partial

import psutil
import pytest

from archive.trainer.trial import fork_server
from archive.trainer.zoo.processes import BuildLimits, build_all
from tests.support.networks import toy_zoo

pytestmark = pytest.mark.lasts(5)


def children():
    server = fork_server.pid()
    return psutil.Process(server).children() if server else []


def test_each_bad_model_costs_one_line_and_nothing_else():
    before = {process.pid for process in children()}
    limits = BuildLimits(processes=2, memory_bytes=700_000_000)
    references = ["0", *toy_zoo.HOSTILE, "1"]
    outcomes = {built.reference: built for built in build_all(toy_zoo.build, references, limits)}
    assert outcomes.keys() == set(references)
    for good in ("0", "1"):
        assert outcomes[good].network == toy_zoo.build(good)

    reasons = {name: outcomes[name].reason for name in toy_zoo.HOSTILE}
    assert all(outcomes[name].network is None for name in toy_zoo.HOSTILE)
    assert all(len(reason.splitlines()) == 1 for reason in reasons.values())
    assert reasons["crash"] == "its process ended by signal 11"
    assert reasons["exit"] == "SystemExit: the end"
    assert reasons["memory"].endswith("GB of memory, more than 0.7 GB (--memory-limit)")
    assert reasons["raise"] == "ValueError: first line"
    assert reasons["recurse"].startswith("RecursionError: maximum recursion depth exceeded")
    assert reasons["refuse"] == "no such operator: use another one"
    assert {process.pid for process in children()} <= before


def test_a_killed_process_is_replaced_and_a_killer_costs_one_line(tmp_path):
    build = partial(toy_zoo.build_marked, folder=str(tmp_path))
    outcomes = list(build_all(build, ["killed once", "0", "killer"], BuildLimits()))
    reasons = {built.reference: built.reason for built in outcomes}
    assert reasons == {
        "0": "",
        "killed once": "",
        "killer": "its process was killed: was there too little memory?",
    }


def test_a_model_that_does_not_return_is_ended():
    [built] = build_all(toy_zoo.build, ["hang"], BuildLimits(seconds=0.5))
    assert built.reason == "it took longer than 0.5 s (--timeout)"


def test_the_processes_end_with_the_iterator():
    before = {process.pid for process in children()}
    outcomes = build_all(toy_zoo.build, ["0", "hang", "1"], BuildLimits(processes=2))
    next(outcomes)
    outcomes.close()
    assert {process.pid for process in children()} <= before

"""Claims of workers that cannot run everything, and proposals that go to another worker."""

from __future__ import annotations

import pytest

from archive.queue import backlog, event_log, leases, workers
from archive.queue.capabilities import Capabilities, ClaimFilter
from archive.queue.causes import Cause, MemoryNeed
from archive.queue.updates import Failure, Release
from archive.store.records import State
from tests.support.stores import Forgetful, cells, propose

GIB = 2**30
LONG = 600.0


def claim(archive, worker, **limits):
    (held,) = archive.proposals.claim_many(
        worker, 1, lease_seconds=LONG, claim_filter=ClaimFilter(**limits)
    ) or (None,)
    return held


def exhaust(archive, worker, capacity, *, alone, needed=3 * GIB):
    """Let a worker's trial run out of memory, and return the proposal."""
    held = claim(archive, worker, memory_bytes=capacity)
    memory = MemoryNeed(needed, capacity, alone)
    cause = Cause.OUT_OF_MEMORY
    assert archive.proposals.settle(
        [Failure(held.id, held.token, "out of memory", cause=cause, memory=memory)]
    ) == [True]
    return archive.proposals.get(held.id)


def test_a_refused_proposal_goes_to_another_worker_without_an_attempt(archive, monkeypatch):
    first, second = propose(archive, cells(2))
    held = claim(archive, "broken")
    assert held.id == first.id
    monkeypatch.setattr(archive.proposals, "_connection", Forgetful(archive.connection))
    refusal = Release(held.id, held.token, "no NVIDIA driver", Cause.DEVICE, "the end of the log")
    assert archive.proposals.settle([refusal]) == [True]
    monkeypatch.undo()
    back = archive.proposals.get(first.id)
    assert (back.state, back.attempts, back.refused_by) == (State.WAITING, 0, ("broken",))
    assert (back.reason, back.cause) == ("no NVIDIA driver", "device")
    assert claim(archive, "broken").id == second.id
    assert claim(archive, "broken") is None
    assert claim(archive, "sound").id == first.id
    log = [
        entry
        for entry in event_log.read(archive.connection, "study", first.id)
        if entry.event == "returned"
    ]
    assert [(entry.who, entry.details["cause"], entry.log) for entry in log] == [
        ("broken", "device", "the end of the log")
    ]


def test_the_latest_refusals_are_kept(archive):
    (waiting,) = propose(archive, cells(1))
    earlier = [f"w{index}" for index in range(leases.MOST_REFUSALS)]
    store_refusals = "MATCH (p:Proposal {id: $id}) SET p.refused_by = $workers"
    archive.query(store_refusals, {"id": waiting.id, "workers": earlier}, write=True)

    held = claim(archive, "latest")
    refusal = Release(held.id, held.token, "no NVIDIA driver", Cause.DEVICE)
    assert archive.proposals.settle([refusal]) == [True]

    assert archive.proposals.get(waiting.id).refused_by == (*earlier[1:], "latest")
    assert claim(archive, "latest") is None


def test_a_retry_forgets_refusals(archive):
    propose(archive, cells(1))
    held = claim(archive, "w")
    archive.proposals.settle([Release(held.id, held.token, "no data", Cause.DATA)])
    archive.proposals.cancel(held.id)
    assert archive.proposals.retry(held.id)
    assert claim(archive, "w").id == held.id


def test_a_claim_leaves_out_studies_that_the_worker_cannot_run(archive):
    propose(archive, cells(40), "tables", task="nb201-cifar10", protocol="nb201/200")
    propose(archive, cells(2), "mine", protocol="digits/1+recipe:mine")
    (wanted,) = propose(archive, cells(1), "wanted")
    capabilities = Capabilities(
        tasks=("digits", "csv:"), spaces=("nasbench201",), recipes=("default",)
    )
    claim_filter = ClaimFilter(capabilities)
    held = [archive.proposals.claim_many("w", 1, claim_filter=claim_filter) for _ in range(2)]
    assert [[each.id for each in claims] for claims in held] == [[wanted.id], []]
    assert archive.proposals.claim_many("w", 1, study="tables", claim_filter=claim_filter) == []
    assert len(archive.proposals.claim_many("any", 2)) == 2


@pytest.mark.parametrize(
    ("capabilities", "lacking"),
    [
        (Capabilities(), None),
        (Capabilities(("csv:",), ("mlp",), ("mine",)), None),
        (Capabilities(("npz:", "csv:/a.csv"), None, None), "task"),
        (Capabilities(None, ("cnn",), None), "space"),
        (Capabilities(None, None, ("default",)), "recipe"),
    ],
)
def test_what_a_worker_lacks(capabilities, lacking):
    reason = capabilities.lacks("csv:/a.csv#y", "csv/1+recipe:mine", "mlp")
    assert (reason is None) if lacking is None else reason.startswith(f"it has no {lacking} ")


def test_a_table_stands_for_its_tasks_with_noise():
    capabilities = Capabilities(("cifar10", "table:"))
    assert all(
        capabilities.lacks(name, "table/1", "mlp") is None
        for name in ("cifar10~0.005", "table:/a.csv#y~0.1")
    )
    assert capabilities.lacks("cifar100~0.005", "table/1", "mlp") == (
        "it has no task 'cifar100~0.005'"
    )


def test_out_of_memory_is_final_alone_on_the_largest_device_only(archive):
    for worker, gib in (("small", 4), ("large", 8), ("larger", 16)):
        workers.arrive(archive.connection, worker, memory_bytes=gib * GIB)

    workers.leave(archive.connection, "larger")
    propose(archive, cells(1))
    again = exhaust(archive, "small", 4 * GIB, alone=False)
    assert (again.state, again.attempts, again.alone, again.memory_bytes) == (
        State.WAITING,
        0,
        True,
        3 * GIB,
    )
    assert claim(archive, "large", memory_bytes=8 * GIB, alone_bytes=2 * GIB) is None
    assert claim(archive, "tiny", memory_bytes=2 * GIB) is None
    again = exhaust(archive, "small", 4 * GIB, alone=True)
    assert (again.state, again.attempts) == (State.WAITING, 0)
    assert claim(archive, "small", memory_bytes=4 * GIB) is None
    end = exhaust(archive, "large", 8 * GIB, alone=True, needed=7 * GIB)
    assert (end.state, end.cause, end.memory_bytes) == (State.FAILED, "out-of-memory", 7 * GIB)
    assert end.reason == "out of memory; alone on the largest device (8.0 GiB)"


def test_out_of_memory_beside_foreign_programs_ends(archive):
    workers.arrive(archive.connection, "w", memory_bytes=4 * GIB)
    propose(archive, cells(1))
    ends = [exhaust(archive, "w", 4 * GIB, alone=False) for _ in range(4)]
    assert [end.attempts for end in ends] == [0, 1, 2, 3]
    assert ends[-1].state is State.FAILED


@pytest.mark.every_server
def test_proposals_out_of_reach_of_all_living_workers(archive):
    def reasons(proposal=None):
        found = backlog.unreachable(
            archive.connection, workers.statuses(archive.connection), proposal
        )
        return [(one.study, one.proposals, dict(one.reasons)) for one in found]

    propose(archive, cells(3), "tables", task="nb201-cifar10", protocol="nb201/200")
    refused, needy = propose(archive, cells(2))
    assert reasons() == []
    workers.arrive(archive.connection, "a", tasks=["digits"], memory_bytes=4 * GIB)
    workers.arrive(archive.connection, "b", study="study", memory_bytes=2 * GIB)
    workers.arrive(archive.connection, "gone")
    workers.leave(archive.connection, "gone")
    no_task = (
        "tables",
        3,
        {"a": "it has no task 'nb201-cifar10'", "b": "it serves the study 'study'"},
    )
    assert reasons() == [no_task]
    held = {each.id: each for each in archive.proposals.claim_many("a", 1, study="study")}
    held |= {each.id: each for each in archive.proposals.claim_many("b", 1, study="study")}
    memory = MemoryNeed(3 * GIB, 2 * GIB, alone=True)
    archive.proposals.settle(
        [
            Release(refused.id, held[refused.id].token, "no driver", Cause.DEVICE),
            Failure(
                needy.id, held[needy.id].token, "out", cause=Cause.OUT_OF_MEMORY, memory=memory
            ),
        ]
    )
    # Worker b can still run the proposal that a has refused, and a the one that needs more memory
    # than b has.
    assert reasons() == [no_task]
    workers.leave(archive.connection, "a")
    needs = "its largest device has 2.0 GiB, and the training needs 3.0 GiB"
    assert reasons(needy.id) == [("study", 1, {"b": needs})]
    assert reasons(refused.id) == []

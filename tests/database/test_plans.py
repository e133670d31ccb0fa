"""What a trial costs does not grow with the archive: Neo4j seeks, though it plans when the first networks come.

See `archive.store.schema` for why that must be asked for.
"""

from __future__ import annotations

import pytest

from archive.database import statements
from archive.exchange import statements as load_statements
from archive.queue import admission, claims, completion, leases, successive_halving, workers
from archive.store import (
    architectures,
    costs,
    distances,
    evaluations,
    lineage,
    result_columns,
    retention,
    snapshots,
    studies,
    study_deletion,
)
from tests.support.stores import cells, propose

pytestmark = pytest.mark.dialect

LOADED = "REWRITTEN NETWORK MORPH EVALUATION WEIGHTS PROPOSAL MADE RESULT CLAIM PAIRS".split()
STATEMENTS = {
    "lock a study": admission.LOCK,
    "known networks of a study": admission.KNOWN,
    "count a study again": admission.COUNT,
    "what a wish was granted": admission.DONE,
    "failures of a study": admission.FAILED,
    "proposals of a study by state": studies.COUNTS_OF,
    "new proposals": admission.CREATE,
    "what runs": claims.OF_ANY + claims.RUNNING,
    "what waits": claims.OF_ANY + claims.WAITING,
    "what runs of a study": claims.OF_STUDY + claims.RUNNING,
    "what waits of a study": claims.OF_STUDY + claims.WAITING,
    "a claim": claims.TAKE,
    "what a claim was granted": claims.HELD,
    "tasks of studies": completion.TASKS,
    "results of those that go on": completion.RECORDED,
    "costs": costs.SET,
    "weights that are gone": retention.FORGET,
    "lock proposals": leases.LOCK,
    "change proposals": leases.APPLY,
    "longer leases": leases.RENEW,
    "how claims ended": leases.PART,
    "results": completion.COMPLETE,
    "known networks": architectures.KNOWN,
    "operations": architectures.MORPH,
    **{f"lock: {label.lower()}": statements.lock_statement(label) for label in statements.KEYS},
    "weights": completion.WEIGHTS,
    "imported results": evaluations.IMPORT,
    "results of a study": result_columns._query(["value", "space"]),
    "a study as it stands": snapshots.SNAPSHOT,
    "proposals that go": study_deletion.BATCH_OF_PROPOSALS,
    "the study that goes": study_deletion.LAST,
    "distances there are": distances.PRESENT,
    "new distances": distances.CREATE,
    "further distances": distances.UPDATE,
    "where a trial began": lineage.RESERVE,
    "configurations of races": successive_halving.CONFIGS,
    "how a race stands": successive_halving.STANDINGS,
    "results of a longer training": completion.COMPLETE_AGAIN,
    "paused trainings": successive_halving.PAUSED,
    "promoted ones": successive_halving.PROMOTED,
    "a worker": workers.BEAT,
    **{f"load: {name.lower()}": getattr(load_statements, name) for name in LOADED},
}


def test_every_step_of_a_trial_begins_with_a_seek(archive):
    if archive.connection.dialect != "neo4j":
        pytest.skip("the embedded server plans anew, and explains nothing")
    propose(archive, cells(40))
    plans = {name: operators(explained(archive, statement)) for name, statement in STATEMENTS.items()}
    assert {name: found for name, found in plans.items() if any("Scan" in one for one in found)} == {}
    assert [name for name, found in plans.items() if not any(one.startswith(("Node", "Merge")) for one in found)] == []


def explained(archive, statement):
    return archive.connection.read(lambda tx: tx.run(f"EXPLAIN {statement}").consume().plan)


def operators(plan):
    return [
        plan["operatorType"].partition("@")[0],
        *(name for part in plan.get("children", []) for name in operators(part)),
    ]

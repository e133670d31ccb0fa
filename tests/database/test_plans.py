"""Plans of the servers: statements of a trial seek in the index that they name.

On Neo4j also when they were planned in a new archive. ArcadeDB ignores the name: there the form of
a condition decides.

`archive.store.schema` has the reason for the hints.
"""

from __future__ import annotations

import re

import pytest

from archive.dashboard.feeds import study
from archive.database import statements
from archive.plots.data import curves
from archive.queue import (
    admission,
    backlog,
    claims,
    completion,
    leases,
    lookups,
    promotions,
    updates,
    workers,
)
from archive.store import (
    architectures,
    distances,
    dump_statements,
    evaluations,
    lineage,
    metric_names,
    snapshot_follower,
    snapshots,
    weights,
)
from archive.store.studies import deletion, rows, studies
from tests.archive.test_layout import MODULES
from tests.support import ROOT
from tests.support.stores import cells, propose

pytestmark = pytest.mark.dialect

LOADED = "REWRITTEN NETWORK MORPH EVALUATION WEIGHTS PROPOSAL MADE RESULT CLAIM PAIRS".split()
STATEMENTS = {
    "lock a study": admission.LOCK,
    "known networks of a study": admission.KNOWN,
    "count a study again": admission.COUNT,
    "proposals of a repeated request": admission.DONE,
    "failures of a study": admission.FAILED,
    "proposals of a study by state": studies.COUNTS_OF,
    "new proposals": admission.CREATE,
    "running proposals": claims.OF_ANY + claims.RUNNING,
    "waiting proposals": claims.OF_ANY + claims.WAITING,
    "running proposals of a study": claims.OF_STUDY + claims.RUNNING,
    "waiting proposals of a study": claims.OF_STUDY + claims.WAITING,
    "depth of the queue": backlog.OPEN,
    "number of proposals": backlog.ALL,
    "number of proposals of a study": backlog.ADMITTED,
    "a claim": claims.TAKE,
    "proposals of a repeated claim": claims.OF_ANY + claims.HELD,
    "proposals of a repeated claim in a study": claims.OF_STUDY + claims.HELD,
    "recorded evaluations": completion.RECORDED,
    "costs": metric_names.SET_COSTS,
    "delete weights": weights.FORGET,
    "lock proposals": leases.LOCK,
    "change proposals": leases.APPLY,
    "renew leases": updates._renewal(()),
    "renew leases and extend curves": updates._renewal(("curve_accuracy",)),
    "ends of claims": leases.END_CLAIMS,
    "leases that are held": lookups.HELD,
    "the proposal of a network": lookups.OF_NETWORK,
    "results": completion.COMPLETE,
    "known networks": architectures.KNOWN,
    "operations": architectures.MORPH,
    **{f"lock: {label.lower()}": statements.lock_statement(label) for label in statements.KEYS},
    "weights": completion.WEIGHTS,
    "imported results": evaluations.IMPORT,
    "results of a study": rows.select(["value", "space"]),
    "snapshot of a study": rows.select(snapshots.COLUMNS),
    "a look at a study": snapshot_follower.POLL,
    "changed proposals": rows.select(snapshots.COLUMNS, rows.SOME),
    "a study": studies.READ_ONE,
    "a study and its sources": evaluations.WITH_SOURCES,
    "delete proposals of a study": deletion.BATCH_OF_PROPOSALS,
    "delete a study": deletion.LAST,
    "stored distances": distances.PRESENT,
    "new distances": distances.CREATE,
    "changed distances": distances.UPDATE,
    "reserve weights": lineage.RESERVE,
    "configurations of studies": promotions.CONFIGS,
    "standings at rungs": promotions.STANDINGS,
    "borders of rungs": promotions.KEEP,
    "results of a longer training": completion.COMPLETE_AGAIN,
    "paused trainings": promotions.PAUSED,
    "promoted proposals": promotions.PROMOTED,
    "a worker": workers.BEAT,
    "trainings on the page": rows.select(study.RUN, rows.RUNNING),
    "curves of trainings": curves.CURVES_IN_TRAINING,
    **{f"load: {name.lower()}": getattr(dump_statements, name) for name in LOADED},
}


def test_every_step_of_a_trial_begins_with_a_seek(archive):
    if archive.connection.dialect != "neo4j":
        pytest.skip("ArcadeDB's plans have another form")

    propose(archive, cells(40))
    plans = {
        name: operators(explained(archive, statement)) for name, statement in STATEMENTS.items()
    }
    assert {
        name: found for name, found in plans.items() if any("Scan" in one for one in found)
    } == {}
    assert [
        name
        for name, found in plans.items()
        if not any(one.startswith(("Node", "Merge")) for one in found)
    ] == []


def test_the_embedded_server_seeks_in_the_index_that_a_statement_names(archive):
    if archive.connection.dialect == "neo4j":
        pytest.skip("Neo4j follows the names")

    propose(archive, cells(40))
    others = {}
    for name, statement in STATEMENTS.items():
        sought = set(
            re.findall(r"index=proposal_(\w+)", str(explained(archive, statement)["args"]))
        )
        if other := sought - set(re.findall(r"SEEK \w+:Proposal\((\w+)\)", statement)):
            others[name] = other

    assert others == {}


def explained(archive, statement):
    return archive.connection.read(lambda tx: tx.run(f"EXPLAIN {statement}").consume().plan)


def operators(plan):
    return [
        plan["operatorType"].partition("@")[0],
        *(name for part in plan.get("children", []) for name in operators(part)),
    ]


def test_no_comprehension_begins_with_all_nodes_of_a_label():
    """ArcadeDB follows a pattern from its left end: a new variable there costs all nodes of its
    label for each row."""
    texts = [
        path.read_text(encoding="utf-8")
        for path in (*MODULES, *ROOT.glob("archive/queries/*.cypher"))
    ]
    assert sum("[(p)<-[c:CLAIMED]-(w)" in text for text in texts) == 1
    assert not [
        found for text in texts for found in re.findall(r"\[\(\w+:\w+[^)]*\)<?-\[[^\n]*", text)
    ]

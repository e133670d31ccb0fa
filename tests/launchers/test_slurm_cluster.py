"""Trainers on a real Slurm cluster of two nodes: nothing is lost and nothing doubled, whatever
happens to a node."""

from __future__ import annotations

import json
import os
from collections import Counter
from unittest import mock

import pytest

from archive import spaces
from archive.architecture import codec
from archive.launchers import records, registry
from archive.store.records import State, Study
from archive.trainer.tasks import registry as tasks
from tests.support import ROOT
from tests.support.clusters.launchers import ids, until
from tests.support.clusters.slurm import cluster
from tests.support.commands import shell
from tests.support.daemons import NETS, propose
from tests.support.stores import suggest

LONG = 480.0
"""Limit of a wait, in seconds: nodes share the processors with everything else on this machine."""

OUTCOMES = """
MATCH (:Study {name: $study})-[:PROPOSED]->(p:Proposal)
OPTIONAL MATCH (p)-[:RESULTED_IN]->(e:Evaluation)
RETURN p.id AS id, p.state AS state, p.attempts AS attempts, count(e) AS evaluations
"""


@pytest.fixture
def user(archive, store_settings, tmp_path):
    with shell(store_settings, tmp_path) as opened:
        yield opened


def queued(archive, folder, count: int) -> None:
    """Propose cells in the study `table`, each of which took a minute to train."""
    chosen = spaces.get("nasbench201").members()[:count]
    path = folder / "table.csv"
    rows = [f"{codec.to_nasbench201(cell)},{at},60" for at, cell in enumerate(chosen)]
    path.write_text("\n".join(["arch_str,accuracy,train_seconds", *rows]))
    task = tasks.get(f"table:{path}#accuracy")
    tasks.name_file(task, archive.connection.settings.home)
    archive.studies.create(
        Study("table", task.name, task.protocol().name, "nasbench201", "accuracy", budget=count)
    )
    agent = archive.proposals.register_agent("random", {}, "1")
    archive.proposals.create("table", agent, suggest(chosen))


def outcome(archive, study: str) -> tuple[Counter, int]:
    """Return the number of proposals by state and evaluations, and the number of attempts that were
    lost."""
    rows = archive.connection.read(lambda tx: tx.run(OUTCOMES, study=study).data())
    return Counter((row["state"], row["evaluations"]) for row in rows), sum(
        row["attempts"] for row in rows
    )


def complete(archive, study: str) -> int:
    return archive.studies.counts(study)[State.COMPLETE]


@pytest.mark.whole
@pytest.mark.lasts(40)
def test_a_node_that_dies_loses_and_doubles_nothing(user, archive, store_settings, tmp_path):
    queued(archive, tmp_path, 14)
    with (
        cluster(tmp_path / "c", kill_wait=5) as slurm,
        mock.patch.dict(user.environment, slurm.environment),
    ):
        arguments = (
            "--trainers",
            "2",
            "--cpus",
            "2",
            "--study",
            "table",
            "--",
            "--scale",
            "0.01",
            "--lease",
            "5s",
        )
        user.types("launch", "slurm", *arguments)
        until(lambda: complete(archive, "table") >= 3, LONG, "both nodes work")
        with mock.patch.dict(os.environ, slurm.environment):
            launcher = registry.create("slurm", {}, store_settings)
            fleet = records.get(store_settings, "slurm-table")
            (victim,) = [each.id for each in launcher.running(fleet) if each.host == "n1"]
            slurm.lose_node("n1")
            # Slurm keeps the job for another node, under its id.
            until(lambda: victim in ids(launcher, fleet, "pending"), LONG, "the job is requeued")

        until(lambda: complete(archive, "table") == 14, LONG, "the other node does the rest")
        user.types("launch", "stop", "slurm-table")
        with mock.patch.dict(os.environ, slurm.environment):
            until(lambda: not ids(launcher, fleet), LONG, "all jobs have ended")

    states, lost = outcome(archive, "table")
    assert states == {("COMPLETE", 1): 14}
    assert lost <= 1


@pytest.mark.whole
@pytest.mark.lasts(300)
def test_studies_survive_a_drain_a_kill_and_requeues(user, archive, store_settings, tmp_path):
    """Two nodes with two trainers each:

    60 evaluations on a table, and 24 trainings, each study in one command.
    """
    queued(archive, tmp_path, 60)
    with (
        cluster(tmp_path / "c", kill_wait=15) as slurm,
        mock.patch.dict(user.environment, slurm.environment),
    ):
        search = user.starts(
            "search",
            "--agent",
            "random",
            "--task",
            "diabetes",
            "--space",
            "mlp",
            "--study",
            "trained",
            "--budget",
            "24",
            "--trainers",
            "2",
            "--on",
            "slurm:cpus=1,sbatch=--nodelist=n1",
        )
        until(
            lambda: (
                archive.studies.list()
                and "trained" in {s.study.name for s in archive.studies.list()}
            ),
            LONG,
            "it",
        )
        user.types(
            "launch",
            "slurm",
            "--trainers",
            "2",
            "--cpus",
            "1",
            "--study",
            "table",
            "--",
            "--scale",
            "0.02",
            "--lease",
            "15s",
        )
        with mock.patch.dict(os.environ, slurm.environment):
            _disturb(archive, slurm)

        until(lambda: complete(archive, "table") == 60, 2 * LONG, "the table is done")
        until(lambda: search.poll() is not None, 2 * LONG, "the search is done")
        user.types("launch", "stop", "--all")

    table = outcome(archive, "table")
    trained = outcome(archive, "trained")
    print(f"table: {table}, trained: {trained}")
    assert search.returncode == 0, user.said
    assert table[0] == {("COMPLETE", 1): 60}
    assert trained[0] == {("COMPLETE", 1): 24}


def _disturb(archive, slurm) -> None:
    """Drain a node with its jobs requeued, then kill the daemon and the jobs of the other one, and
    repair both."""

    def jobs(*states: str) -> list[str]:
        done = slurm.command(
            "squeue", "--noheader", "--array", f"--states={','.join(states)}", "--format=%i %N"
        )
        return done.stdout.splitlines()

    def released() -> None:
        """Start requeued jobs now: Slurm lets them wait for two minutes."""
        for job in jobs("PENDING"):
            slurm.command("scontrol", "update", f"jobid={job.split()[0]}", "starttime=now")

    until(
        lambda: complete(archive, "table") >= 5 and complete(archive, "trained") >= 1,
        LONG,
        "both studies run",
    )
    slurm.command("scontrol", "update", "nodename=n2", "state=drain", "reason=test")
    for job in jobs("RUNNING"):
        if job.endswith(" n2"):
            slurm.command("scontrol", "requeue", job.split()[0])

    before = complete(archive, "table")
    until(lambda: len(jobs("PENDING")) >= 2, LONG, "the jobs of the drained node wait")
    slurm.command("scontrol", "update", "nodename=n2", "state=resume")
    released()
    until(lambda: complete(archive, "table") >= before + 5, LONG, "they go on")
    until(lambda: complete(archive, "trained") >= 4, LONG, "trainings go on")
    slurm.lose_node("n1")
    until(lambda: len(jobs("PENDING")) >= 2, LONG, "the jobs of the lost node wait")
    slurm.start_node("n1")
    until(lambda: slurm.states()["n1"] in ("idle", "mix", "alloc"), LONG, "the node is back")
    released()


@pytest.mark.whole
@pytest.mark.lasts(60)
def test_a_trial_has_ranks_on_both_nodes(user, archive, store_settings, tmp_path):
    recipes = store_settings.home / "recipes.toml"
    recipes.touch(0o600)
    recipes.write_text(f'[ranks]\nfit = "{ROOT}/tests/support/clusters/ranks.py:sums"\n')
    propose(archive, NETS[:1], protocol="diabetes/1+recipe:ranks", name="ranks")
    try:
        with (
            cluster(tmp_path / "c", kill_wait=5) as slurm,
            mock.patch.dict(user.environment, slurm.environment),
        ):
            arguments = ("--nodes", "2", "--cpus", "1", "--study", "ranks", "--", "--devices")
            user.types("launch", "slurm", "--trainers", "1", *arguments, "cpu", "--idle", "1s")
            until(lambda: outcome(archive, "ranks")[0] == {("COMPLETE", 1): 1}, LONG, "the trial")
            user.types("launch", "stop", "slurm-ranks")
    finally:
        recipes.unlink()

    ((text,),) = archive.query("MATCH (e:Evaluation) RETURN e.environment").rows
    assert [about["GROUP_RANK"] for about in json.loads(text)["ranks"]] == ["0", "1"]

"""Trainers and trials on a real Ray cluster: nothing is lost and nothing doubled when a node
dies."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest

from archive import spaces
from archive.architecture import codec
from archive.launchers import registry
from archive.launchers.ray_cluster import RayLauncher
from archive.launchers.records import TrainerFleet
from archive.store.records import State, Study
from archive.trainer.dispatch.ray_executor import RayExecutor
from archive.trainer.tasks import registry as tasks
from tests.support import ROOT
from tests.support.clusters.launchers import fleet, ids, until
from tests.support.clusters.ray_cluster import cluster
from tests.support.commands import serving
from tests.support.daemons import NETS, propose
from tests.support.stores import suggest

pytestmark = [pytest.mark.whole, pytest.mark.lasts(300)]

COSTS = """
MATCH (:Study {name: $study})-[:PROPOSED]->(p:Proposal)
OPTIONAL MATCH (p)-[:RESULTED_IN]->(e:Evaluation)
RETURN p.id AS id, p.state AS state, p.attempts AS attempts, count(e) AS evaluations
"""


def proposed(archive, name: str, task, space: str, architectures) -> None:
    protocol = task.protocol().name
    archive.studies.create(
        Study(
            name,
            task.name,
            protocol,
            space,
            task.objective,
            budget=len(architectures),
            direction=task.direction,
        )
    )
    agent = archive.proposals.register_agent("random", {}, "1")
    archive.proposals.create(name, agent, suggest(architectures))


def outcome(archive, study: str) -> tuple[Counter, int]:
    """Return the number of proposals by state and evaluations, and the number of lost attempts."""
    rows = archive.connection.read(lambda tx: tx.run(COSTS, study=study).data())
    return Counter((row["state"], row["evaluations"]) for row in rows), sum(
        row["attempts"] for row in rows
    )


def states(launcher: RayLauncher, fleet: TrainerFleet) -> Counter[str]:
    """Return the number of trainers by state, from one look: on a busy machine, an actor may not
    answer each one."""
    return Counter(trainer.state for trainer in launcher.running(fleet))


def complete(archive, study: str) -> int:
    return archive.studies.counts(study)[State.COMPLETE]


def test_trainers_follow_their_actors_to_another_node(archive, store_settings, tmp_path):
    """60 evaluations on a table by four trainers on two nodes, of which one dies."""
    cells = spaces.get("nasbench201").members()[:60]
    path = tmp_path / "table.csv"
    rows = [f"{codec.to_nasbench201(cell)},{at},60" for at, cell in enumerate(cells)]
    path.write_text("\n".join(["arch_str,accuracy,train_seconds", *rows]))
    task = tasks.get(f"table:{path}#accuracy")
    tasks.name_file(task, archive.connection.settings.home)
    proposed(archive, "table", task, "nasbench201", cells)
    with cluster() as nodes:
        launcher = registry.create("ray", {"address": nodes.address}, store_settings)
        assert isinstance(launcher, RayLauncher) and not launcher.elsewhere()
        own = fleet(
            store_settings,
            "ray",
            upper=6,
            arguments=("--study", "table", "--scale", "0.05", "--lease", "60s"),
            study="table",
        )
        launcher.start(own, 5)
        # The fifth has no room.
        until(
            lambda: states(launcher, own) == {"running": 4, "pending": 1},
            600.0,
            "four trainers run",
        )
        until(lambda: complete(archive, "table") >= 6, 600.0, "they work")
        nodes.remove_node(
            next(node for node in nodes.worker_nodes if node is not nodes.head_node), False
        )
        without = {"running": 2, "pending": 3}
        until(
            lambda: states(launcher, own) == without,
            600.0,
            "the trainers of the node wait for another one",
        )
        nodes.add_node(num_cpus=2, object_store_memory=80_000_000)
        until(lambda: states(launcher, own)["running"] == 4, 600.0, "they run there")
        until(lambda: complete(archive, "table") == 60, 900.0, "all is done")
        actors = ids(launcher, own)
        launcher.stop(own, actors)
        until(lambda: not launcher.running(own), 60.0, "all actors have ended")
        assert launcher.failures(own, actors) == []

    ended, lost = outcome(archive, "table")
    print(f"60 evaluations, {lost} attempts lost with the node")
    assert ended == {("COMPLETE", 1): 60}
    assert lost <= 2


def test_one_daemon_trains_on_all_nodes(archive, store_settings, tmp_path):
    """10 trainings in actors on two nodes, of which one dies; the nodes get no way to the
    database."""
    space = spaces.get("mlp")
    rng = np.random.default_rng(0)
    networks = list(
        {network.key: network for network in (space.sample(rng) for _ in range(40))}.values()
    )[:10]
    proposed(archive, "trained", tasks.get("diabetes"), "mlp", networks)
    with cluster() as nodes:
        executor = RayExecutor(nodes.address, {"num_cpus": 1}, device="cpu")
        with serving(archive, executor=executor, slots=5, latency_seconds=0) as trainer:
            until(lambda: complete(archive, "trained") >= 2, 900.0, "trials run")
            until(
                lambda: any(each.trial.host for each in list(trainer.in_flight)),
                900.0,
                "a trial has its host",
            )
            nodes.remove_node(
                next(node for node in nodes.worker_nodes if node is not nodes.head_node), False
            )
            until(lambda: complete(archive, "trained") == 10, 900.0, "all is done")
            assert trainer.tally.complete == 10

    states, lost = outcome(archive, "trained")
    print(f"{sum(states.values())} trainings, {lost} attempts lost with the node")
    assert set(states) == {("COMPLETE", 1)}
    assert lost <= 2


def test_a_trial_has_ranks_on_two_nodes(archive, store_settings, tmp_path):
    """Its second trial has a rank that dies: it fails alone, and frees the nodes."""
    recipes = store_settings.home / "recipes.toml"
    recipes.touch(0o600)
    file = f"{ROOT}/tests/support/clusters/ranks.py"
    recipes.write_text(f'[ranks]\nfit = "{file}:sums"\n[dies]\nfit = "{file}:dies"\n')
    propose(archive, NETS[:1], protocol="diabetes/1+recipe:ranks", name="ranks")
    propose(archive, NETS[:1], protocol="diabetes/1+recipe:dies", name="dies")
    try:
        with cluster() as nodes:
            executor = RayExecutor(nodes.address, {"num_cpus": 1}, nodes=2, device="cpu")
            with serving(archive, executor=executor, slots=1, latency_seconds=0):
                until(lambda: complete(archive, "ranks") == 1, 600.0, "the trial")
                until(lambda: archive.proposals.list("dies")[0].attempts, 600.0, "the failure")
    finally:
        recipes.unlink()

    ((text,),) = archive.query("MATCH (e:Evaluation) RETURN e.environment").rows
    assert [about["GROUP_RANK"] for about in json.loads(text)["ranks"]] == ["0", "1"]
    (dead,) = archive.proposals.list("dies")
    assert dead.reason.startswith("rank 1: the trial's process was ended by SIGKILL")

"""Jobs of trainers for Kubernetes: valid, closed, and with the fleet's own command."""

from __future__ import annotations

import pytest
import yaml

from archive.errors import LaunchError
from archive.launchers.kubernetes import KubernetesLauncher, label_of
from archive.launchers.records import TrainerFleet
from archive.settings import Settings
from tests.support.clusters.launchers import fleet
from tests.support.commands import parsed
from tests.support.kubernetes import check, containers, pods, unprivileged

REQUEST = {
    "image": "registry/trainer:1", "gpus": 2, "cpus": 7.5, "memory": 32 * 10**9, "claim": "archive",
    "node_selector": ("gpu=a100",), "toleration": ("spot",), "env": ("AWS_ENDPOINT_URL=http://minio:9000?a=b",),
    "env_from": ("s3",), "service_account": "trainers",
}  # fmt: skip


@pytest.mark.parametrize("request_", [{}, REQUEST], ids=["defaults", "everything"])
def test_jobs_are_valid_and_have_no_privileges(request_, tmp_path):
    settings = Settings(tmp_path, uri="bolt+s://db:7687", password="geheim")
    own = fleet(
        settings,
        "kubernetes",
        arguments=("--study", "Größe 1", "--slots", "2"),
        grace_seconds=100.0,
    )
    jobs = list(yaml.safe_load_all(KubernetesLauncher(**request_).preview(own, 3)))
    assert len({job["metadata"]["name"] for job in jobs}) == 3
    for job in jobs:
        check(job)
        assert all(
            len(name) <= 63
            for name in (job["metadata"]["name"], *job["metadata"]["labels"].values())
        )

    (_, pod), *_ = pods(jobs)
    assert unprivileged(pod) == [] and pod["spec"]["terminationGracePeriodSeconds"] > 100
    (container,) = containers(pod)
    command, *words = container["args"]
    assert command == "trainer" and words == ["--study", "Größe 1", "--slots", "2"]
    parsed("trainer", "start", *words)
    variables = {each["name"]: each["value"] for each in container["env"]}
    assert (
        variables["ARCHIVE_DB"] == "bolt+s://db:7687"
        and variables["ARCHIVE_HOME"] == "/var/lib/archive"
    )
    assert int(variables["OMP_NUM_THREADS"]) >= 1
    # Not the file of this machine: the one of the secret.
    assert variables["ARCHIVE_PASSWORD_FILE"] == "/run/secrets/archive/password"
    assert {mount["name"] for mount in container["volumeMounts"]} == {
        each["name"] for each in pod["spec"]["volumes"]
    }
    if request_:
        assert variables["AWS_ENDPOINT_URL"] == "http://minio:9000?a=b"
        assert container["resources"]["limits"] == {"memory": 32 * 10**9, "nvidia.com/gpu": 2}
        assert {each["key"] for each in pod["spec"]["tolerations"]} == {"spot", "nvidia.com/gpu"}


def test_fleets_with_similar_names_have_labels_of_their_own(tmp_path):
    settings = Settings(tmp_path, uri="bolt://db:7687")
    names = ("a_b", "a-b", "A-b", "x" * 70, "x" * 71)
    labels = {label_of(TrainerFleet(name, "kubernetes", settings)) for name in names}
    assert len(labels) == len(names) and all(len(label) <= 50 for label in labels)


REFUSED = (
    'Error from server (Forbidden): error when creating "STDIN": jobs.batch "archive-x-{at:08x}" is forbidden: '
    "exceeded quota: {quota}, requested: count/jobs.batch=1, used: count/jobs.batch={at}, limited: count/jobs.batch=4"
)


def test_equal_refusals_of_many_jobs_are_one_line_with_their_number(tmp_path, monkeypatch):
    own = fleet(Settings(tmp_path, uri="bolt://db:7687"), "kubernetes")
    lines = [REFUSED.format(at=at, quota="small") for at in range(40)]
    (tmp_path / "stderr").write_text("\n".join(lines) + "\n")
    kubectl = tmp_path / "kubectl"
    kubectl.write_text(f"#!/bin/sh\ncat {tmp_path}/stderr >&2\nexit 1\n")
    kubectl.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(LaunchError) as refused:
        KubernetesLauncher().start(own, 40)

    assert str(refused.value) == f"kubectl create failed: {lines[0]} (40 such lines)"

    # Of many kinds, the first ones are shown.
    lines = [REFUSED.format(at=at, quota="abcdefg"[at % 7]) for at in range(20)]
    (tmp_path / "stderr").write_text("\n".join(["Warning: old", *lines]))
    with pytest.raises(LaunchError) as refused:
        KubernetesLauncher().start(own, 20)

    kinds = f"{lines[0]} (3 such lines) {lines[1]} (3 such lines)"
    assert str(refused.value) == f"kubectl create failed: Warning: old {kinds} (and 14 other lines)"

"""Kubernetes without a cluster: charts rendered by helm, objects checked by the published
schemas."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from jsonschema import Draft202012Validator

from tests.support import ROOT

CHART = ROOT / "deploy" / "helm" / "nas-archive"
VERSIONS = ("1.27", "1.34")
"""The oldest and the newest release of Kubernetes whose schemas are checked."""
_CUSTOM = {
    "ScaledJob": "scaledjob-keda-v1alpha1.json",
    "PodMonitor": "podmonitor-monitoring-v1.json",
}


def helm(*arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run helm; skip the test where there is none."""
    if (program := shutil.which("helm")) is None:
        pytest.skip("helm is not installed")

    given = {**os.environ, "KUBECONFIG": os.devnull}
    done = subprocess.run(
        [program, *arguments], capture_output=True, text=True, timeout=60, env=given
    )
    assert done.returncode == code or (code and done.returncode), done.stderr
    return done


def render(folder: Path, values: Mapping[str, Any], name: str = "lab") -> list[dict[str, Any]]:
    """Return the objects of a release with these values."""
    path = folder / "values.yaml"
    path.write_text(json.dumps(values))
    done = helm(
        "template", name, str(CHART), "--kube-version=1.34.0", "--namespace=nas", f"--values={path}"
    )
    return [each for each in yaml.safe_load_all(done.stdout) if each]


def check(thing: dict[str, Any]) -> None:
    """Check an object by the schema of its kind, strictly: unknown fields are errors.

    Raises:
        ValidationError: It does not fit.
    """
    if thing["kind"] in _CUSTOM:
        schema = json.loads((Path(__file__).parent / _CUSTOM[thing["kind"]]).read_text())
        Draft202012Validator(schema).validate(thing["spec"])

    if thing["kind"] == "ScaledJob":
        spec = thing["spec"]["jobTargetRef"]
        thing = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": thing["metadata"],
            "spec": spec,
        }

    if thing["kind"] not in _CUSTOM:
        for version in VERSIONS:
            kubernetes_validate.validate(thing, version, strict=True)


def pods(things: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name of each object that makes pods, with their template."""
    for thing in things:
        spec = thing.get("spec", {})
        if (template := spec.get("jobTargetRef", spec).get("template")) is not None:
            yield thing["metadata"]["name"], template


def containers(template: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return all containers of a pod's template."""
    return [*template["spec"].get("initContainers", ()), *template["spec"]["containers"]]


def selects(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Whether a label selector matches."""
    wanted = selector.get("matchLabels", {})
    return all(labels.get(key) == value for key, value in wanted.items()) and all(
        labels.get(each["key"]) in each["values"] for each in selector.get("matchExpressions", ())
    )


def unprivileged(template: Mapping[str, Any]) -> list[str]:
    """Return what a pod has too much for the Pod Security Standard `restricted`, and for a
    read-only root."""
    found = []
    pod = template["spec"].get("securityContext", {})
    if not (pod.get("runAsNonRoot") and pod.get("runAsUser", 0) > 0 and pod.get("fsGroup", 0) > 0):
        found.append("may be root")

    if pod.get("seccompProfile") != {"type": "RuntimeDefault"}:
        found.append("no seccomp profile")

    if template["spec"].get("automountServiceAccountToken") is not False:
        found.append("has a token of the API server")

    if any(
        next(iter(volume.keys() - {"name"})) == "hostPath"
        for volume in template["spec"].get("volumes", ())
    ):
        found.append("mounts folders of its host")

    for container in containers(template):
        context = container.get("securityContext", {})
        if context.get("allowPrivilegeEscalation") is not False or context.get("capabilities") != {
            "drop": ["ALL"]
        }:
            found.append(f"{container['name']} keeps privileges")

        if context.get("readOnlyRootFilesystem") is not True:
            found.append(f"{container['name']} can write to its image")

    return found
